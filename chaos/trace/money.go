package trace

import (
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/words"
)

// What Wallet.tla calls st, with assets and holds beside it. Names are texts: nothing of
// core's digests is believed.
type (
	account struct {
		tenant words.Tenant
		name   string
	}
	asset struct {
		tenant words.Tenant
		name   string
	}
	holding struct {
		tenant      words.Tenant
		name, asset string
	}
	hold struct { // Hold.tla's
		of     holding
		amount words.Amount
		until  words.Time
	}
	named struct {
		tenant words.Tenant
		name   string
		ref    bool
	}
	kept struct {
		named
		lsn words.LSN
	}
	outcome struct {
		place words.Place
		at    words.Time
		asked words.Asked
	}
	purse struct {
		has, held words.Amount
		today     sent
	}
	supply struct {
		issued, burned, there words.Amount // there: in all accounts together
		today                 sent         // issued
	}
	sent struct { // Clock's paid: what left on a day, by the frames' time
		day words.Time
		sum words.Amount
	}
	asker struct {
		of          named
		asked       words.Asked
		nonce, next words.Nonce // of a single operation: asked for, and due when it was decided
		saw         words.LSN   // the last frame then: a refusal tells of it
		was         words.Asked // what its key had asked for then; a conflict may be told when that is forgotten
	}
)

// money is the fold of the frames, and what became of keys.
type money struct {
	ttl     words.Time
	perDay  [2]words.Amount // that an account may pay, and a tenant issue
	last    words.LSN
	at      words.Time
	nonce   map[account]words.Nonce
	seq     map[words.Tenant]words.Seq
	purses  map[holding]purse
	supply  map[asset]supply
	holds   map[words.Place]hold
	window  []kept // Wallet's keys, oldest first
	keys    map[named]outcome
	askers  map[words.Ticket]asker
	rec     record.Record
	batched bool // what follows in the frame are items

}

func newMoney(c node.Config) money {
	return money{ttl: words.Time(c.State.Idem.TTL.Milliseconds()), perDay: [2]words.Amount{c.State.Ledger.Day, c.State.Ledger.IssueDay}, nonce: map[account]words.Nonce{}, seq: map[words.Tenant]words.Seq{}, purses: map[holding]purse{},
		supply: map[asset]supply{}, holds: map[words.Place]hold{}, keys: map[named]outcome{}, askers: map[words.Ticket]asker{}}
}

func (m *money) step(before, after *View, s *Step) error {
	if t := ticket(s.In); t != 0 {
		m.asks(t, s.In)
	}
	if len(s.Frame) > 0 {
		if err := m.frame(s.Frame, s.In); err != nil {
			return err
		}
	}
	if t := ticket(s.In); t != 0 {
		a := m.askers[t]
		a.saw = m.last
		m.askers[t] = a
	}
	if m.last != after.LSN {
		return broken("StateIsFold", "the last frame is %v, seen %v", after.LSN, m.last)
	}
	if int(after.Keys) != len(m.window) {
		return broken("WindowExact", "%d keys are held, want %d", after.Keys, len(m.window))
	}
	for i := range s.Replies {
		if err := m.tells(&s.Replies[i], after.Folded); err != nil {
			return err
		}
	}
	if in, ok := s.In.(event.Cancel); ok {
		delete(m.askers, in.Ticket)
	}
	return nil
}

// asks notes what a ticket asks, and the nonce that its account must use next.
func (m *money) asks(t words.Ticket, in event.Event) {
	var a asker
	switch in := in.(type) { //nolint:gochecksumtype // the others ask for no outcome
	case *event.Request:
		a = asker{of: named{tenant: in.Tenant, name: string(in.Key.Text)}, asked: in.Asked, nonce: in.Nonce}
		a.was = m.keys[a.of].asked
		if in.Nonce > 0 {
			a.next = m.nonce[account{in.Tenant, string(in.From.Text)}] + 1
		}
	case *event.Find:
		a.of = named{tenant: in.Tenant, name: string(in.Key.Text)}
	default:
	}
	m.askers[t] = a
}

// frame is Emit: it folds a frame, each record of which must be so.
func (m *money) frame(body []byte, in event.Event) error {
	h, rest, err := record.Open(body)
	if err != nil || h.LSN != m.last+1 {
		return broken("StateIsFold", "frame %v after %v: %v", h.LSN, m.last, err)
	}
	m.last, m.at, m.batched = h.LSN, h.At, false
	r := &m.rec
	for i := range h.Count {
		if rest, err = record.Next(rest, r); err != nil {
			return broken("StateIsFold", "frame %v: %v", h.LSN, err)
		}
		if err := m.record(words.Place{LSN: h.LSN, Index: i}, r, in); err != nil {
			return err
		}
	}
	return nil
}

func (m *money) record(at words.Place, r *record.Record, in event.Event) error {
	switch {
	case r.Kind == record.Forgot:
		return m.forget(r.Upto)
	case r.Kind == record.Lapsed:
	case !r.Keyed():
		return nil
	default:
		if q, ok := in.(*event.Request); ok && (r.Tenant != q.Tenant || string(r.Key.Text) != string(q.Key.Text)) {
			return broken("AnswersItsRequest", "%v is of tenant %d, key %s", at, r.Tenant, r.Key.Text)
		}
		if err := m.remember(at, r); err != nil {
			return err
		}
	}
	if !r.Counted() {
		return m.refuses(at, r, in)
	}
	if r.Seq != m.seq[r.Tenant]+1 {
		return broken("SeqExact", "%v has seq %d after %d", at, r.Seq, m.seq[r.Tenant])
	}
	m.seq[r.Tenant] = r.Seq
	return m.moves(at, r)
}

// remember is Remember: one outcome a key within its time, one effect a ref for ever.
func (m *money) remember(at words.Place, r *record.Record) error {
	if !m.batched {
		k := named{r.Tenant, string(r.Key.Text), false}
		if was, ok := m.keys[k]; ok && (was.at+m.ttl > m.at || m.inWindow(k)) {
			return broken("OneOutcomePerKey", "%s has outcomes at %v and %v", k.name, was.place, at)
		}
		m.keys[k] = outcome{at, m.at, r.Asked}
		m.window = append(m.window, kept{k, at.LSN})
		m.batched = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		k := named{r.Tenant, string(r.Ref.Text), true}
		if was, ok := m.keys[k]; ok {
			return broken("RefOnce", "%s has outcomes at %v and %v", k.name, was.place, at)
		}
		m.keys[k] = outcome{at, m.at, r.Asked}
		m.window = append(m.window, kept{k, at.LSN})
	}
	return nil
}

// inWindow reports that the window has a key.
func (m *money) inWindow(k named) bool {
	for i := range m.window {
		if m.window[i].named == k {
			return true
		}
	}
	return false
}

// forget is Stays: what was up to there goes, and nothing else.
func (m *money) forget(upto words.LSN) error {
	if upto >= m.last {
		return broken("WindowExact", "%v forgets up to %v", m.last, upto)
	}
	n := 0
	for n < len(m.window) && m.window[n].lsn <= upto {
		n++
	}
	m.window = m.window[:copy(m.window, m.window[n:])]
	return nil
}

// refuses is Refused: nothing moves, and it is right at this moment.
func (m *money) refuses(at words.Place, r *record.Record, in event.Event) error {
	q, ok := in.(*event.Request)
	if r.Kind != record.Refused || !ok || q.Op == event.Batch {
		return nil
	}
	next := m.nonce[account{r.Tenant, string(q.From.Text)}] + 1
	p := m.purses[holding{r.Tenant, string(q.From.Text), string(q.Asset.Text)}]
	free, _ := p.has.Minus(p.held)
	switch {
	case r.Problem == event.NonceUsed && (r.Nonce != next || q.Nonce >= next):
		return broken("OnlyUsedIsStored", "%v refuses nonce %d, next is %d, and says %d", at, q.Nonce, next, r.Nonce)
	case r.Problem == event.NonceAhead:
		return broken("OnlyUsedIsStored", "%v keeps a nonce that is ahead", at)
	case r.Problem == event.InsufficientFunds && !free.Less(q.Amount):
		return broken("RefusedRightly", "%v refuses %v of %v", at, q.Amount, free)
	}
	return nil
}

// tells is Leave: an answer is where the outcome of its key stands, a refusal that is not
// kept is of the nonce that was next.
func (m *money) tells(r *event.Reply, folded words.LSN) error {
	a, ok := m.askers[r.Ticket]
	if !ok {
		return nil // a ticket that life does not know either
	}
	delete(m.askers, r.Ticket)
	if a.of.name == "" {
		return nil // a key's
	}
	was, known := m.keys[a.of]
	find := a.asked == words.Asked{}
	switch {
	case of(r.Problem) && a.saw > folded:
		return broken("TellsDurable", "key %s: %v tells of %v, folded %v", a.of.name, r.Problem, a.saw, folded)
	case r.Problem == event.None && (!known || was.place != r.Place):
		return broken("IdenticalOutcome", "key %s is shown %v, its outcome is at %v", a.of.name, r.Place, was.place)
	case r.Problem == event.None && !find && was.asked != a.asked:
		return broken("AnswersItsRequest", "key %s is shown %v, which was asked otherwise", a.of.name, r.Place)
	case r.Problem == event.IdempotencyConflict && (!known || was.asked == a.asked) && (a.was == words.Asked{} || a.was == a.asked):
		return broken("TellsDurable", "key %s: a conflict with nothing", a.of.name)
	case r.Problem == event.NonceAhead && r.Item == 0 && (r.Nonce != a.next || a.nonce <= a.next):
		return broken("NonceExact", "key %s asks nonce %d and is told %d, next was %d", a.of.name, a.nonce, r.Nonce, a.next)
	}
	return nil
}

// of reports that a refusal tells of the state, and no record keeps it.
func of(p event.Problem) bool {
	switch p {
	case event.NonceAhead, event.IdempotencyConflict, event.OverDay, event.TooMany, event.AccountFrozen, event.BadExpiry:
		return true
	default:
		return false
	}
}

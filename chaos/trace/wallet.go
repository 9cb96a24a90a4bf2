package trace

import (
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/types"
)

// The state of Wallet.tla, with assets and holds. Names are texts: the digests of core are not
// used.
type (
	account struct {
		tenant types.Tenant
		name   string
	}
	asset struct {
		tenant types.Tenant
		name   string
	}
	holding struct {
		tenant      types.Tenant
		name, asset string
	}
	hold struct { // as in Hold.tla
		of     holding
		amount types.Amount
		until  types.Time
	}
	named struct {
		tenant types.Tenant
		name   string
		ref    bool
	}
	kept struct {
		named
		lsn types.LSN
	}
	outcome struct {
		place types.Position
		at    types.Time
		asked types.RequestHash
	}
	accountState struct {
		has, held types.Amount
		today     sent
	}
	supply struct {
		issued, burned, there types.Amount // there: in all accounts together
		today                 sent         // issued
	}
	sent struct { // as in Clock's paid: debits of a day, by the time of the frames
		day types.Time
		sum types.Amount
	}
	asker struct {
		of          named
		asked       types.RequestHash
		nonce, next types.Nonce       // of a single operation: the nonce of the request, and the expected one at its decision
		saw         types.LSN         // the last frame at that time: a rejection shows its state
		was         types.RequestHash // the request hash of its key at that time; a conflict may be returned after that was evicted
	}
)

// money is the fold of the frames, and the outcomes of keys.
type money struct {
	ttl          types.Time
	perDay       [2]types.Amount // limits of debits of an account, and of issues of a tenant
	last         types.LSN
	at           types.Time
	nonce        map[account]types.Nonce
	seq          map[types.Tenant]types.Seq
	accountState map[holding]accountState
	supply       map[asset]supply
	holds        map[types.Position]hold
	window       []kept // keys of Wallet, oldest first
	keys         map[named]outcome
	askers       map[types.Ticket]asker
	rec          record.Record
	batched      bool // the following records of the frame are items

}

func newMoney(c node.Config) money {
	return money{ttl: types.Time(c.State.Idempotency.TTL.Milliseconds()), perDay: [2]types.Amount{c.State.Ledger.MaxDailyDebit, c.State.Ledger.MaxDailyIssue}, nonce: map[account]types.Nonce{}, seq: map[types.Tenant]types.Seq{}, accountState: map[holding]accountState{},
		supply: map[asset]supply{}, holds: map[types.Position]hold{}, keys: map[named]outcome{}, askers: map[types.Ticket]asker{}}
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
		if err := m.tells(&s.Replies[i], after.Applied); err != nil {
			return err
		}
	}
	if in, ok := s.In.(event.Cancel); ok {
		delete(m.askers, in.Ticket)
	}
	return nil
}

// asks stores the request of a ticket, and the expected nonce of its account.
func (m *money) asks(t types.Ticket, in event.Event) {
	var a asker
	switch in := in.(type) { //nolint:gochecksumtype // the others have no outcome
	case *event.Request:
		a = asker{of: named{tenant: in.Tenant, name: string(in.Key.Text)}, asked: in.Hash, nonce: in.Nonce}
		a.was = m.keys[a.of].asked
		if in.Nonce > 0 {
			a.next = m.nonce[account{in.Tenant, string(in.From.Text)}] + 1
		}
	case *event.FindOutcome:
		a.of = named{tenant: in.Tenant, name: string(in.Key.Text)}
	default:
	}
	m.askers[t] = a
}

// frame is Emit: it checks and folds a frame.
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
		if err := m.record(types.Position{LSN: h.LSN, Index: i}, r, in); err != nil {
			return err
		}
	}
	return nil
}

func (m *money) record(at types.Position, r *record.Record, in event.Event) error {
	for _, e := range UsageEvents(r) {
		if err := m.uses(at, named{r.Tenant, string(e.Name[:]), true}, e.Content); err != nil {
			return err
		}
	}
	switch {
	case r.Kind == record.KeysForgotten:
		return m.forget(r.Upto)
	case r.Kind == record.HoldExpired:
	case !r.IsOutcome():
		return nil
	default:
		if q, ok := in.(*event.Request); ok && (r.Tenant != q.Tenant || string(r.Key.Text) != string(q.Key.Text)) {
			return broken("AnswersItsRequest", "%v is of tenant %d, key %s", at, r.Tenant, r.Key.Text)
		}
		if err := m.remember(at, r); err != nil {
			return err
		}
	}
	if !r.IsMovement() {
		return m.refuses(at, r, in)
	}
	if r.Seq != m.seq[r.Tenant]+1 {
		return broken("SeqExact", "%v has seq %d after %d", at, r.Seq, m.seq[r.Tenant])
	}
	m.seq[r.Tenant] = r.Seq
	return m.moves(at, r)
}

// uses uses a ref.
func (m *money) uses(at types.Position, k named, by types.RequestHash) error {
	if was, ok := m.keys[k]; ok {
		return broken("RefOnce", "%s has outcomes at %v and %v", k.name, was.place, at)
	}
	m.keys[k] = outcome{at, m.at, by}
	m.window = append(m.window, kept{k, at.LSN})
	return nil
}

// remember is Remember: one outcome per key within its TTL, one effect per ref for ever.
func (m *money) remember(at types.Position, r *record.Record) error {
	if !m.batched {
		k := named{r.Tenant, string(r.Key.Text), false}
		if was, ok := m.keys[k]; ok && (was.at+m.ttl > m.at || m.inWindow(k)) {
			return broken("OneOutcomePerKey", "%s has outcomes at %v and %v", k.name, was.place, at)
		}
		m.keys[k] = outcome{at, m.at, r.Hash}
		m.window = append(m.window, kept{k, at.LSN})
		m.batched = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		return m.uses(at, named{r.Tenant, string(r.Ref.Text), true}, r.Hash)
	}
	return nil
}

// inWindow reports whether the window has a key.
func (m *money) inWindow(k named) bool {
	for i := range m.window {
		if m.window[i].named == k {
			return true
		}
	}
	return false
}

// forget is Stays: it evicts exactly the keys up to a frame.
func (m *money) forget(upto types.LSN) error {
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

// refuses is Refused: nothing moves, and the rejection is correct at this moment.
func (m *money) refuses(at types.Position, r *record.Record, in event.Event) error {
	q, ok := in.(*event.Request)
	if r.Kind != record.Rejected || !ok || q.Op == event.Batch {
		return nil
	}
	next := m.nonce[account{r.Tenant, string(q.From.Text)}] + 1
	p := m.accountState[holding{r.Tenant, string(q.From.Text), string(q.Asset.Text)}]
	free, _ := p.has.Sub(p.held)
	switch {
	case r.Problem == event.NonceUsed && (r.Nonce != next || q.Nonce >= next):
		return broken("OnlyUsedIsStored", "%v rejects nonce %d, expected is %d, returned %d", at, q.Nonce, next, r.Nonce)
	case r.Problem == event.NonceAhead:
		return broken("OnlyUsedIsStored", "%v keeps a nonce that is ahead", at)
	case r.Problem == event.InsufficientFunds && !free.Less(q.Amount):
		return broken("RefusedRightly", "%v refuses %v of %v", at, q.Amount, free)
	}
	return nil
}

// tells is Leave: an answer is the stored outcome of its key, or a rejection with the expected
// nonce.
func (m *money) tells(r *event.Reply, folded types.LSN) error {
	a, ok := m.askers[r.Ticket]
	if !ok {
		return nil // an unknown ticket
	}
	delete(m.askers, r.Ticket)
	if a.of.name == "" {
		return nil // a key's
	}
	was, known := m.keys[a.of]
	find := a.asked == types.RequestHash{}
	switch {
	case of(r.Problem) && a.saw > folded:
		return broken("TellsDurable", "key %s: %v shows %v, folded %v", a.of.name, r.Problem, a.saw, folded)
	case r.Problem == event.None && (!known || was.place != r.Position):
		return broken("IdenticalOutcome", "key %s is shown %v, its outcome is at %v", a.of.name, r.Position, was.place)
	case r.Problem == event.None && !find && was.asked != a.asked:
		return broken("AnswersItsRequest", "key %s gets %v, which is of another request", a.of.name, r.Position)
	case r.Problem == event.IdempotencyConflict && (!known || was.asked == a.asked) && (a.was == types.RequestHash{} || a.was == a.asked):
		return broken("TellsDurable", "key %s: a conflict without an outcome", a.of.name)
	case r.Problem == event.NonceAhead && r.Item == 0 && (r.Nonce != a.next || a.nonce <= a.next):
		return broken("NonceExact", "key %s uses nonce %d and gets %d, expected was %d", a.of.name, a.nonce, r.Nonce, a.next)
	}
	return nil
}

// of reports whether a rejection shows the state, and is not stored.
func of(p event.Problem) bool {
	switch p.General() {
	case event.NonceAhead, event.IdempotencyConflict, event.DailyLimitExceeded, event.CapacityExceeded, event.AccountFrozen, event.BadExpiry:
		return true
	default:
		return false
	}
}

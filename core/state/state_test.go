package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// machine handles a request as a node does, without the rest of a node: it looks up, decides and
// records in one step. It keeps the frames.
type machine struct {
	tb
	state  state.State
	frames [][]byte
	body   []byte // of the open frame
	batch  bool   // the open frame has a batch
}

func limits() state.Limits {
	most := types.MaxSupply()
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 6, Holdings: 8, Assets: 4, Tenants: 3, TenantAccounts: 4, TenantHoldings: 5, TenantAssets: 2,
			Holds: 6, TenantHolds: 4, MaxAmount: types.MinorUnits(1000), MaxDailyDebit: types.MinorUnits(1500), MaxDailyIssue: most},
		Idempotency: idempotency.Limits{Keys: 16, PerTenant: 12, Tenants: 3, TTL: time.Minute},
		Keys:        3,
	}
}

func newMachine(t tb) *machine { return &machine{tb: t, state: state.New(limits(), 1)} }

func (d *machine) open(at types.Time) {
	lsn := d.state.LSN + 1
	d.state.Open(lsn, max(at, d.state.At))
	d.body, d.batch = record.Begin(nil, lsn, d.state.At), false
}

func (d *machine) add(r record.Record) types.Position {
	r.Identify()
	var index uint16
	d.body, index = record.Add(d.body, 0, &r)
	d.state.Apply(index, &r)
	place := types.Position{LSN: d.state.LSN, Index: index}
	if r.IsOutcome() && !d.batch { // its key has the position
		id, found, err := d.state.Idempotency.Resolve(idempotency.Key{Tenant: r.Tenant, Name: r.Key.ID}, r.Hash, command.PriorOutcome{}, d.state.At)
		if id != types.NewTxID(d.state.Journal, place) || !found || err != nil {
			d.Fatalf("%v at %v: its key has %v, %v, %v", r.Kind, place, id, found, err)
		}
		d.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 { // so does its ref
		id, used := d.state.Idempotency.FindRef(idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}, command.PriorOutcome{})
		if id.ID != types.NewTxID(d.state.Journal, place) || !used {
			d.Fatalf("%v at %v: its ref has %v, %v", r.Kind, place, id, used)
		}
	}
	return place
}

func (d *machine) close() []byte {
	d.frames = append(d.frames, d.body)
	return d.body
}

// frame returns a frame with some records.
func (d *machine) frame(at types.Time, records ...record.Record) []byte {
	d.open(at)
	for _, r := range records {
		d.add(r)
	}
	return d.close()
}

// submit makes a frame for one request, if the request is recorded.
func (d *machine) submit(at types.Time, q *event.Request) (p types.Position, replayed bool, why event.Problem) {
	r, p, replayed, why := d.decide(at, q)
	if r.Kind != 0 {
		d.open(at)
		p = d.add(r)
		d.close()
	}
	return p, replayed, why
}

// decide returns the outcome of q: a record, the position of an earlier one, or a problem.
func (d *machine) decide(at types.Time, q *event.Request) (r record.Record, p types.Position, replayed bool, why event.Problem) {
	q.Seal(nil)
	if err := q.Validate(); err != nil {
		d.Fatalf("%v", err)
	}
	rows := q.Cost().Rows
	id, found, err := d.state.Idempotency.Resolve(idempotency.Key{Tenant: q.Tenant, Name: q.Key.ID}, q.Hash, command.PriorOutcome{}, max(at, d.state.At))
	switch p = id.Position(); {
	case errors.Is(err, idempotency.ErrConflict):
		return r, p, false, event.IdempotencyConflict
	case found:
		return r, p, true, event.None
	case d.state.Idempotency.Admit(q.Tenant, rows) != nil:
		return r, p, false, event.IdempotencyCapacity
	}
	r = d.pending(q, &q.Item)
	if _, used := d.state.Idempotency.FindRef(idempotency.Key{Tenant: q.Tenant, Name: q.Ref.ID, Ref: true}, command.PriorOutcome{}); rows > 1 && used {
		return record.Record{}, p, false, event.RefUsed
	}
	if why = d.state.Wallet.Ledger.Decide(max(at, d.state.At), &r); why == event.None {
		return r, p, false, why
	}
	if !why.Stored() {
		return record.Record{}, p, false, why
	}
	return record.Record{Kind: record.Rejected, Op: q.Op, Tenant: q.Tenant, Key: q.Key, Hash: q.Hash, Problem: why, Nonce: r.Nonce}, p, false, why
}

// pending returns the record of an operation before its decision.
func (d *machine) pending(q *event.Request, item *event.Item) record.Record {
	return record.Record{Op: item.Op, Tenant: q.Tenant, Key: q.Key, Hash: q.Hash, From: item.From, To: item.To, Asset: item.Asset,
		Amount: item.Amount, Nonce: item.Nonce, ExpiresAt: item.ExpiresAt, Hold: item.Hold, Ref: item.Ref}
}

func name(s string) types.Name { return types.Name{Text: []byte(s)} }

func issue(key, to string, amount uint64) *event.Request {
	return &event.Request{Header: command.Header{Tenant: 1, Key: name(key)},

		Item: event.Item{Op: event.Issue, To: name(to), Asset: name("EUR"), Amount: types.MinorUnits(amount)}}
}

func transfer(key, from, to string, amount uint64, nonce types.Nonce) *event.Request {
	return &event.Request{Header: command.Header{Tenant: 1, Key: name(key)},

		Item: event.Item{Op: event.Transfer, From: name(from), To: name(to), Asset: name("EUR"), Amount: types.MinorUnits(amount), Nonce: nonce}}
}

// run draws random requests.
type run struct {
	*machine
	pick  func(n int) int
	at    types.Time
	keys  types.KeyID
	asked map[string]*event.Request
}

func (l *run) request() *event.Request {
	key := string(rune('a' + l.pick(20)))
	if was := l.asked[key]; was != nil && l.pick(2) == 0 {
		return was // a retry
	}
	q := issue(key, []string{"ann", "bob", "cy"}[l.pick(3)], uint64(1+l.pick(1100)))
	q.Tenant = types.Tenant(1 + l.pick(3))
	if l.pick(4) == 0 {
		q.Ref = name(string(rune('r' + l.pick(6))))
	}
	if op := l.pick(4); op < 2 {
		q.Op, q.From, q.To = event.Transfer, name("ann"), name("bob")
		if op == 1 {
			q.Op, q.ExpiresAt = event.Hold, l.at.Add(time.Duration(1+l.pick(20))*time.Second)
		}
		q.Seal(nil)
		_, _, next := l.state.Wallet.Balance(l.at, q.Tenant, q.From.ID, q.Asset.ID)
		q.Nonce = max(1, next+types.Nonce(l.pick(3))-1)
	}
	l.asked[key] = q
	return q
}

// step makes one more frame, or a request that is not recorded.
func (l *run) step() (body []byte) {
	l.at += types.Time(l.pick(9_000))
	before := len(l.frames)
	switch l.pick(15) {
	case 14:
		l.batch()
	case 13:
		if r := (record.Record{}); l.state.Wallet.ExpireNextHold(l.at, &r) {
			l.frame(l.at, r)
		}
	case 12:
		l.grant()
	case 0:
		l.frame(l.at)
	case 1:
		l.frame(l.at, record.Record{Kind: record.Started, Journal: types.JournalID(1 + l.pick(9)), TailFrames: uint32(l.pick(2))})
	case 2:
		l.frame(l.at, record.Record{Kind: record.Restored, Journal: types.JournalID(1 + l.pick(9)), Upto: l.state.LSN})
	case 3:
		if !l.state.Keys.Full() {
			l.keys++
			l.frame(l.at, record.Record{Kind: record.BootstrapKeyCreated, APIKey: &event.Key{ID: l.keys, Tenant: 1, Scopes: event.ScopeRead, Bootstrap: l.keys == 1}})
		}
	case 4, 5:
		if upto, any := l.state.Idempotency.Evictable(l.at, l.state.LSN, 3); any {
			l.frame(l.at, record.Record{Kind: record.KeysForgotten, Upto: upto})
		}
	case 6: // several requests in one frame
		l.open(l.at)
		for range 1 + l.pick(3) {
			if r, _, _, _ := l.decide(l.at, l.request()); r.Kind != 0 {
				l.add(r)
			}
		}
		l.close()
	default:
		l.submit(l.at, l.request())
	}
	if len(l.frames) == before {
		return nil
	}
	return l.frames[before]
}

// batch makes a frame of several operations under one key.
func (l *run) batch() {
	q := l.request()
	q.Seal(nil)
	if _, found := l.state.Idempotency.Find(idempotency.Key{Tenant: q.Tenant, Name: q.Key.ID}, command.PriorOutcome{}, l.at); found || l.state.Idempotency.Admit(q.Tenant, 5) != nil {
		return
	}
	l.open(l.at)
	l.add(record.Record{Kind: record.Batched, Op: event.Batch, Tenant: q.Tenant, Key: q.Key, Hash: q.Hash, Items: 3})
	for range 3 {
		item := l.request()
		item.Tenant, item.Key, item.Hash = q.Tenant, q.Key, q.Hash
		item.Seal(nil)
		r := l.pending(item, &item.Item)
		_, used := l.state.Idempotency.FindRef(idempotency.Key{Tenant: q.Tenant, Name: r.Ref.ID, Ref: true}, command.PriorOutcome{})
		if why := l.state.Wallet.Ledger.Decide(l.state.At, &r); why != event.None || used && len(r.Ref.Text) > 0 {
			r.Kind, r.Problem, r.Ref = record.Rejected, max(why, event.AmountLimitExceeded), types.Name{}
		}
		l.add(r)
	}
	l.close()
}

// grant creates a key, or revokes one or all.
func (l *run) grant() {
	switch what := l.pick(4); {
	case what < 2 && !l.state.Keys.Full():
		l.keys++
		label := types.NewLabel("till")
		l.frame(l.at, record.Record{Kind: record.KeyCreated, APIKey: &event.Key{ID: l.keys, Tenant: 1, Label: label, Expires: l.at}})
	case what == 2 && l.keys > 0:
		id := 1 + types.KeyID(l.pick(int(l.keys)))
		if k, _ := l.state.Keys.Find(id); !k.Revoked {
			l.frame(l.at, record.Record{Kind: record.KeyRevoked, APIKey: &event.Key{ID: id}})
		}
	case what == 3 && l.pick(3) == 0:
		l.frame(l.at, record.Record{Kind: record.AllKeysRevoked})
	}
}

// walk makes random frames. A state with another seed that folds them is equal, and a copy
// behaves like the original.
func walk(t tb, pick func(n int) int, steps int) *run {
	l := &run{machine: newMachine(t), pick: pick, asked: map[string]*event.Request{}}
	folded, copied := state.New(limits(), types.Hash64(pick(1<<30))), state.New(state.Limits{}, 0)
	for range steps {
		was := l.state.Hash()
		body := l.step()
		if body == nil {
			if l.state.Hash() != was {
				t.Fatalf("without a frame the state changed")
			}
			continue
		}
		if l.state.Hash() == was {
			t.Fatalf("frame %v changed nothing", l.state.LSN)
		}
		if pick(6) == 0 {
			folded.CopyTo(&copied)
			folded, copied = copied, folded
		}
		left := copied.Hash()
		if err := folded.Fold(body, sees(t, body, &folded)); err != nil {
			t.Fatalf("%v", err)
		}
		if folded.Hash() != l.state.Hash() || folded.Check() != nil || l.state.Check() != nil || copied.Check() != nil {
			t.Fatalf("frame %v of%s: folded %x (%v), not %x (%v); the copy: %v", l.state.LSN, kinds(body), folded.Hash(), folded.Check(), l.state.Hash(), l.state.Check(), copied.Check())
		}
		if copied.Hash() != left {
			t.Fatalf("frame %v changed an earlier copy", l.state.LSN)
		}
	}
	return l
}

func kinds(body []byte) (all string) {
	_, rest, _ := record.Open(body)
	for r := (record.Record{}); len(rest) > 0; all += " " + r.Kind.String() {
		rest, _ = record.Next(rest, &r)
	}
	return all
}

// checkSees checks that each record is passed before it is applied.
func sees(t tb, body []byte, s *state.State) func(types.Position, *record.Record) {
	next, was, replied := uint16(0), s.Hash(), true
	return func(p types.Position, r *record.Record) {
		var want record.Record
		h, err := record.Read(body, next, &want)
		if want.Identify(); err != nil || (p != types.Position{LSN: h.LSN, Index: next}) || !reflect.DeepEqual(*r, want) {
			t.Fatalf("at %v: %+v, not %+v, %v", p, *r, want, err)
		}
		if next > 0 && replied && s.Hash() == was || r.IsMovement() && s.Wallet.Seq(r.Tenant) != r.Seq-1 {
			t.Fatalf("%v is shown too early or too late", p)
		}
		next, was, replied = next+1, s.Hash(), r.Kind != record.Rejected // an item of a batch changes nothing
	}
}

func TestFoldMatchesDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		walk(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 40)
	})
}

// TestFoldMatchesDecisionsLong uses longer runs, which contain every kind of record.
func TestFoldMatchesDecisionsLong(t *testing.T) {
	seen := map[record.Kind]int{}
	for seed := range uint64(10) {
		dice := types.NewRand(seed)
		l := walk(t, func(n int) int { return int(dice.Uint64n(uint64(n))) }, 200)
		again := state.New(limits(), 99)
		for _, body := range l.frames {
			if err := again.Fold(body, func(_ types.Position, r *record.Record) { seen[r.Kind]++ }); err != nil {
				t.Fatal(err)
			}
		}
		if again.Hash() != l.state.Hash() {
			t.Errorf("seed %d: folded from the start %x, not %x", seed, again.Hash(), l.state.Hash())
		}
	}
	for _, k := range []record.Kind{record.Started, record.Posted, record.Rejected, record.KeysForgotten, record.BootstrapKeyCreated, record.Restored,
		record.Batched, record.HoldOpened, record.HoldExpired, record.KeyCreated, record.KeyRevoked, record.AllKeysRevoked} {
		if seen[k] < 10 {
			t.Errorf("%v was folded %d times", k, seen[k])
		}
	}
}

// TestFoldRejectsInvalidFrames: a frame that is not next or not whole changes nothing.
func TestFoldRejectsInvalidFrames(t *testing.T) {
	d := newMachine(t)
	d.frame(1000, record.Record{Kind: record.Started, Journal: 7})
	d.submit(2000, issue("a", "ann", 10))
	third := d.frame(3000, record.Record{Kind: record.BootstrapKeyCreated, APIKey: &event.Key{ID: 1}}, record.Record{Kind: record.KeysForgotten, Upto: 1})
	begin := func(lsn types.LSN, at types.Time) []byte { return record.Begin(nil, lsn, at) }

	s := state.New(limits(), 5)
	for _, body := range d.frames[:2] {
		if err := s.Fold(body, nil); err != nil {
			t.Fatal(err)
		}
	}
	was := s.Hash()
	refuse := func(what string, body []byte, want error) {
		t.Helper()
		err := s.Fold(body, func(p types.Position, _ *record.Record) { t.Errorf("%s: %v was shown", what, p) })
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if s.Hash() != was {
			t.Fatalf("%s: refused, and the state is another", what)
		}
	}
	refuse("the same again", d.frames[1], state.ErrOrder)
	refuse("the first again", d.frames[0], state.ErrOrder)
	refuse("one is skipped", begin(4, 3000), state.ErrOrder)
	refuse("time goes back", begin(3, 1999), state.ErrOrder)
	refuse("time goes back to the beginning", begin(3, 0), state.ErrOrder)
	refuse("a byte too many", append(bytes.Clone(third), 0), record.ErrFrame)
	refuse("a record too many", append(bytes.Clone(third), third[19:]...), record.ErrFrame)
	for cut := range third {
		refuse(fmt.Sprintf("cut at %d of %d", cut, len(third)), third[:cut], record.ErrFrame)
	}
	last := bytes.Clone(third)
	last[len(last)-4] = 99 // the kind of the last record
	refuse("the last record is of no kind", last, record.ErrFrame)

	if err := s.Fold(third, nil); err != nil || s.Hash() != d.state.Hash() {
		t.Errorf("after all that, the right one: %v", err)
	}
	if err := s.Fold(begin(4, 3000), nil); err != nil || s.LSN != 4 || s.At != 3000 {
		t.Errorf("in the same millisecond: %v, %v at %d", err, s.LSN, s.At)
	}
}

// roomOf returns the plane of a RoomError.
func roomOf(err error) types.Plane {
	low, ok := errors.AsType[*state.RoomError](err)
	if !ok {
		return types.NumPlanes
	}
	return low.Plane
}

// TestFoldReturnsErrRoom: a journal that was written with larger limits is rejected at the first
// record without room, which names the plane; with exactly enough room it is folded. The limits of a tenant do not
// matter: they apply to new requests.
func TestFoldReturnsErrRoom(t *testing.T) {
	dice := types.NewRand(3)
	l := walk(t, func(n int) int { return int(dice.Uint64n(uint64(n))) }, 300)
	fold := func(within state.Limits) (state.State, error) {
		s := state.New(within, 1)
		for _, body := range l.frames {
			if err := s.Fold(body, nil); err != nil {
				return s, err
			}
		}
		return s, nil
	}
	planes := map[string]types.Plane{"accounts": types.PlaneWallet, "holdings": types.PlaneWallet, "assets": types.PlaneWallet, "holds": types.PlaneWallet, "tenants": types.PlaneWallet}
	for what, limit := range map[string]func(*state.Limits) *int{
		"accounts": func(l *state.Limits) *int { return &l.Ledger.Accounts },
		"holdings": func(l *state.Limits) *int { return &l.Ledger.Holdings },
		"assets":   func(l *state.Limits) *int { return &l.Ledger.Assets },
		"holds":    func(l *state.Limits) *int { return &l.Ledger.Holds },
		"tenants":  func(l *state.Limits) *int { return &l.Ledger.Tenants },
		"seen":     func(l *state.Limits) *int { return &l.Idempotency.Keys },
		"askers":   func(l *state.Limits) *int { return &l.Idempotency.Tenants },
		"API keys": func(l *state.Limits) *int { return &l.Keys },
	} {
		enough := -1
		for room := range *limit(new(limits())) + 1 {
			within := limits()
			*limit(&within) = room
			s, err := fold(within)
			switch {
			case err != nil && !errors.Is(err, state.ErrRoom):
				t.Errorf("%d %s: %v", room, what, err)
			case err != nil && roomOf(err) != planes[what]:
				t.Errorf("%d %s: %v, of plane %v", room, what, err, roomOf(err))
			case err != nil && enough >= 0:
				t.Errorf("%d %s are enough, and %d are not: %v", enough, what, room, err)
			case err == nil && s.Hash() != l.state.Hash():
				t.Errorf("%d %s: folded %x, not %x", room, what, s.Hash(), l.state.Hash())
			case err == nil && enough < 0:
				enough = room
			}
		}
		if enough <= 0 {
			t.Errorf("%d %s are enough", enough, what)
		}
	}

	lower := limits()
	lower.Ledger.TenantAccounts, lower.Ledger.TenantHoldings, lower.Ledger.TenantAssets, lower.Ledger.TenantHolds, lower.Idempotency.PerTenant = 0, 0, 0, 0, 0
	if s, err := fold(lower); err != nil || s.Check() != nil || s.Hash() != l.state.Hash() {
		t.Errorf("with less for each tenant: %v, %v", err, s.Check())
	}
}

// TestStartAndRestoreSetJournal: a start record and a restore record set the ID of the journal.
func TestStartAndRestoreSetJournal(t *testing.T) {
	d := newMachine(t)
	for i, c := range []struct {
		record record.Record
		id     types.JournalID
		boots  uint64
	}{
		{record.Record{Kind: record.Started, Journal: 7}, 7, 1},
		{record.Record{Kind: record.Started, Journal: 7}, 7, 2},
		{record.Record{Kind: record.Restored, Journal: 8, Upto: 2}, 8, 2},
		{record.Record{Kind: record.Started, Journal: 8}, 8, 3},
	} {
		d.frame(0, c.record)
		if d.state.Journal != c.id || d.state.Starts != c.boots {
			t.Errorf("after frame %d: journal %d, %d starts", i+1, d.state.Journal, d.state.Starts)
		}
	}
	if d.state.Wallet.Hash() != newMachine(t).state.Wallet.Hash() {
		t.Error("the ledger is another")
	}
}

// TestOpenPanicsOutOfOrder: an LSN out of order panics.
func TestOpenPanicsOutOfOrder(t *testing.T) {
	for what, open := range map[string]func(*state.State){
		"the same":     func(s *state.State) { s.Open(1, 10) },
		"one too far":  func(s *state.State) { s.Open(3, 10) },
		"back in time": func(s *state.State) { s.Open(2, 9) },
	} {
		func() {
			s := state.New(limits(), 1)
			s.Open(1, 10)
			defer func() {
				if _, broken := recover().(types.InvariantError); !broken {
					t.Errorf("%s is opened", what)
				}
			}()
			open(&s)
		}()
	}
}

// TestApplyDoesNotAllocate covers records and frames.
func TestApplyDoesNotAllocate(t *testing.T) {
	l := limits()
	l.Ledger.MaxAmount, l.Ledger.MaxDailyDebit = types.MaxSupply(), types.MaxSupply()
	s := state.New(l, 1)
	d := &machine{tb: t, state: s}
	d.submit(0, issue("a", "ann", 1_000_000))
	r, _, _, why := d.decide(0, transfer("b", "ann", "bob", 1, 1))
	if why != event.None {
		t.Fatal(why)
	}
	d.frame(0, r)
	forgot := record.Record{Kind: record.KeysForgotten}
	if n := testing.AllocsPerRun(100, func() {
		d.state.Open(d.state.LSN+1, d.state.At)
		forgot.Upto = d.state.LSN - 1
		d.state.Apply(0, &forgot)
		r.Nonce, r.Key.ID[0] = r.Nonce+1, r.Key.ID[0]+1
		if why := d.state.Wallet.Ledger.Decide(d.state.At, &r); why != event.None {
			t.Fatal(why)
		}
		d.state.Apply(1, &r)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

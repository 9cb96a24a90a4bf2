package flow_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

const (
	perMiB = 3
	ttl    = time.Minute
	quota  = 5 << 20 // bytes of a tenant
)

var price = flow.Price{PerMiB: perMiB, Asset: "EUR", Payer: "storage:prepaid", Beneficiary: "storage:revenue", HoldTTL: ttl}

// keys: one may do everything, one may only store.
var keys = [...]event.Key{{ID: 7, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}, {ID: 8, Tenant: 1, Scopes: event.ScopeStore}}

func limits() state.Limits {
	return state.Limits{
		Ledger: ledger.Limits{Accounts: 4, Holdings: 4, Assets: 2, Tenants: 2, TenantAccounts: 4, TenantHoldings: 4, TenantAssets: 2, Holds: 8, TenantHolds: 8,
			MaxAmount: types.MinorUnits(1 << 40), MaxDailyDebit: types.MinorUnits(1 << 40), MaxDailyIssue: types.MinorUnits(1 << 40)},
		Idempotency: idempotency.Limits{Keys: 4096, PerTenant: 4096, Tenants: 2, TTL: time.Hour}, Keys: 8,
		Planes: []plane.Spec{storage.Spec(storage.Limits{Objects: 9, Holdings: 9, Buckets: 4, Uploads: 2, Parts: 4, TenantBuckets: 4, TenantUploads: 2, TenantParts: 4,
			TenantQuota: storage.Usage{Bytes: quota, Objects: 9}, BucketQuota: storage.Usage{Bytes: quota, Objects: 9}}),
			accounting.Spec(accounting.Limits{Rows: 400, Streams: 8, Tenants: 2, TenantRow: 400, TenantDim: 8, Lines: maxLines, Window: window, Grace: grace})},
	}
}

func name(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }

// hold is a reservation in the model.
type hold struct {
	id     types.TxID
	amount uint64
	until  types.Time
}

// system is a node beside a model of sums: what the payer has, what is held of it, and what the beneficiary has.
type system struct {
	*rapid.T
	node    *node.Node
	view    state.State
	out     event.Effects
	now     types.Now
	frames  int
	bytes   uint64
	reply   event.Reply
	serial  int
	funds   uint64
	revenue uint64
	frozen  bool // the payer
	holds   []hold
	spent   []types.TxID   // holds that have ended with an object
	stored  map[string]int // the object of a name
	seen    map[string]bool
	each    func(*record.Record) // is called with each record
	size    int                  // bytes of all frames
}

func newSystem(t *rapid.T, seen map[string]bool) *system { return newSystemOf(t, seen, limits()) }

func newSystemOf(t *rapid.T, seen map[string]bool, limits state.Limits) *system {
	s := &system{T: t, now: types.Now{Mono: 1, Wall: 1_700_000_000_000}, view: state.New(limits, 2), stored: map[string]int{}, seen: seen}
	s.boot(limits, state.New(limits, 1))
	for i := range keys {
		if s.step(&event.CreateKey{Caller: keys[0].ID * types.KeyID(min(i, 1)), Tenant: 1, Key: keys[i]}); s.reply.Problem != event.None {
			s.Fatal(s.reply.Problem.Code())
		}
	}
	create := &storage.CreateBucket{Header: s.head(), Bucket: storage.Bucket("photos")}
	if r := s.execute(create); r.Problem != event.None {
		s.Fatal(r.Problem.Code())
	}
	return s
}

// boot starts a node with a state.
func (s *system) boot(limits state.Limits, st state.State) {
	s.node = node.New(node.Config{State: limits, Price: price, MaxHeldReplies: 64, MaxReplayWaiters: 16, MaxHeldPerTenant: 64, MaxUnsyncedBytes: 8 << 20, CommitTimeout: time.Hour,
		StallThreshold: time.Hour, SyncTimeout: time.Hour, HeartbeatInterval: time.Hour, SweepInterval: time.Second, StartTimeout: time.Hour,
		Drain: drain.Times{Drain: time.Second, Abort: time.Second}}, st, s.now.Mono, types.NewRand(1))
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
}

// head is that of a command of the key that may only store.
func (s *system) head() command.Header {
	s.serial++
	return command.Header{Ticket: types.Ticket(s.serial), Caller: keys[1].ID, Tenant: 1}
}

func (s *system) key() types.Name {
	s.serial++
	return name(fmt.Sprint("key-", s.serial))
}

// step takes a step and makes its frame durable. The view folds it.
func (s *system) step(in event.Event) {
	s.now.Mono += types.Instant(time.Millisecond)
	s.now.Wall++
	s.reply = event.Reply{}
	for more := true; more; {
		s.out.Reset()
		s.node.Step(s.now, in, &s.out)
		for _, r := range s.out.Replies {
			s.reply = r
		}
		more = len(s.out.Frames) > 0
		for _, f := range s.out.Frames {
			s.frames++
			s.bytes += uint64(f.Len)
			s.size += int(f.Len)
			if err := s.view.Fold(bytes.Clone(s.out.Body(f)), func(_ types.Position, r *record.Record) {
				if s.each != nil {
					s.each(r)
				}
			}); err != nil {
				s.Fatal(err)
			}
		}
		if more {
			upto, size := types.LSN(s.frames), s.bytes
			s.bytes = 0
			s.out.Reset()
			s.node.Step(s.now, event.Durable{Upto: upto, Bytes: size}, &s.out)
			in = event.Applied{Upto: upto}
		}
	}
	if err := s.node.Check(); err != nil {
		s.Fatal(err)
	}
	if s.node.StateHash() != s.view.Hash() {
		s.Fatal("the fold of the frames is another state")
	}
}

func (s *system) execute(c command.Command) event.Reply {
	s.step(&event.Execute{Command: c})
	return s.reply
}

// expect compares a problem.
func (s *system) expect(what string, got, want event.Problem) {
	s.seen[what+" "+want.Code()] = true
	if got != want {
		s.Fatalf("%s: %q, want %q", what, got.Code(), want.Code())
	}
}

func (s *system) at() types.Time { return types.Time(s.now.Wall) }

// issue gives the payer money.
func (s *system) issue(t *rapid.T) {
	amount := uint64(rapid.IntRange(1, 20).Draw(t, "amount"))
	in := &event.Request{Header: command.Header{Ticket: 1, Caller: keys[0].ID, Tenant: 1, Key: s.key()},
		Item: event.Item{Op: event.Issue, To: name(price.Payer), Asset: name(price.Asset), Amount: types.MinorUnits(amount)}}
	in.Seal(nil)
	s.step(in)
	s.funds += amount
	s.compare()
}

// freeze freezes the payer at times, or ends that.
func (s *system) freeze(t *rapid.T) {
	if !s.frozen && rapid.IntRange(0, 3).Draw(t, "freezes") > 0 {
		return
	}
	in := &event.Request{Header: command.Header{Ticket: 1, Caller: keys[0].ID, Tenant: 1, Key: s.key()}, Item: event.Item{Op: event.Freeze, From: name(price.Payer)}}
	if s.frozen {
		in.Op = event.Unfreeze
	}
	in.Seal(nil)
	if s.step(in); s.reply.Problem == event.None {
		s.frozen = !s.frozen
	}
	s.compare()
}

func (s *system) held() (sum uint64) {
	for _, h := range s.holds {
		if h.until > s.at() {
			sum += h.amount
		}
	}
	return sum
}

func cost(size uint64) uint64 { return perMiB * max(1, (size+1<<20-1)>>20) }

// size is that of an object.
func size(object int) uint64 { return [...]uint64{0, 1 << 20, 1<<20 + 1, 3 << 20}[object] }

func (s *system) reserve(t *rapid.T) {
	bytes := size(rapid.IntRange(0, 3).Draw(t, "object"))
	c := &flow.Reserve{Header: s.head(), Size: bytes}
	c.Header.Key = s.key()
	c.Seal()
	want := event.None
	if s.funds-min(s.funds, s.heldAt(s.at()+1)) < cost(bytes) {
		want = event.PaymentRequired
	} else if s.frozen {
		want = event.AccountFrozen
	} else if len(s.holds) == 8 {
		want = event.HoldsFull
	}
	r := s.execute(c)
	if want == event.HoldsFull && r.Problem == event.None { // expired holds have given way
		want = event.None
	}
	s.expect("reserve", r.Problem, want)
	if want == event.None {
		s.holds = append(s.holds, hold{types.NewTxID(9, r.Position), cost(bytes), s.at() + types.Time(ttl/time.Millisecond)})
	}
	s.compare()
}

func (s *system) heldAt(at types.Time) (sum uint64) {
	for _, h := range s.holds {
		if h.until > at {
			sum += h.amount
		}
	}
	return sum
}

// put stores an object with what a hold has reserved.
func (s *system) put(t *rapid.T) {
	if len(s.holds) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.holds)-1).Draw(t, "hold")
	h := s.holds[i]
	object := rapid.IntRange(0, 3).Draw(t, "object")
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	c := &flow.PaidPut{Put: storage.Put{Header: s.head(), Bucket: storage.Bucket("photos"), Name: storage.ObjectName(key), Address: storage.Address{byte(object), 1},
		Size: size(object), File: storage.File(s.serial)}, Hold: h.id, Key: s.key()}
	c.Seal()
	old, had := s.stored[key]
	keeps := had && old == object
	frames, want := s.frames, event.None
	switch {
	case s.exceedsQuota(key, object):
		want = event.QuotaExceeded
	case s.frozen && !keeps:
		want = event.AccountFrozen
	case h.until <= s.at()+1:
		want = event.PaymentExpired
	case !keeps && cost(size(object)) > h.amount:
		want = event.PaymentRequired
	}
	s.expect("put", s.execute(c).Problem, want)
	if want != event.None {
		if s.frames != frames {
			s.Fatal("a write that failed left a record")
		}
		s.compare()
		return
	}
	s.holds, s.spent = append(s.holds[:i], s.holds[i+1:]...), append(s.spent, h.id)
	if !keeps {
		s.stored[key] = object
		s.funds -= cost(size(object))
		s.revenue += cost(size(object))
	} else {
		s.seen["put keeps"] = true
	}
	s.compare()
}

// exceedsQuota reports whether an object does not fit under a name.
func (s *system) exceedsQuota(key string, object int) bool {
	used := uint64(0)
	for _, o := range s.stored {
		used += size(o)
	}
	after := used + size(object)
	if old, had := s.stored[key]; had {
		after -= size(old)
	}
	return after > used && after > quota
}

// putInvented stores an object with a payment that is no hold of this ledger, or one that is spent.
func (s *system) putInvented(t *rapid.T) {
	ids := []types.TxID{{}, types.NewTxID(9, types.Position{LSN: 1 << 40}), types.NewTxID(9, types.Position{LSN: 1})} // none, one to come, and the frame of the API keys
	for _, h := range s.holds {
		ids = append(ids, types.NewTxID(8, h.id.Position())) // of another ledger
	}
	object, key := rapid.IntRange(0, 3).Draw(t, "object"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	c := &flow.PaidPut{Put: storage.Put{Header: s.head(), Bucket: storage.Bucket("photos"), Name: storage.ObjectName(key), Address: storage.Address{byte(object), 1},
		Size: size(object), File: storage.File(s.serial)}, Hold: rapid.SampledFrom(append(ids, s.spent...)).Draw(t, "hold"), Key: s.key()}
	c.Seal()
	frames, want := s.frames, event.PaymentExpired
	old, had := s.stored[key]
	switch {
	case s.exceedsQuota(key, object):
		want = event.QuotaExceeded
	case s.frozen && !(had && old == object):
		want = event.AccountFrozen
	}
	if s.expect("put with an invented hold", s.execute(c).Problem, want); s.frames != frames {
		s.Fatal("a write that failed left a record")
	}
	s.compare()
}

// putUnpaid stores an object without paying, which only repeats.
func (s *system) putUnpaid(t *rapid.T) {
	object := rapid.IntRange(0, 3).Draw(t, "object")
	c := &storage.Put{Header: s.head(), Bucket: storage.Bucket("photos"), Name: storage.ObjectName("a"), Address: storage.Address{byte(object), 1}, Size: size(object), File: 1}
	c.Seal()
	want := event.PaymentRequired
	if old, had := s.stored["a"]; had && old == object {
		want = event.None
	}
	s.expect("put without payment", s.execute(c).Problem, want)
	s.compare()
}

func (s *system) cancel(t *rapid.T) {
	if len(s.holds) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.holds)-1).Draw(t, "hold")
	h := s.holds[i]
	c := &flow.Cancel{Header: s.head(), Hold: h.id}
	c.Header.Key = s.key()
	if rapid.Bool().Draw(t, "by the node") {
		c.Caller = 0
	}
	c.Seal()
	want := event.None
	if h.until <= s.at()+1 {
		want = event.HoldNotActive
	} else {
		s.holds = append(s.holds[:i], s.holds[i+1:]...)
	}
	s.expect("cancel", s.execute(c).Problem, want)
	s.compare()
}

// wait lets time pass, at times until a hold expires.
func (s *system) wait(t *rapid.T) {
	d := rapid.IntRange(0, 40_000).Draw(t, "time")
	if len(s.holds) > 0 && rapid.Bool().Draw(t, "expires") {
		d = int(max(0, rapid.SampledFrom(s.holds).Draw(t, "hold").until-s.at()))
	}
	s.now.Wall += types.Time(d)
	s.now.Mono += types.Instant(time.Duration(d) * time.Millisecond)
	s.step(event.Tick{})
	s.compare()
}

// compare holds the accounts and the bucket against the sums.
func (s *system) compare() {
	for _, c := range []struct {
		account   string
		has, held uint64
	}{{price.Payer, s.funds, s.held()}, {price.Beneficiary, s.revenue, 0}} {
		has, held, _ := s.view.Wallet.Balance(s.at(), 1, name(c.account).ID, name(price.Asset).ID)
		if has != types.MinorUnits(c.has) || held != types.MinorUnits(c.held) {
			s.Fatalf("%s has %v and %v held, want %d and %d", c.account, has, held, c.has, c.held)
		}
	}
	p := s.view.Plane(types.PlaneStorage).(*storage.Plane)
	for _, key := range []string{"a", "b", "c"} {
		e, held := p.Entry(1, storage.Bucket("photos").ID, storage.ObjectName(key).ID)
		if object, want := s.stored[key]; held != want || held && e.Address[0] != byte(object) {
			s.Fatalf("%s is %v, %v", key, e.Address, held)
		}
	}
}

// checkUntilSeen checks a property until all that is wanted was seen. It fails if that takes too many checks.
func checkUntilSeen(t *testing.T, seen map[string]bool, wanted []string, property func(*rapid.T)) {
	t.Helper()
	isMissing := func(what string) bool { return !seen[what] }
	for round := 0; round == 0 || slices.ContainsFunc(wanted, isMissing); round++ {
		if round == 20 {
			t.Fatalf("never seen: %q", slices.DeleteFunc(wanted, func(what string) bool { return seen[what] }))
		}
		rapid.Check(t, property)
	}
}

// TestPaidWritesAgreeWithSums: an object and its price are recorded together or not at all, whatever is reserved, expired or
// refused.
func TestPaidWritesAgreeWithSums(t *testing.T) {
	seen := map[string]bool{}
	wanted := []string{"reserve ", "reserve payment_required", "put ", "put keeps", "put payment_required", "put payment_expired", "put quota_exceeded", "put account_frozen", "reserve account_frozen", "put with an invented hold account_frozen", "cancel ", "cancel hold_not_active",
		"put without payment payment_required", "put without payment ", "put with an invented hold payment_expired"}
	checkUntilSeen(t, seen, wanted, func(t *rapid.T) {
		s := newSystem(t, seen)
		t.Repeat(map[string]func(*rapid.T){"issue": s.issue, "freeze": s.freeze, "reserve": s.reserve, "put": s.put, "put again": s.put, "put unpaid": s.putUnpaid, "put invented": s.putInvented, "cancel": s.cancel, "wait": s.wait})
	})
}

// TestPaidPutNeedsNoIndex: a paid put has a key that was never used before, so it is decided whatever the window of keys
// has forgotten and the index has reached.
func TestPaidPutNeedsNoIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSystem(t, map[string]bool{})
		for s.funds < cost(size(0)) {
			s.issue(t)
		}
		s.step(event.Indexed{Upto: types.LSN(s.frames)})
		s.now.Wall += types.Time(2 * time.Hour / time.Millisecond)
		s.now.Mono += types.Instant(2 * time.Hour)
		s.step(event.Tick{})
		var status event.Status
		if s.node.Status(&status); status.Forgot == 0 {
			t.Fatal("no key is forgotten")
		}
		reserve := &flow.Reserve{Header: s.head()}
		reserve.Header.Key, reserve.IndexedTo = s.key(), types.LSN(s.frames)
		reserve.Seal()
		r := s.execute(reserve)
		put := &flow.PaidPut{Put: storage.Put{Header: s.head(), Bucket: storage.Bucket("photos"), Name: storage.ObjectName("a"), Address: storage.Address{0, 1}, File: 1},
			Hold: types.NewTxID(9, r.Position), Key: s.key()}
		put.Seal()
		if p := s.execute(put).Problem; r.Problem != event.None || p != event.None {
			t.Fatalf("reserve %q, put %q", r.Problem.Code(), p.Code())
		}
	})
}

// TestFlowCommandsNeedPrice: without a price the commands of the flow are malformed, and a put is free.
func TestFlowCommandsNeedPrice(t *testing.T) {
	free := flow.New(flow.Price{})
	if free.Over(&storage.Put{}, storage.New(storage.Limits{}, 1), nil) != nil {
		t.Error("a put is a command of the flow")
	}
	reserve := &flow.Reserve{}
	var reply event.Reply
	free.Over(reserve, storage.New(storage.Limits{}, 1), nil).Decide(0, reserve, nil, &reply)
	if reply.Problem != event.BadRequest {
		t.Error(reply.Problem.Code())
	}
}

// TestPrice: each started MiB counts, and an empty object costs as much as one.
func TestPrice(t *testing.T) {
	p := flow.Price{PerMiB: 1 << 63}
	for _, c := range []struct {
		size uint64
		want types.Amount
	}{{0, types.Amount{Lo: 1 << 63}}, {1 << 20, types.Amount{Lo: 1 << 63}}, {1<<20 + 1, types.Amount{Hi: 1}}, {2<<20 + 1, types.Amount{Hi: 1, Lo: 1 << 63}}} {
		if got := p.Of(c.size); got != c.want {
			t.Errorf("%d bytes: %v, want %v", c.size, got, c.want)
		}
	}
}

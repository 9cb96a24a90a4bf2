package counter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	"macronode/examples/counter"
)

const admin, other types.KeyID = 7, 8 // the keys of the tenants 1 and 2

func limits() state.Limits {
	return state.Limits{
		Ledger:      ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 2, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
		Idempotency: idempotency.Limits{Keys: 64, PerTenant: 64, Tenants: 2, TTL: time.Hour},
		Keys:        8,
		Planes:      []plane.Spec{counter.Spec(counter.Limits{Counters: 5, TenantCounters: 3, Tenants: 2})},
	}
}

// outcome is what the reference model expects of an idempotency key.
type outcome struct {
	tenant types.Tenant
	name   string
	delta  uint64
	answer []byte
	acked  bool
}

// system is a node, its disk, and the reference model: a map of sums.
type system struct {
	*rapid.T
	node     *node.Node
	out      event.Effects
	now      types.Now
	bodies   [][]byte       // of all frames that were begun
	hashes   []types.Hash64 // of the state after each
	unsynced uint64         // bytes
	durable  int            // frames
	ticket   types.Ticket
	sent     map[types.Ticket]string
	outcomes map[string]outcome
	byFrame  map[int]string // the key whose outcome a frame has
}

func newSystem(t *rapid.T) *system {
	s := &system{T: t, now: types.Now{Mono: 1, Wall: 1_700_000_000_000}, outcomes: map[string]outcome{}, byFrame: map[int]string{}}
	s.start(state.New(limits(), 1))
	return s
}

// start makes a node from a recovered state.
func (s *system) start(recovered state.State) {
	s.sent = map[types.Ticket]string{}
	// The model does not know the limit of held replies, so no run reaches it: a command is held until the next sync.
	s.node = node.New(node.Config{State: limits(), MaxHeldReplies: 4096, MaxReplayWaiters: 4, MaxUnsyncedBytes: 1 << 20, CommitTimeout: time.Hour,
		StallThreshold: time.Hour, SyncTimeout: time.Hour, HeartbeatInterval: time.Hour, SweepInterval: time.Hour, StartTimeout: time.Hour,
		Drain: drain.Times{Drain: time.Second, Abort: time.Second}}, recovered, s.now.Mono, types.NewRand(1))
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	s.step(&event.CreateKey{Key: event.Key{ID: admin, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}})
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
	s.sync()
	s.ticket++
	s.step(&event.CreateKey{Ticket: s.ticket, Caller: admin, Tenant: 1, Key: event.Key{ID: other, Tenant: 2, Scopes: event.ScopeIssue}})
	s.sync()
}

// step takes one event, keeps its frames and notes which keys are answered.
func (s *system) step(in event.Event) {
	s.now.Mono++
	s.now.Wall++
	s.out.Reset()
	s.node.Step(s.now, in, &s.out)
	for _, f := range s.out.Frames {
		s.bodies = append(s.bodies, bytes.Clone(s.out.Body(f)))
		s.hashes = append(s.hashes, s.node.StateHash())
		s.unsynced += uint64(f.Len)
	}
	for _, r := range s.out.Replies {
		key, asked := s.sent[r.Ticket]
		if !asked || r.Position.LSN == 0 {
			continue
		}
		o := s.outcomes[key]
		if int(r.Position.LSN) > s.durable {
			s.Fatalf("the answer of %s was sent before its frame %v was durable", key, r.Position)
		}
		if got := s.render(r.Position); !bytes.Equal(got, o.answer) {
			s.Fatalf("%s is answered %s, the first outcome was %s", key, got, o.answer)
		}
		o.acked = true
		s.outcomes[key] = o
	}
	if err := s.node.Check(); err != nil {
		s.Fatal(err)
	}
}

func (s *system) render(p types.Position) []byte {
	st := state.New(limits(), 1)
	f := record.Sealed{Journal: 9, LSN: p.LSN, Body: s.bodies[p.LSN-1]}
	answer, _, owner, err := st.Render(nil, &f, p.Index)
	if o, known := s.outcomes[s.byFrame[int(p.LSN)]]; err != nil || !known || owner != o.tenant {
		s.Fatalf("render %v: tenant %v, %v", p, owner, err)
	}
	return answer
}

// sum is the value of a counter in the reference model, of all outcomes that are not lost.
func (s *system) sum(t types.Tenant, name string) (sum uint64, known bool) {
	for _, o := range s.outcomes {
		if o.tenant == t && o.name == name && !bytes.Contains(o.answer, []byte("problem")) {
			sum, known = sum+o.delta, true
		}
	}
	return sum, known
}

// names returns the number of counters of a tenant.
func (s *system) names(t types.Tenant) int {
	names := map[string]bool{}
	for _, o := range s.outcomes {
		if _, known := s.sum(t, o.name); known {
			names[o.name] = true
		}
	}
	return len(names)
}

// add sends a command and compares what the node decided with the model.
func (s *system) add(*rapid.T) {
	number := rapid.IntRange(0, 24).Draw(s.T, "key")
	key, tenant, caller := fmt.Sprintf("key-%d", number), types.Tenant(1), admin
	if number%2 == 1 {
		tenant, caller = 2, other
	}
	name := fmt.Sprintf("counter-%d", rapid.IntRange(0, 3).Draw(s.T, "name"))
	delta := rapid.SampledFrom([]uint64{1, 2, 40, math.MaxUint64 - 50}).Draw(s.T, "delta")
	s.ticket++
	c := &counter.Add{Header: command.Header{Ticket: s.ticket, Caller: caller, Tenant: tenant, Key: types.Name{Text: []byte(key)}},
		Name: types.Name{Text: []byte(name)}, Delta: delta}
	if err := c.Validate(); err != nil {
		s.Fatal(err)
	}
	c.Seal()
	s.sent[s.ticket] = key
	first, used := s.outcomes[key]
	sum, known := s.sum(tenant, name)
	full := !known && (s.names(tenant) == 3 || s.names(1)+s.names(2) == 5)
	frames := len(s.bodies)
	if !used && !full { // the node will record an outcome: the model computes it before
		o := outcome{tenant: tenant, name: name, delta: delta, answer: fmt.Appendf(nil, `{"name":%q,"value":"%d"}`, name, sum+delta)}
		if sum+delta < delta {
			o.answer = nil // set below: the problem contains the position
		}
		s.outcomes[key] = o
		s.byFrame[frames+1] = key
	}
	s.step(&event.Execute{Command: c})
	recorded := len(s.bodies) - frames
	switch {
	case used && (first.name != name || first.delta != delta), used, full:
		if recorded != 0 {
			s.Fatalf("%s (used %v, full %v) was recorded again", key, used, full)
		}
	default:
		if recorded != 1 {
			s.Fatalf("%s was not recorded", key)
		}
		got := s.render(types.Position{LSN: types.LSN(frames + 1)})
		if o := s.outcomes[key]; o.answer == nil {
			if !bytes.Contains(got, []byte(`"code":"limits_exceeded"`)) {
				s.Fatalf("an overflow was answered %s", got)
			}
			o.answer = got
			s.outcomes[key] = o
		} else if !bytes.Equal(got, o.answer) {
			s.Fatalf("%s is recorded as %s, want %s", key, got, o.answer)
		}
	}
}

// sync makes all frames durable and applied.
func (s *system) sync() {
	if s.unsynced == 0 {
		return
	}
	bytes := s.unsynced
	s.unsynced, s.durable = 0, len(s.bodies)
	s.step(event.Durable{Upto: types.LSN(s.durable), Bytes: bytes})
	s.step(event.Applied{Upto: types.LSN(s.durable)})
}

// crash loses a part of what was not durable, and recovers from a snapshot and the frames behind it.
func (s *system) crash(*rapid.T) {
	left := rapid.IntRange(s.durable, len(s.bodies)).Draw(s.T, "frames left")
	cut := rapid.IntRange(0, left).Draw(s.T, "snapshot after")
	old, recovered := state.New(limits(), 1), state.New(limits(), 2)
	for i, body := range s.bodies[:left] {
		if i == cut && i > 0 {
			old.Dump(func(row []byte) {
				if err := recovered.Load(row); err != nil {
					s.Fatalf("snapshot after frame %d: %v", cut, err)
				}
			})
		}
		if err := old.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	for _, body := range s.bodies[recovered.LSN:left] {
		if err := recovered.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	if left > 0 && recovered.Hash() != s.hashes[left-1] {
		s.Fatalf("recovery to frame %d made another state", left)
	}
	for frame := left + 1; frame <= len(s.bodies); frame++ {
		if key, any := s.byFrame[frame]; any {
			if s.outcomes[key].acked {
				s.Fatalf("%s was acknowledged and is lost", key)
			}
			delete(s.outcomes, key)
			delete(s.byFrame, frame)
		}
	}
	s.bodies, s.hashes, s.unsynced, s.durable = s.bodies[:left], s.hashes[:left], 0, left
	s.start(recovered)
	p := recovered.Plane(types.PlaneExample).(*counter.Plane)
	for i := range 8 {
		tenant := types.Tenant(1 + i/4)
		c := counter.Add{Name: types.Name{Text: fmt.Appendf(nil, "counter-%d", i%4)}}
		c.Seal()
		if want, _ := s.sum(tenant, string(c.Name.Text)); p.Value(tenant, c.Name.ID) != want {
			s.Fatalf("%s of tenant %d is %d, want %d", c.Name.Text, tenant, p.Value(tenant, c.Name.ID), want)
		}
		if used, limit := p.Quota(tenant); used != s.names(tenant) || limit != 3 {
			s.Fatalf("tenant %d has %d of %d counters, want %d of 3", tenant, used, limit, s.names(tenant))
		}
	}
}

// TestCountersSurviveCrashes compares the plane in a whole node with a map of sums, under retries,
// conflicting keys, full tables, overflows, lost frames and snapshots.
func TestCountersSurviveCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSystem(t)
		t.Repeat(map[string]func(*rapid.T){"add": s.add, "add again": s.add, "sync": func(*rapid.T) { s.sync() }, "crash": s.crash})
	})
}

// TestRecordOfAnotherProgram folds a counter's record by a state without the plane.
func TestRecordOfAnotherProgram(t *testing.T) {
	l := limits()
	l.Planes = nil
	s := state.New(l, 1)
	body := record.Begin(nil, 1, 1)
	body, _ = record.Add(body, 0, &record.Record{Kind: record.PlaneKind(types.PlaneExample, 0), Tenant: 1, Payload: []byte("0123456789abcdefname")})
	if err := s.Fold(body, nil); !errors.Is(err, state.ErrPlane) {
		t.Errorf("folded a record of a plane that is not there: %v", err)
	}
}

// TestFitsRejectsWhatDoesNotContinue: records are read from disks.
func TestFitsRejectsWhatDoesNotContinue(t *testing.T) {
	p := counter.New(counter.Limits{Counters: 1, Tenants: 1}, 1) // a quota of 0 concerns new requests only
	payload := func(delta, value uint64, name string) record.Record {
		b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, delta), value)
		return record.Record{Kind: record.PlaneKind(types.PlaneExample, 0), Tenant: 1, Payload: append(b, name...)}
	}
	first := payload(5, 5, "a")
	if !p.Fits(&first) {
		t.Fatal("the first record of a counter does not fit")
	}
	p.Apply(0, types.TxID{}, &first)
	other := payload(2, 7, "a") // fits but for its kind
	other.Kind++
	for what, r := range map[string]record.Record{
		"another kind": other, "a gap": payload(5, 11, "a"), "nothing added": payload(0, 5, "a"), "an overflow": payload(math.MaxUint64, 4, "a"),
		"no name": payload(1, 6, ""), "a long name": payload(1, 6, strings.Repeat("a", counter.MaxName+1)), "a full table": payload(1, 1, "b"), "cut short": {Kind: first.Kind, Payload: []byte{1}},
	} {
		if p.Fits(&r) {
			t.Errorf("%s: fits", what)
		}
	}
	if next := payload(2, 7, "a"); !p.Fits(&next) {
		t.Error("the next record does not fit")
	}
}

// TestStateHashCoversThePlane: a change of the plane changes the hash of the whole state, and a copy has
// the same hash.
func TestStateHashCoversThePlane(t *testing.T) {
	s, copied := state.New(limits(), 1), state.State{}
	if s.Plane(types.PlaneExample) == nil || s.Plane(types.NumPlanes) != nil || s.Plane(types.PlaneExample+types.NumPlanes) != nil {
		t.Error("a plane ID beyond the list is not no plane")
	}
	before := s.Hash()
	r := record.Record{Kind: record.PlaneKind(types.PlaneExample, 0), Tenant: 1, Payload: []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00a")}
	p := s.Plane(types.PlaneExample)
	if !p.Fits(&r) {
		t.Fatal("the record does not fit")
	}
	p.Apply(0, types.TxID{}, &r)
	if s.Hash() == before {
		t.Error("the hash of the state does not cover the plane")
	}
	if s.CopyTo(&copied); copied.Hash() != s.Hash() {
		t.Error("a copy has another hash")
	}
}

// openFrame is the frame of a step that applies what it gets.
type openFrame struct {
	plane.Frame
	p *counter.Plane
	r record.Record
}

func (f *openFrame) Record() *record.Record { return &f.r }
func (f *openFrame) Add() types.Position {
	f.p.Apply(0, types.TxID{}, &f.r)
	return types.Position{LSN: 1}
}

// TestDecideAllocatesNothing: a step takes no memory, so its time is bounded.
func TestDecideAllocatesNothing(t *testing.T) {
	f := &openFrame{p: counter.New(counter.Limits{Counters: 4, TenantCounters: 4, Tenants: 1}, 1)}
	c := &counter.Add{Header: command.Header{Tenant: 1}, Name: types.Name{Text: []byte("visits")}, Delta: 1}
	c.Seal()
	var reply event.Reply
	if n := testing.AllocsPerRun(1000, func() { f.p.Decide(0, c, f, &reply) }); n != 0 {
		t.Errorf("a decision makes %v allocations", n)
	}
	if got := f.p.Value(1, c.Name.ID); got != 1001 || reply.Position.LSN != 1 {
		t.Errorf("the counter is %d, %+v", got, reply)
	}
}

// TestInvalidCommands: the reason names the field.
func TestInvalidCommands(t *testing.T) {
	for _, c := range []struct{ key, name, want string }{
		{"k", "a/b", "counter: name must have only A-Z a-z 0-9 _ : . -"},
		{"k", "", "counter: name must have 1 to 64 bytes, delta must be 1 or more"},
		{"k", strings.Repeat("n", counter.MaxName+1), "counter: name must have 1 to 64 bytes, delta must be 1 or more"},
		{"k k", "a", types.ErrKey.Error()},
	} {
		in := &counter.Add{Name: types.Name{Text: []byte(c.name)}, Delta: 1}
		in.Key.Text = []byte(c.key)
		if err := in.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("key %q, name %q: %v", c.key, c.name, err)
		}
	}
}

// TestRequestHashCoversTheRequest: the same key with another name or another delta is a conflict, so their hashes differ.
func TestRequestHashCoversTheRequest(t *testing.T) {
	hash := func(name string, delta uint64) types.RequestHash {
		c := &counter.Add{Name: types.Name{Text: []byte(name)}, Delta: delta}
		c.Seal()
		return c.Hash
	}
	first, again := hash("visits", 3), hash("visits", 3)
	if first != again {
		t.Error("the same request has two hashes")
	}
	if first == hash("visits", 4) || first == hash("orders", 3) {
		t.Error("another request has the same hash")
	}
}

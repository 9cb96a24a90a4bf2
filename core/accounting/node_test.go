package accounting_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
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
	reference "macronode/models/accounting"
)

// apiKeys: one may do everything, one may only record usage, of another tenant.
var apiKeys = [...]event.Key{{ID: 7, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}, {ID: 8, Tenant: 2, Scopes: event.ScopeMeter}}

const windowKeys = 12 // idempotency keys and refs in memory

func nodeLimits() state.Limits {
	l, _ := limits(false)
	return state.Limits{
		Ledger:      ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 3, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
		Idempotency: idempotency.Limits{Keys: windowKeys, PerTenant: windowKeys, Tenants: 3, TTL: time.Hour}, Keys: 4,
		Planes: []plane.Spec{accounting.Spec(l)},
	}
}

// change is what a frame did to the model. Of a seal, tenant is 0.
type change struct {
	lsn    int
	at     types.Time
	tenant types.Tenant
	given  []accounting.Event
}

// call is a command that was sent and not answered.
type call struct {
	tenant   types.Tenant
	given    []accounting.Event // as they were before Seal
	problems []reference.Outcome
	want     reference.Counts
	refused  event.Problem // by the node, before the plane decides
}

// refIndex has the refs of the frames up to mark.
type refIndex struct {
	mark int
	refs map[refKey]command.PriorOutcome
}

func (x *refIndex) clone() refIndex { return refIndex{x.mark, maps.Clone(x.refs)} }

// system is a node, its disk and its index, beside the reference model.
type system struct {
	*rapid.T
	node   *node.Node
	view   state.State // the fold of all frames
	status event.Status
	out    event.Effects
	now    types.Now
	seen   map[string]int

	frames   [][]byte
	synced   int    // frames on the disk
	unsynced uint64 // bytes of the others
	index    refIndex
	table    refIndex // of the index, on the disk
	model    *reference.Book
	changes  []change
	reported map[refKey]accounting.Event // that a frame has
	acked    map[refKey]bool
	calls    map[types.Ticket]*call
	unknown  []*call // that a crash left without an answer
	ticket   types.Ticket
}

func newSystem(t *rapid.T, seen map[string]int) *system {
	s := &system{T: t, seen: seen, now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}, view: state.New(nodeLimits(), 2), acked: map[refKey]bool{},
		index: refIndex{refs: map[refKey]command.PriorOutcome{}}, table: refIndex{refs: map[refKey]command.PriorOutcome{}}}
	s.replay()
	s.start(state.New(nodeLimits(), 1))
	for i := range apiKeys {
		s.step(&event.CreateKey{Caller: apiKeys[0].ID * types.KeyID(min(i, 1)), Tenant: 1, Key: apiKeys[i]})
		s.sync(nil)
	}
	return s
}

// start makes a node from a recovered state.
func (s *system) start(recovered state.State) {
	const never = 10_000 * time.Hour
	s.calls = map[types.Ticket]*call{}
	s.node = node.New(node.Config{State: nodeLimits(), MaxHeldReplies: 64, MaxReplayWaiters: 4, MaxUnsyncedBytes: 4 << 20, CommitTimeout: never, StallThreshold: never,
		SyncTimeout: never, HeartbeatInterval: never, SweepInterval: time.Second, StartTimeout: never, Drain: drain.Times{Drain: time.Second, Abort: time.Second}},
		recovered, s.now.Mono, types.NewRand(1))
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	s.step(event.Indexed{Upto: types.LSN(s.table.mark)})
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
	s.sync(nil)
}

// step takes one event. The fold of its frame is the state of the node.
func (s *system) step(in event.Event) { s.stepAs(in, func() {}) }

// stepAs is step; the model decides before the replies are compared.
func (s *system) stepAs(in event.Event, decides func()) {
	s.now.Mono++
	s.out.Reset()
	s.node.Step(s.now, in, &s.out)
	s.node.Status(&s.status)
	for _, f := range s.out.Frames {
		s.frames = append(s.frames, bytes.Clone(s.out.Body(f)))
		s.unsynced += uint64(f.Len)
		s.folded(s.frames[len(s.frames)-1])
	}
	decides()
	for _, r := range s.out.Replies {
		s.answered(r)
	}
	if err := s.node.Check(); err != nil {
		s.Fatal(err)
	}
	if s.node.StateHash() != s.view.Hash() {
		s.Fatal("the fold of the frames is another state")
	}
}

// folded folds a frame, and compares its slices with those that the model seals at its time.
func (s *system) folded(body []byte) {
	if err := s.view.Fold(body, nil); err != nil {
		s.Fatal(err)
	}
	sealed := slicesOf(s.T, body)
	if len(sealed) == 0 {
		return
	}
	if s.status.DegradedBy.Has(types.ClockUntrusted) {
		s.Fatal("sealed while the clock is untrusted")
	}
	s.changes = append(s.changes, change{lsn: len(s.frames), at: s.view.At})
	want := s.model.Seal(int64(s.view.At), 1000)
	if len(want) != len(sealed) {
		s.Fatalf("%d slices at %d, the model has %d", len(sealed), s.view.At, len(want))
	}
	for i := range want {
		if got := plain(&sealed[i]); !reflect.DeepEqual(got, want[i]) {
			s.Fatalf("slice %+v, the model has %+v", got, want[i])
		}
		s.seen[sealed[i].Kind.String()]++
	}
}

// slicesOf returns the slices of frames.
func slicesOf(t *rapid.T, frames ...[]byte) (sealed []accounting.Slice) {
	for _, body := range frames {
		h, rest, err := record.OpenWhole(body)
		if err != nil {
			t.Fatal(err)
		}
		var r record.Record
		for range h.Count {
			rest, _ = record.Next(rest, &r)
			if _, ok := accounting.ReadSlice(&r); !ok {
				continue
			}
			slice, err := accounting.DecodeSlice(r.Tenant, r.Payload)
			if err != nil {
				t.Fatal(err)
			}
			sealed = append(sealed, slice)
		}
	}
	return sealed
}

func (s *system) plane() *accounting.Plane {
	return s.view.Plane(types.PlaneAccounting).(*accounting.Plane)
}

// report sends new events, and some of those that were reported.
func (s *system) report(*rapid.T) {
	tenant := types.Tenant(rapid.IntRange(1, 2).Draw(s.T, "tenant"))
	var given []accounting.Event
	for i := range rapid.IntRange(1, 4).Draw(s.T, "events") {
		e := drawEvent(s.T, s.status.At, func(name types.NameHash) (accounting.Event, bool) {
			e, ok := s.reported[refKey{tenant, name}]
			return e, ok
		})
		e.Place = uint16(i)
		given = append(given, e)
	}
	s.send(&call{tenant: tenant, given: given})
}

// retry sends events whose command a crash left without an answer.
func (s *system) retry(*rapid.T) {
	if len(s.unknown) == 0 {
		return
	}
	c := &call{tenant: s.unknown[0].tenant, given: slices.Clone(s.unknown[0].given)}
	s.unknown = s.unknown[1:]
	for i := range c.given {
		if c.given[i].Undated {
			c.given[i].Time = s.status.At
		}
	}
	s.send(c)
	if len(c.problems) == 0 && c.refused == event.None && c.want.Recorded == 0 {
		s.seen["a retry after a crash finds its events"]++
	}
}

// send sends a command with what the index has, and predicts what becomes of it.
func (s *system) send(c *call) {
	if len(s.calls) > 32 {
		s.sync(nil)
	}
	s.ticket++
	in := &accounting.RecordEvents{Header: command.Header{Ticket: s.ticket, Caller: apiKeys[c.tenant-1].ID, Tenant: c.tenant, IndexedTo: types.LSN(s.index.mark)},
		Events: slices.Clone(c.given)}
	if in.Seal() != nil {
		return // two events with the same ID differ
	}
	prior := s.index.refs
	if rapid.IntRange(0, 7).Draw(s.T, "an old read of the index") == 0 {
		in.IndexedTo, prior = types.LSN(s.table.mark), s.table.refs
	}
	in.Refs(func(ref types.NameHash, to *command.PriorOutcome) { *to = prior[refKey{c.tenant, ref}] })
	switch before := s.status; {
	case in.IndexedTo < before.Forgot:
		c.refused = event.StaleIndexRead
	case 4*(windowKeys/2+len(in.Events)) > 3*windowKeys: // the window keeps half of its keys, and events leave a quarter
		c.refused = event.TooManyEvents
	case 4*(int(before.Keys)+len(in.Events)) > 3*windowKeys:
		c.refused = event.EventsDeferred
	default:
		c.refused = event.None
	}
	s.calls[s.ticket] = c
	frames := len(s.frames)
	s.countOrigins(c)
	s.stepAs(&event.Execute{Command: in}, func() { s.decides(c) })
	if recorded := len(s.frames) > frames; recorded != (c.refused == event.None && len(c.problems) == 0) {
		s.Fatalf("recorded %v, refused %v, problems %v", recorded, c.refused.Code(), c.problems)
	}
}

// decides lets the model decide a command at the time of its step.
func (s *system) decides(c *call) {
	if c.refused != event.None {
		return
	}
	at := s.status.At
	c.problems, c.want = s.model.Record(int64(at), c.tenant, meantAll(c.given))
	if len(c.problems) == 0 {
		s.changes = append(s.changes, change{len(s.frames), at, c.tenant, c.given})
		s.remember(c.tenant, c.given)
	}
}

// countOrigins counts where the outcome of a known event comes from.
func (s *system) countOrigins(c *call) {
	for i := range c.given {
		k := refKey{c.tenant, accounting.EventName(c.given[i].Source, c.given[i].ID)}
		if at, known := s.index.refs[k]; known && c.refused == event.None && at.ID.Position().LSN <= s.status.Forgot {
			s.seen["a duplicate that only the index has"]++
		}
	}
}

func meantAll(given []accounting.Event) (events []reference.Event) {
	for i := range given {
		events = append(events, meant(&given[i]))
	}
	return events
}

func (s *system) remember(t types.Tenant, given []accounting.Event) {
	for _, e := range given {
		k := refKey{t, accounting.EventName(e.Source, e.ID)}
		if _, known := s.reported[k]; !known {
			s.reported[k] = e
		}
	}
}

// answered compares an answer with the prediction.
func (s *system) answered(r event.Reply) {
	c := s.calls[r.Ticket]
	if delete(s.calls, r.Ticket); c == nil {
		return
	}
	if int(r.After) > s.synced {
		s.Fatalf("the reply %+v reveals a frame that is not durable", r)
	}
	switch {
	case c.refused != event.None:
		if r.Problem != c.refused {
			s.Fatalf("refused with %q, want %q", r.Problem.Code(), c.refused.Code())
		}
		s.seen[map[event.Problem]string{event.StaleIndexRead: "a stale read of the index", event.TooManyEvents: "more events than the window takes at once",
			event.EventsDeferred: "the rest of the window is reserved"}[c.refused]]++
	case len(c.problems) > 0:
		if got := outcomes[r.Problem]; !slices.Contains(c.problems, got) {
			s.Fatalf("problem %q, the model has %v", r.Problem.Code(), c.problems)
		}
		s.seen[string(outcomes[r.Problem])]++
	case r.Problem != event.None:
		s.Fatalf("problem %q, the model has %+v", r.Problem.Code(), c.want)
	default:
		sealed := record.Sealed{Journal: 9, LSN: r.Position.LSN, Body: s.frames[r.Position.LSN-1]}
		answer, _, owner, err := s.view.Render(nil, &sealed, r.Position.Index)
		if want := fmt.Sprintf(`{"recorded":%d,"duplicate":%d,"late":%d}`, c.want.Recorded, c.want.Duplicate, c.want.Late); err != nil || owner != c.tenant || string(answer) != want {
			s.Fatalf("answer %s of tenant %d, %v; the model has %s", answer, owner, err, want)
		}
		for _, e := range c.given {
			s.acked[refKey{c.tenant, accounting.EventName(e.Source, e.ID)}] = true
		}
	}
}

// sync makes all frames durable and applied, and sometimes indexed.
func (s *system) sync(*rapid.T) {
	if s.unsynced > 0 {
		size := s.unsynced
		s.unsynced, s.synced = 0, len(s.frames)
		s.step(event.Durable{Upto: types.LSN(s.synced), Bytes: size})
		s.step(event.Applied{Upto: types.LSN(s.synced)})
	}
}

// fold brings the index forward by a few frames, and sometimes makes it durable.
func (s *system) fold(*rapid.T) {
	p := s.plane()
	for range rapid.IntRange(0, 12).Draw(s.T, "frames") {
		if s.index.mark == s.synced {
			break
		}
		h, rest, _ := record.OpenWhole(s.frames[s.index.mark])
		var r record.Record
		for n := range h.Count {
			rest, _ = record.Next(rest, &r)
			for i := range p.Refs(&r) {
				ref, content := p.Ref(&r, i)
				s.index.refs[refKey{r.Tenant, ref}] = command.PriorOutcome{Hash: content, ID: types.NewTxID(9, types.Position{LSN: h.LSN, Index: n}), At: h.At}
			}
		}
		s.index.mark++
	}
	if rapid.Bool().Draw(s.T, "table") {
		s.table = s.index.clone()
		s.step(event.Indexed{Upto: types.LSN(s.table.mark)})
	}
}

// compare compares all usage with the model.
func (s *system) compare(*rapid.T) {
	if events := checkUsage(s.T, s.plane(), slicesOf(s.T, s.frames...), s.model); events != len(s.reported) {
		s.Fatalf("%d events are counted, %d were recorded", events, len(s.reported))
	}
}

// TestNodeCountsEachEventOnce compares the plane in a whole node with the model, under lost frames, restarts, an index that
// is behind or lost, and clocks that jump: an acknowledged event is counted once, for ever, and each window is sealed
// once, when the node's own time has passed its end.
func TestNodeCountsEachEventOnce(t *testing.T) {
	seen := map[string]int{}
	want := []string{"usage", "correction", "conflict", "too old", "in the future", "overflow", "capacity", "frames are lost", "a retry after a crash finds its events",
		"a duplicate that only the index has", "a stale read of the index", "more events than the window takes at once", "the rest of the window is reserved", "usage is due while the clock is untrusted", "jump back true", "jump back false"}
	rare := func(what string) bool { return seen[what] == 0 }
	for range 20 {
		rapid.Check(t, func(r *rapid.T) {
			s := newSystem(r, seen)
			r.Repeat(map[string]func(*rapid.T){"report": s.report, "report more": s.report, "retry": s.retry, "sync": s.sync, "fold": s.fold, "pass": s.pass,
				"boundary": s.boundary, "jump": s.jump, "trust": s.trust, "crash": s.crash, "": s.compare})
		})
		if t.Failed() || !slices.ContainsFunc(want, rare) {
			break
		}
	}
	if i := slices.IndexFunc(want, rare); i >= 0 {
		t.Errorf("%s never occurred", want[i])
	}
	t.Log(seen)
}

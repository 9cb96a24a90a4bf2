package export_test

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	reference "macronode/models/export"
)

// apiKeys: an operator of tenant 1, and a caller of tenant 2 without the scope admin.
var apiKeys = [...]event.Key{{ID: 7, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true}, {ID: 8, Tenant: 2, Scopes: event.AllScopes &^ event.ScopeAdmin}}

// newModel has limits of tenants, or tenants that leave room for others.
func newModel(shares bool) *reference.Book {
	b := &reference.Book{MaxLanes: 5, MaxTenantLanes: 3, MaxRows: 5, MaxTenantRows: 3}
	if shares {
		b.MaxTenantLanes, b.MaxTenantRows = 0, 0
	}
	return b
}

func nodeLimits(shares bool) state.Limits {
	m := newModel(shares)
	return state.Limits{
		Ledger:      ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 3, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
		Idempotency: idempotency.Limits{Keys: 4, PerTenant: 4, Tenants: 3, TTL: time.Hour}, Keys: 4,
		Planes: []plane.Spec{export.Spec(export.Limits{Lanes: m.MaxLanes, TenantLanes: m.MaxTenantLanes, Rows: m.MaxRows, TenantRows: m.MaxTenantRows})},
	}
}

func newNode(shares bool, recovered state.State, now types.Instant) *node.Node {
	const never = 10_000 * time.Hour
	return node.New(node.Config{State: nodeLimits(shares), MaxHeldReplies: 64, MaxReplayWaiters: 4, MaxUnsyncedBytes: 4 << 20, CommitTimeout: never, StallThreshold: never,
		SyncTimeout: never, HeartbeatInterval: never, SweepInterval: time.Second, StartTimeout: never, Drain: drain.Times{Drain: time.Hour, Abort: time.Hour}},
		recovered, now, types.NewRand(1))
}

// A step of the plane: a command, and what the model does by it.
type call struct {
	command command.Command
	change  func(b *reference.Book, at int64) reference.Outcome
	caller  types.KeyID
	want    reference.Outcome
	problem event.Problem // before the plane decides
	at      uint64        // the position of its answer
}

// change is what a frame did to the model.
type change struct {
	lsn int
	at  types.Time
	do  func(b *reference.Book, at int64) reference.Outcome
}

// system is a node with its disk, beside the reference model.
type system struct {
	*rapid.T
	node   *node.Node
	view   state.State // the fold of all frames
	status event.Status
	out    event.Effects
	now    types.Now
	seen   map[string]int
	shares bool // tenants have no limits of their own

	frames   [][]byte
	synced   int    // frames on the disk
	unsynced uint64 // bytes of the others
	model    *reference.Book
	changes  []change
	calls    map[types.Ticket]*call
	ticket   types.Ticket
}

func newSystem(t *rapid.T, seen map[string]int) *system {
	shares := rapid.Bool().Draw(t, "shares")
	s := &system{T: t, seen: seen, shares: shares, now: types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}, view: state.New(nodeLimits(shares), 2), model: newModel(shares)}
	s.start(state.New(nodeLimits(shares), 1))
	for i := range apiKeys {
		s.step(&event.CreateKey{Caller: apiKeys[0].ID * types.KeyID(min(i, 1)), Tenant: 1, Key: apiKeys[i]})
		s.sync(nil)
	}
	return s
}

// start makes a node from a recovered state.
func (s *system) start(recovered state.State) {
	s.calls = map[types.Ticket]*call{}
	s.node = newNode(s.shares, recovered, s.now.Mono)
	s.recover()
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
	s.sync(nil)
}

// recover begins the first frame of a node. Some sinks begin in it.
func (s *system) recover() {
	in := event.Recovered{Recovery: event.Recovery{Journal: 9}}
	var begun []*export.Begin
	for _, sink := range sinks {
		if rapid.IntRange(0, 3).Draw(s.T, "begins at the start") == 0 {
			c := &export.Begin{Header: command.Header{Tenant: types.DefaultTenant}, Sink: []byte(sink), Now: rapid.Bool().Draw(s.T, "now")}
			in.Commands, begun = append(in.Commands, c), append(begun, c)
		}
	}
	s.step(in)
	frame := uint64(len(s.frames))
	for _, c := range begun {
		do := func(b *reference.Book, _ int64) reference.Outcome { return b.Begin(string(c.Sink), c.Now, frame) }
		outcome := do(s.model, 0)
		if s.seen["begin at the start "+string(outcome)]++; outcome == reference.Done {
			s.changes = append(s.changes, change{len(s.frames), s.status.At, do})
		}
	}
}

// step takes one event. The fold of its frame is the state of the node.
func (s *system) step(in event.Event) {
	s.now.Mono++
	s.out.Reset()
	s.node.Step(s.now, in, &s.out)
	s.node.Status(&s.status)
	for _, f := range s.out.Frames {
		s.frames = append(s.frames, bytes.Clone(s.out.Body(f)))
		s.unsynced += uint64(f.Len)
		if err := s.view.Fold(s.frames[len(s.frames)-1], nil); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.node.Check(); err != nil {
		s.Fatal(err)
	}
	if s.node.StateHash() != s.view.Hash() {
		s.Fatal("the fold of the frames is another state")
	}
}

func (s *system) plane() *export.Plane { return s.view.Plane(types.PlaneExport).(*export.Plane) }

var (
	sinks   = []string{"audit", "hook"}
	streams = []string{export.WalletStream, export.UsageStream("requests")}
)

// name draws a lane, mostly one that exists.
func (s *system) name() reference.Name {
	if len(s.model.Lanes) > 0 && rapid.IntRange(0, 3).Draw(s.T, "a lane that may not exist") > 0 {
		return rapid.SampledFrom(s.model.Lanes).Draw(s.T, "lane").Name
	}
	return reference.Name{Tenant: types.Tenant(rapid.IntRange(1, 2).Draw(s.T, "tenant")), Sink: rapid.SampledFrom(sinks).Draw(s.T, "sink"), Stream: rapid.SampledFrom(streams).Draw(s.T, "stream")}
}

func laneOf(n reference.Name) export.Lane {
	l, err := export.NewLane(n.Sink, n.Tenant, n.Stream)
	if err != nil {
		panic(err)
	}
	return l
}

// position draws one near the cursor of a lane, or of a row.
func (s *system) position(n reference.Name) uint64 {
	l := s.model.Find(n)
	if l == nil {
		return 1
	}
	switch {
	case rapid.Bool().Draw(s.T, "next"):
		return l.Cursor + 1
	case len(l.Rows) > 0 && rapid.Bool().Draw(s.T, "of a row"):
		return rapid.SampledFrom(l.Rows).Draw(s.T, "row").Position
	}
	return max(1, l.Cursor+uint64(rapid.IntRange(0, 3).Draw(s.T, "position"))-min(l.Cursor, 1))
}

// ask sends a command.
func (s *system) ask(*rapid.T) {
	n := s.name()
	l, p := laneOf(n), s.position(n)
	h := command.Header{Tenant: n.Tenant, Caller: rapid.SampledFrom([]types.KeyID{0, 0, 0, apiKeys[n.Tenant-1].ID}).Draw(s.T, "caller")}
	c := &call{caller: h.Caller, at: p}
	kinds := []string{"begin", "forget", "open", "settle", "settle", "quarantine", "quarantine", "quarantine", "resolve", "redrive", "discard", "skip", "rewind", "remove"}
	if s.model.Find(n) == nil {
		kinds = append(kinds, "open", "open", "open", "open", "open")
	}
	if lane := s.model.Find(n); lane != nil && len(lane.Rows) > 0 && rapid.Bool().Draw(s.T, "for a row") {
		kinds, p = []string{"resolve", "redrive", "redrive", "discard"}, rapid.SampledFrom(lane.Rows).Draw(s.T, "the row").Position
		c.at = p
	}
	kind := rapid.SampledFrom(kinds).Draw(s.T, "command")
	switch kind {
	case "begin":
		now, frame := rapid.Bool().Draw(s.T, "now"), uint64(0)
		h.Tenant = types.DefaultTenant
		c.command, c.change = &export.Begin{Header: h, Sink: l.Sink, Now: now}, func(b *reference.Book, _ int64) reference.Outcome {
			if frame == 0 { // the frame that was made
				frame = uint64(len(s.frames))
			}
			return b.Begin(n.Sink, now, frame)
		}
	case "forget":
		h.Tenant = types.DefaultTenant
		c.command, c.change = &export.Forget{Header: h, Sink: l.Sink}, func(b *reference.Book, _ int64) reference.Outcome { return b.Forget(n.Sink) }
	case "open":
		s.open(n, h, rapid.SampledFrom([]uint64{0, 0, 1, 5}).Draw(s.T, "after"))
		return
	case "settle":
		c.at = p + uint64(rapid.IntRange(0, 3).Draw(s.T, "more"))
		c.command = &export.Settle{Header: h, Lane: l.LaneID, From: p, To: c.at}
		c.change = func(b *reference.Book, _ int64) reference.Outcome { return b.Settle(n, p, c.at) }
	case "quarantine":
		reason, status := rapid.IntRange(1, 3).Draw(s.T, "reason"), rapid.SampledFrom([]int{0, 400, 413}).Draw(s.T, "status")
		c.command = &export.Quarantine{Header: h, Lane: l.LaneID, Position: p, Reason: types.ExportReason(reason), Status: uint16(status)}
		c.change = func(b *reference.Book, at int64) reference.Outcome {
			return b.Quarantine(n, reference.Row{Position: p, Reason: reason, Status: status, At: at})
		}
	case "resolve":
		c.command, c.change = &export.Resolve{Header: h, Lane: l.LaneID, Position: p}, func(b *reference.Book, _ int64) reference.Outcome { return b.End(n, p) }
	case "discard":
		c.command, c.change = &export.Discard{Header: h, Lane: l.LaneID, Position: p}, func(b *reference.Book, _ int64) reference.Outcome { return b.End(n, p) }
	case "redrive":
		c.command, c.change = &export.Redrive{Header: h, Lane: l.LaneID, Position: p}, func(b *reference.Book, _ int64) reference.Outcome { return b.Redrive(n, p) }
	case "skip":
		c.command, c.change = &export.Skip{Header: h, Lane: l.LaneID, To: p}, func(b *reference.Book, _ int64) reference.Outcome { return b.Skip(n, p) }
	case "rewind":
		c.at = p - 1
		c.command, c.change = &export.Rewind{Header: h, Lane: l.LaneID, To: p - 1}, func(b *reference.Book, _ int64) reference.Outcome { return b.Rewind(n, p-1) }
	case "remove":
		c.at = 0
		c.command, c.change = &export.Remove{Header: h, Lane: l.LaneID}, func(b *reference.Book, _ int64) reference.Outcome { return b.Remove(n) }
	}
	s.send(kind, c)
}

// open opens a lane.
func (s *system) open(n reference.Name, h command.Header, after uint64) {
	s.send("open", &call{caller: h.Caller, command: &export.Open{Header: h, Lane: laneOf(n), After: after},
		change: func(b *reference.Book, _ int64) reference.Outcome { return b.Open(n, after) }})
}

// fill opens every lane that there is not, until there is no room.
func (s *system) fill(*rapid.T) {
	for tenant := types.Tenant(1); tenant <= 2; tenant++ {
		for _, sink := range sinks {
			for _, stream := range streams {
				s.open(reference.Name{Tenant: tenant, Sink: sink, Stream: stream}, command.Header{Tenant: tenant}, 0)
			}
		}
	}
}

// send sends a command, and compares what it records with the model.
func (s *system) send(kind string, c *call) {
	if _, own := c.command.(command.ByNode); c.caller == apiKeys[1].ID || c.caller != 0 && own {
		c.problem = event.Forbidden
	}
	if len(s.calls) > 32 {
		s.sync(nil)
	}
	s.ticket++
	c.command.Head().Ticket = s.ticket
	s.calls[s.ticket] = c
	frames := len(s.frames)
	next := s.model.Clone()
	s.step(&event.Execute{Command: c.command})
	if c.problem == event.None {
		c.want = c.change(next, int64(s.status.At))
		s.seen[kind+" "+string(c.want)]++
		if s.shares && c.want == reference.Capacity {
			s.seen[kind+" beyond a share"]++
		}
	}
	recorded := len(s.frames) > frames
	if recorded != (c.want == reference.Done) {
		s.Fatalf("%s: recorded %v, the model says %q", kind, recorded, c.want)
	}
	if recorded {
		s.model = next
		s.changes = append(s.changes, change{len(s.frames), s.status.At, c.change})
	}
	s.answer()
}

var problems = map[reference.Outcome]event.Problem{reference.Done: event.None, reference.NoChange: event.None, reference.NotFound: event.NotFound,
	reference.Moved: event.LaneMoved, reference.Capacity: event.ExportCapacity}

// answer compares the answers of the last step with the model.
func (s *system) answer() {
	for _, r := range s.out.Replies {
		c := s.calls[r.Ticket]
		if delete(s.calls, r.Ticket); c == nil {
			continue
		}
		want := c.problem
		if want == event.None {
			want = problems[c.want]
		}
		if int(r.After) > s.synced {
			s.Fatalf("the reply %+v reveals a frame that is not durable", r)
		}
		if r.Problem != want || (r.Position.LSN > 0) != (c.want == reference.Done) {
			s.Fatalf("%T: the reply is %q at %v, want %q of %q", c.command, r.Problem.Code(), r.Position, want.Code(), c.want)
		}
		if c.want != reference.Done || !hasAnswer(c.command) {
			continue
		}
		sealed := record.Sealed{Journal: 9, LSN: r.Position.LSN, Body: s.frames[r.Position.LSN-1]}
		got, status, owner, err := s.view.Render(nil, &sealed, r.Position.Index)
		if want := fmt.Sprintf(`{"position":%d}`, c.at); err != nil || status != 200 || owner != c.command.Head().Tenant || string(got) != want {
			s.Fatalf("%T: answer %s of tenant %d, %v; want %s", c.command, got, owner, err, want)
		}
	}
}

// hasAnswer reports whether a command has an answer for a request.
func hasAnswer(c command.Command) bool {
	switch c.(type) {
	case *export.Open, *export.Begin, *export.Forget:
		return false
	}
	return true
}

// sync makes all frames durable and applied.
func (s *system) sync(*rapid.T) {
	if s.unsynced > 0 {
		size := s.unsynced
		s.unsynced, s.synced = 0, len(s.frames)
		s.step(event.Durable{Upto: types.LSN(s.synced), Bytes: size})
		s.answer()
		s.step(event.Applied{Upto: types.LSN(s.synced)})
		s.answer()
	}
}

// pass lets time go by.
func (s *system) pass(*rapid.T) {
	s.now.Mono += types.Instant(time.Second)
	s.now.Wall += 1000
}

// compare compares all lanes with the model.
func (s *system) compare(*rapid.T) {
	if got := lanesOf(s.plane()); !reflect.DeepEqual(got, sorted(s.model)) {
		s.Fatalf("lanes %+v, the model has %+v", got, sorted(s.model))
	}
	n := 0
	s.plane().Sinks(func(name []byte, after types.LSN) bool {
		n++
		if again, known := s.plane().Sink(name); !known || again != after || !slices.Contains(s.model.Sinks, reference.Sink{Name: string(name), After: uint64(after)}) {
			s.Fatalf("sink %s after %d, the model has %+v", name, after, s.model.Sinks)
		}
		return true
	})
	if n != len(s.model.Sinks) {
		s.Fatalf("%d sinks, the model has %+v", n, s.model.Sinks)
	}
}

func sorted(b *reference.Book) (all []reference.Lane) {
	for _, l := range b.Clone().Lanes {
		slices.SortFunc(l.Rows, func(a, b reference.Row) int { return cmp.Compare(a.Position, b.Position) })
		if len(l.Rows) == 0 {
			l.Rows = nil
		}
		all = append(all, l)
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b reference.Lane) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Sink, b.Sink), cmp.Compare(a.Stream, b.Stream))
}

// lanesOf reads all lanes of a plane through its queries.
func lanesOf(p *export.Plane) (all []reference.Lane) {
	lanes, rows := p.Len()
	p.Lanes(0, func(l export.LaneState) bool {
		of := reference.Lane{Name: reference.Name{Tenant: l.Tenant, Sink: string(l.Sink), Stream: string(l.Stream)}, Cursor: l.Cursor}
		due := 0
		p.Rows(l.LaneID, func(r export.Quarantined) bool {
			of.Rows = append(of.Rows, reference.Row{Position: r.Position, Reason: int(r.Reason), Status: int(r.Status), At: int64(r.At), Due: r.Due})
			if r.Due {
				due++
			}
			return true
		})
		if again, known := p.Find(l.LaneID); !known || !reflect.DeepEqual(again, l) || l.Quarantined != len(of.Rows) || l.Due != due {
			panic(fmt.Sprintf("%+v is found as %+v", l, again))
		}
		slices.SortFunc(of.Rows, func(a, b reference.Row) int { return cmp.Compare(a.Position, b.Position) })
		all = append(all, of)
		lanes--
		rows -= len(of.Rows)
		return true
	})
	if lanes != 0 || rows != 0 {
		panic("the numbers of lanes and rows are wrong")
	}
	slices.SortFunc(all, byName)
	return all
}

// crash loses a part of what was not durable, and recovers from a snapshot and the frames behind it.
func (s *system) crash(*rapid.T) {
	left := rapid.IntRange(s.synced, len(s.frames)).Draw(s.T, "frames left")
	cut := rapid.IntRange(0, left).Draw(s.T, "snapshot after")
	s.seen["frames are lost"] += len(s.frames) - left
	s.frames, s.unsynced, s.synced = s.frames[:left], 0, left
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.lsn > left })
	s.model = newModel(s.shares)
	for _, c := range s.changes {
		c.do(s.model, int64(c.at))
	}
	old, recovered := state.New(nodeLimits(s.shares), 3), state.New(nodeLimits(s.shares), 4)
	for i, body := range s.frames {
		if i == cut && i > 0 {
			old.Dump(func(row []byte) {
				if err := recovered.Load(row); err != nil {
					s.Fatal(err)
				}
			})
		}
		if err := old.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	for _, body := range s.frames[recovered.LSN:] {
		if err := recovered.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	var folded, loaded state.RowSum
	old.Dump(folded.Add)
	if recovered.Dump(loaded.Add); folded.Root() != loaded.Root() {
		s.Fatalf("the rows after frame %d depend on the snapshot of frame %d", recovered.LSN, cut)
	}
	if recovered.Hash() != old.Hash() {
		s.Fatal("recovery made another state")
	}
	var copied state.State
	recovered.CopyTo(&copied)
	if err := copied.Check(); err != nil || copied.Hash() != old.Hash() {
		s.Fatalf("the copy is another state: %v", err)
	}
	s.view = old
	s.compare(nil)
	s.start(copied)
}

// TestNodeAgreesWithModel compares the plane in a whole node with the model, under lost frames, snapshots and restarts: a
// cursor and a quarantine that were acknowledged are there for ever, and only the next position can be settled.
func TestNodeAgreesWithModel(t *testing.T) {
	seen := map[string]int{}
	want := []string{"begin done", "begin no change", "begin at the start done", "begin at the start no change", "forget done", "forget not found", "open done", "open no change", "open capacity", "settle done", "settle moved", "settle not found", "quarantine done", "quarantine moved", "quarantine capacity", "open beyond a share", "quarantine beyond a share",
		"resolve done", "resolve not found", "redrive done", "redrive no change", "discard done", "skip done", "skip moved", "rewind done", "rewind moved", "remove done", "frames are lost"}
	rare := func(what string) bool { return seen[what] == 0 }
	for range 40 {
		rapid.Check(t, func(r *rapid.T) {
			s := newSystem(r, seen)
			r.Repeat(map[string]func(*rapid.T){"ask": s.ask, "ask again": s.ask, "ask once more": s.ask, "fill": s.fill, "sync": s.sync, "pass": s.pass, "crash": s.crash, "": s.compare})
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

package export_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

func TestNewLane(t *testing.T) {
	for _, c := range []struct{ sink, stream, field string }{
		{"audit", "wallet", ""}, {"a.b_c-1", "usage/custom:gpu{h}/s", ""}, {strings.Repeat("a", 32), "usage/" + strings.Repeat("d", 64), ""},
		{"", "wallet", "sink"}, {strings.Repeat("a", 33), "wallet", "sink"}, {"A", "wallet", "sink"}, {"a/b", "wallet", "sink"},
		{"audit", "", "stream"}, {"audit", "usage/", "stream"}, {"audit", "objects", "stream"}, {"audit", "usage/" + strings.Repeat("d", 65), "stream"}, {"audit", "usage/A", "stream"},
	} {
		l, err := export.NewLane(c.sink, 1, c.stream)
		var field *export.FieldError
		if c.field == "" && (err != nil || string(l.Sink) != c.sink || string(l.Stream) != c.stream) || c.field != "" && (!errors.As(err, &field) || field.Field != c.field) {
			t.Errorf("%q to %q: %v, want a problem of %q", c.stream, c.sink, err, c.field)
		}
	}
	a, _ := export.NewLane("a", 1, "wallet")
	for _, c := range []struct {
		sink, stream string
		tenant       types.Tenant
	}{{"b", "wallet", 1}, {"a", "usage/wallet", 1}, {"a", "wallet", 2}} {
		if b, _ := export.NewLane(c.sink, c.tenant, c.stream); b.LaneID == a.LaneID {
			t.Errorf("%+v has the ID of another lane", c)
		}
	}
	if d, ok := export.DimensionOf(export.UsageStream("requests")); d != "requests" || !ok {
		t.Errorf("the dimension is %q, %v", d, ok)
	}
}

func TestInvalidCommands(t *testing.T) {
	l, _ := export.NewLane("audit", 1, "wallet")
	h := command.Header{Tenant: 1}
	keyed := command.Header{Tenant: 1, Key: types.Name{Text: []byte("k")}}
	other := command.Header{Tenant: 2}
	const far = export.MaxPosition + 1
	for i, c := range []struct {
		command command.Command
		want    error
	}{
		{&export.Open{Header: h, Lane: l}, nil}, {&export.Settle{Header: h, Lane: l.LaneID, From: 1, To: far - 1}, nil}, {&export.Rewind{Header: h, Lane: l.LaneID}, nil},
		{&export.Remove{Header: h, Lane: l.LaneID}, nil},
		{&export.Open{Header: h, Lane: l, After: far - 1}, nil}, {&export.Open{Header: h, Lane: l, After: far}, export.ErrPosition},
		{&export.Begin{Header: h, Sink: []byte("audit")}, nil}, {&export.Begin{Header: other, Sink: []byte("audit")}, export.ErrSink}, {&export.Begin{Header: h}, export.ErrSink},
		{&export.Begin{Header: h, Sink: []byte("A")}, export.ErrSink}, {&export.Begin{Header: keyed, Sink: []byte("audit")}, export.ErrKey},
		{&export.Forget{Header: h, Sink: []byte("audit")}, nil}, {&export.Forget{Header: h, Sink: []byte(strings.Repeat("a", 33))}, export.ErrSink},
		{&export.Open{Header: h}, export.ErrLane}, {&export.Open{Header: other, Lane: l}, export.ErrLane},
		{&export.Settle{Header: keyed, Lane: l.LaneID, From: 1, To: 1}, export.ErrKey},
		{&export.Settle{Header: other, Lane: l.LaneID, From: 1, To: 1}, export.ErrLane},
		{&export.Settle{Header: h, Lane: l.LaneID, From: 0, To: 1}, export.ErrPosition}, {&export.Settle{Header: h, Lane: l.LaneID, From: 2, To: 1}, export.ErrPosition},
		{&export.Settle{Header: h, Lane: l.LaneID, From: 1, To: far}, export.ErrPosition},
		{&export.Quarantine{Header: h, Lane: l.LaneID, Position: 1}, export.ErrReason}, {&export.Quarantine{Header: h, Lane: l.LaneID, Position: 1, Reason: 4}, export.ErrReason},
		{&export.Quarantine{Header: h, Lane: l.LaneID, Reason: 1}, export.ErrPosition},
		{&export.Resolve{Header: h, Lane: l.LaneID}, export.ErrPosition}, {&export.Redrive{Header: h, Lane: l.LaneID}, export.ErrPosition},
		{&export.Discard{Header: h, Lane: l.LaneID}, export.ErrPosition}, {&export.Skip{Header: h, Lane: l.LaneID}, export.ErrPosition},
		{&export.Rewind{Header: h, Lane: l.LaneID, To: 1<<64 - 1}, export.ErrPosition}, {&export.Remove{Header: other, Lane: l.LaneID}, export.ErrLane},
	} {
		if err := c.command.ValidateFields(); !errors.Is(err, c.want) {
			t.Errorf("%d: %T: %v, want %v", i, c.command, err, c.want)
		}
	}
}

// sample returns a plane with a sink that was seen, and two lanes, one of which has a quarantined position.
func sample(t testing.TB, l export.Limits) (*direct, export.Lane) {
	d := &direct{plane: export.New(l, 1), at: 50}
	lane, _ := export.NewLane("audit", 1, "wallet")
	other, _ := export.NewLane("hook", 2, "usage/requests")
	for _, c := range []command.Command{&export.Begin{Header: command.Header{Tenant: 1}, Sink: []byte("late"), Now: true}, &export.Open{Header: command.Header{Tenant: 1}, Lane: lane}, &export.Open{Header: command.Header{Tenant: 2}, Lane: other},
		&export.Settle{Header: command.Header{Tenant: 1}, Lane: lane.LaneID, From: 1, To: 8},
		&export.Quarantine{Header: command.Header{Tenant: 1}, Lane: lane.LaneID, Position: 9, Reason: types.ExportTooLarge, Status: 413}} {
		if r := d.do(c); r.Problem != event.None {
			t.Fatal(r.Problem.Code())
		}
	}
	return d, lane
}

// TestSinksAreLimited: with as many sinks as there is room for, another one is seen when one was forgotten.
func TestSinksAreLimited(t *testing.T) {
	d := &direct{plane: export.New(export.Limits{Lanes: 1, TenantLanes: 1, Rows: 1, TenantRows: 1}, 1)}
	h := command.Header{Tenant: 1}
	for i := range export.MaxSinks {
		if r := d.do(&export.Begin{Header: h, Sink: fmt.Appendf(nil, "sink%d", i), Now: true}); r.Problem != event.None {
			t.Fatal(i, r.Problem.Code())
		}
	}
	more := &export.Begin{Header: h, Sink: []byte("more")}
	if r := d.do(more); r.Problem != event.ExportCapacity {
		t.Errorf("one more: %q", r.Problem.Code())
	}
	if r := record.PlaneKind(types.PlaneExport, 9); d.plane.Fits(&record.Record{Kind: r, Tenant: 1, Payload: []byte("\x04more\x00")}) {
		t.Error("one more fits")
	}
	d.do(&export.Forget{Header: h, Sink: []byte("sink7")})
	if r := d.do(more); r.Problem != event.None {
		t.Errorf("in the place of another one: %q", r.Problem.Code())
	}
}

// TestInvalidRecordsDoNotFit: a record of a damaged journal is rejected, never applied.
func TestInvalidRecordsDoNotFit(t *testing.T) {
	limits := export.Limits{Lanes: 2, TenantLanes: 2, Rows: 1, TenantRows: 1}
	d, lane := sample(t, limits)
	change := func(position uint64, more ...byte) []byte {
		b := append([]byte{}, lane.ID[:]...)
		for i := range 8 {
			b = append(b, byte(position>>(8*i)))
		}
		b = append(b, make([]byte, 8)...)
		return append(b, more...)
	}
	for _, c := range []struct {
		what    string
		kind    uint8
		payload []byte
		fits    bool
	}{
		{"settled", 1, change(10, 0, 0, 0), true},
		{"settled, not after the cursor", 1, change(9, 0, 0, 0), false},
		{"settled, too far", 1, change(export.MaxPosition+1, 0, 0, 0), false},
		{"settled with a reason", 1, change(10, 0, 0, 1), false},
		{"settled with a status", 1, change(10, 1, 0, 0), false},
		{"settled, too short", 1, change(10, 0, 0), false},
		{"settled, too long", 1, change(10, 0, 0, 0, 0), false},
		{"quarantined again", 2, change(9, 144, 1, 1), true},
		{"quarantined, the next: no room", 2, change(10, 0, 0, 1), false},
		{"quarantined without a reason", 2, change(9, 0, 0, 0), false},
		{"quarantined for an unknown reason", 2, change(9, 0, 0, 4), false},
		{"resolved", 3, change(9, 0, 0, 0), true},
		{"resolved, not quarantined", 3, change(8, 0, 0, 0), false},
		{"redriven", 4, change(9, 0, 0, 0), true},
		{"redriven, not quarantined", 4, change(8, 0, 0, 0), false},
		{"discarded", 5, change(9, 0, 0, 0), true},
		{"discarded, not quarantined", 5, change(8, 0, 0, 0), false},
		{"skipped", 6, change(10, 0, 0, 0), true},
		{"skipped back", 6, change(8, 0, 0, 0), false},
		{"rewound", 7, change(0, 0, 0, 0), true},
		{"rewound forward", 7, change(9, 0, 0, 0), false},
		{"removed", 8, change(0, 0, 0, 0), true},
		{"removed at a position", 8, change(1, 0, 0, 0), false},
		{"of no kind", 11, change(10, 0, 0, 0), false},
		{"seen", 9, []byte("\x01a\x00"), true},
		{"seen from now on", 9, []byte("\x01a\x01"), true},
		{"seen from another time on", 9, []byte("\x01a\x02"), false},
		{"seen, without when", 9, []byte("\x01a"), false},
		{"seen, too long", 9, []byte("\x01a\x00\x00"), false},
		{"seen twice", 9, []byte("\x04late\x00"), false},
		{"seen, of no name", 9, []byte("\x01A\x00"), false},
		{"forgotten", 10, []byte("\x04late"), true},
		{"forgotten, too long", 10, []byte("\x04late\x00"), false},
		{"forgotten, not seen", 10, []byte("\x05audit"), false},
		{"opened: no room", 0, []byte("\x01a\x06wallet"), false},
		{"opened twice", 0, []byte("\x05audit\x06wallet"), false},
	} {
		r := record.Record{Kind: record.PlaneKind(types.PlaneExport, c.kind), Tenant: 1, Payload: c.payload}
		if d.plane.Fits(&r) != c.fits {
			t.Errorf("%s: fits %v, want %v", c.what, !c.fits, c.fits)
		}
		if r.Tenant = 2; c.kind > 0 && d.plane.Fits(&r) {
			t.Errorf("%s: fits another tenant", c.what)
		}
	}
	empty := export.New(limits, 1)
	for payload, fits := range map[string]bool{"\x01a\x06wallet": true, "\x01A\x06wallet": false, "\x01a\x06wallex": false, "\x01a": false, "": false, "\x01a\x06wallet.": false,
		"\x01a\x06wallet\x01\x00\x00\x00\x00\x00\x00\x00": true, "\x01a\x06wallet\x00\x00\x00\x00\x00\x00\x00\x00": false, "\x01a\x06wallet\x01\x00\x00\x00\x00\x00\x20\x00": false,
		"\x01a\x06wallet\x01\x00\x00\x00\x00\x00\x00\x00\x00": false, "\x00\x06wallet": false} { //nolint:maporder // the rule is the same for each
		r := record.Record{Kind: record.PlaneKind(types.PlaneExport, 0), Tenant: 1, Payload: []byte(payload)}
		if empty.Fits(&r) != fits {
			t.Errorf("opened %q: fits %v, want %v", payload, !fits, fits)
		}
	}
}

// TestLoadRejectsOtherRows: every change of a byte of a dump is either rejected or another valid state, and a dump that does not fit the limits is
// named as such.
func TestLoadRejectsOtherRows(t *testing.T) {
	limits := export.Limits{Lanes: 2, TenantLanes: 2, Rows: 1, TenantRows: 1}
	d, _ := sample(t, limits)
	type dumped struct {
		kind uint8
		b    []byte
	}
	var rows []dumped
	d.plane.Dump(func(kind uint8, b []byte) { rows = append(rows, dumped{kind, slices.Clone(b)}) })
	load := func(l export.Limits, rows []dumped) (*export.Plane, error) {
		p := export.New(l, 3)
		for _, r := range rows {
			if err := p.Load(r.kind, r.b); err != nil {
				return p, err
			}
		}
		return p, p.Check()
	}
	for i := range rows {
		for at := range rows[i].b {
			for _, bit := range []byte{1, 0x80} {
				rows[i].b[at] ^= bit
				if p, err := load(limits, rows); err == nil && p.Hash() == d.plane.Hash() {
					t.Errorf("row %d with another byte %d is the same state", i, at)
				} else if err != nil && !errors.Is(err, plane.ErrRow) {
					t.Errorf("row %d with another byte %d: %v", i, at, err)
				}
				rows[i].b[at] ^= bit
			}
		}
	}
	for _, l := range []export.Limits{{Lanes: 1, TenantLanes: 1, Rows: 1, TenantRows: 1}, {Lanes: 2, TenantLanes: 1, TenantRows: 1}} {
		if _, err := load(l, rows); !errors.Is(err, plane.ErrRoom) {
			t.Errorf("%+v: %v, want %v", l, err, plane.ErrRoom)
		}
	}
	if _, err := load(limits, append(rows, rows[0])); !errors.Is(err, plane.ErrRow) {
		t.Errorf("a lane twice: %v", err)
	}
}

// TestStepsAllocateNothing: deliveries go on all the time.
func TestStepsAllocateNothing(t *testing.T) {
	d, lane := sample(t, export.Limits{Lanes: 4, TenantLanes: 4, Rows: 4, TenantRows: 4})
	h := command.Header{Tenant: 1}
	settle, quarantine := &export.Settle{Header: h, Lane: lane.LaneID}, &export.Quarantine{Header: h, Lane: lane.LaneID, Reason: types.ExportRejected}
	redrive, resolve := &export.Redrive{Header: h, Lane: lane.LaneID}, &export.Resolve{Header: h, Lane: lane.LaneID}
	extra, _ := export.NewLane("hook", 1, "usage/custom:a-long-name-of-a-dimension-of-a-customer")
	open, remove := &export.Open{Header: h, Lane: extra}, &export.Remove{Header: h, Lane: extra.LaneID}
	next := uint64(10)
	if n := testing.AllocsPerRun(100, func() {
		settle.From, settle.To, quarantine.Position, redrive.Position, resolve.Position = next, next+1, next+2, next+2, next+2
		next += 3
		for _, c := range [...]command.Command{settle, quarantine, redrive, resolve, open, remove} {
			if r := d.do(c); r.Problem != event.None || r.Position.LSN == 0 {
				t.Fatal(r.Problem.Code())
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBytesMatchesMemory(t *testing.T) {
	l := export.Limits{Lanes: 5000, TenantLanes: 100, Rows: 3000, TenantRows: 100}
	memcheck.Check(t, "export", export.Bytes(l), func() *export.Plane { return export.New(l, 1) })
}

// TestDrainTakesCommandsOfNode: until a drain is aborted, the node records what it has delivered, and no command of an operator.
func TestDrainTakesCommandsOfNode(t *testing.T) {
	s := &drained{}
	s.start(t)
	lane, _ := export.NewLane("audit", 1, "wallet")
	own, operator := command.Header{Tenant: 1}, command.Header{Tenant: 1, Caller: apiKeys[0].ID}
	s.do(&export.Open{Header: own, Lane: lane}, event.None)
	s.step(event.Signal{Kind: event.Drain})
	s.do(&export.Settle{Header: own, Lane: lane.LaneID, From: 1, To: 1}, event.None)
	s.do(&export.Skip{Header: operator, Lane: lane.LaneID, To: 5}, event.Unavailable)
	s.do(&export.Skip{Header: own, Lane: lane.LaneID, To: 5}, event.Unavailable)
	s.do(&export.Quarantine{Header: own, Lane: lane.LaneID, Position: 2, Reason: types.ExportRejected}, event.None)
	s.step(event.Signal{Kind: event.Abort})
	s.do(&export.Settle{Header: own, Lane: lane.LaneID, From: 3, To: 3}, event.Unavailable)
	for c := range types.NumServices {
		s.step(event.ServiceDown{Service: c})
	}
	if s.status.Phase != types.Stopped {
		t.Fatalf("the node is %v, not stopped", s.status.Phase)
	}
	s.do(&export.Settle{Header: own, Lane: lane.LaneID, From: 3, To: 3}, event.Unavailable)
}

// drained is a node whose frames are durable at once.
type drained struct {
	*testing.T
	node interface {
		Step(now types.Now, in event.Event, out *event.Effects)
		Status(s *event.Status)
	}
	now    types.Now
	out    event.Effects
	status event.Status
	ticket types.Ticket
	reply  event.Reply
}

func (s *drained) start(t *testing.T) {
	s.T, s.now = t, types.Now{Mono: 1, Wall: 1_700_000_000_000, Synced: true}
	s.node = newNode(false, state.New(nodeLimits(false), 1), s.now.Mono)
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
	s.step(&event.CreateKey{Tenant: 1, Key: apiKeys[0]})
}

func (s *drained) step(in event.Event) {
	s.now.Mono++
	s.out.Reset()
	s.node.Step(s.now, in, &s.out)
	for _, r := range s.out.Replies {
		s.reply = r
	}
	s.node.Status(&s.status)
	if len(s.out.Frames) > 0 {
		last := s.out.Frames[len(s.out.Frames)-1]
		s.step(event.Durable{Upto: last.LSN, Bytes: uint64(last.Len)})
		s.step(event.Applied{Upto: last.LSN})
	}
}

func (s *drained) do(c command.Command, want event.Problem) {
	s.Helper()
	s.ticket++
	c.Head().Ticket = s.ticket
	s.step(&event.Execute{Command: c})
	if s.reply.Ticket != s.ticket || s.reply.Problem != want {
		s.Errorf("%T while %v: the reply %+v, want %q", c, s.status.Phase, s.reply, want.Code())
	}
}

package sim

import (
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	scheduler "macronode/core/lanes"
	"macronode/core/state"
	"macronode/core/types"
	meaning "macronode/models/export"
)

// A run with exports has usage, and a sink that gets the slices of both tenants and the movements of the administrator's. The
// scheduler of the product sends; the sink fails, loses answers and rejects some positions for ever. An oracle with the
// reference model predicts each record, and compares what is settled with what the sink has.
const exportSink = "sink"

// exportLimits are small, so that the quarantine is full in some runs.
var exportLimits = export.Limits{Lanes: 4, TenantLanes: 3, Rows: 2, TenantRows: 2}

var laneLimits = scheduler.Limits{Active: 3, Inflight: 3, Commands: 2, Window: 2, Failures: 3,
	Backoff: 50 * time.Millisecond, MaxBackoff: time.Second, Budget: 2 * time.Second}

// exportStreams are the streams of a run.
var exportStreams = [...]meaning.Name{
	{Tenant: boss.Tenant, Sink: exportSink, Stream: export.WalletStream},
	{Tenant: usageTenant, Sink: exportSink, Stream: export.UsageStream("requests")},
	{Tenant: usageTenant, Sink: exportSink, Stream: export.UsageStream("bytes_in")},
	{Tenant: boss.Tenant, Sink: exportSink, Stream: export.UsageStream("requests")},
}

// An exportAsk is a command that was submitted.
type exportAsk struct {
	of      scheduler.Command // of the scheduler; Kind 0: another one
	lane    int               // in exportStreams
	stepped bool
}

// exportWorld is the part of a run that concerns exports.
type exportWorld struct {
	ids     [len(exportStreams)]export.Lane
	machine *scheduler.Machine
	oracle  exportOracle
	sink    [len(exportStreams)]map[uint64]bool // what it has
	flying  []scheduler.Send
	zombies []scheduler.Send // that were given up, and may still arrive
	asks    map[types.Ticket]*exportAsk
	acked   types.LSN                // the last frame of a command that was acknowledged
	started int                      // machines
	skipped [len(exportStreams)]bool // an operator has skipped a position
	calm    bool
}

// beginExports gives a run its sink, if it has one.
func (w *World) beginExports() {
	if w.odds.exports == 0 || w.usage == nil {
		return
	}
	x := &exportWorld{oracle: newExportOracle()}
	for i, n := range exportStreams {
		lane, err := export.NewLane(n.Sink, n.Tenant, n.Stream)
		if err != nil {
			w.fail("export-lane", "%v", err)
		}
		x.ids[i], x.sink[i] = lane, map[uint64]bool{}
	}
	w.exports = x
	x.starts()
	w.limits.Planes = append(w.limits.Planes, export.Spec(exportLimits))
	w.config.State = w.limits
	w.promise.begin(state.New(w.limits, 0))
}

// starts makes a scheduler that has forgotten everything.
func (x *exportWorld) starts() {
	x.started++
	x.machine = scheduler.New(laneLimits, nil, types.NewRand(uint64(x.started)))
	x.asks = map[types.Ticket]*exportAsk{}
}

func (x *exportWorld) laneOf(id types.LaneID) int {
	for i := range x.ids {
		if x.ids[i].LaneID == id {
			return i
		}
	}
	panic("a lane that the run does not have")
}

// head returns the last position of a stream in the frames that are folded.
func (x *exportWorld) head(w *World, lane int) (head uint64) {
	n := exportStreams[lane]
	dimension, usage := export.DimensionOf(n.Stream)
	if !usage {
		return uint64(w.fol.Seq(n.Tenant))
	}
	for _, s := range w.usage.oracle.slices {
		if s.Tenant == n.Tenant && s.Dimension == dimension && s.lsn <= w.fol.Mark() {
			head++
		}
	}
	return head
}

// exportMove lets the exports go on a little.
func (w *World) exportMove() {
	x := w.exports
	var s event.Status
	if w.node.Status(&s); s.Phase >= types.Draining {
		x.machine.Stop()
	}
	if !x.calm || s.Phase != types.LameDuck { // at the end of a run, the sink answers when the node drains
		x.delivers(w) // what was sent before
	}
	x.offers(w)
	x.sends(w)
	x.asksNode(w)
	if !x.calm && w.c.Choose("export/operator", 12) == 1 {
		x.operates(w)
	}
	if err := x.machine.Check(); err != nil {
		w.fail("export-scheduler", "%v", err)
	}
}

// offers loads the lanes that have something to export. A stream without a lane gets one.
func (x *exportWorld) offers(w *World) {
	if x.machine.Again() {
		x.machine.BeginScan()
	}
	book := x.oracle.view(w.fol.Mark())
	for i, n := range exportStreams {
		head := x.head(w, i)
		lane := book.Find(n)
		switch {
		case lane == nil && head > 0:
			x.ask(w, i, exportAsk{lane: i}, &export.Open{Header: x.header(w, i), Lane: x.ids[i]})
		case lane != nil:
			x.machine.Offer(x.ids[i].LaneID, lane.Cursor, head)
			for _, r := range lane.Rows {
				if r.Due {
					x.machine.OfferRow(x.ids[i].LaneID, r.Position)
				}
			}
		}
	}
}

// sends takes what the scheduler sends next.
func (x *exportWorld) sends(w *World) {
	for {
		s, ok := x.machine.Next(w.now.Mono)
		if !ok {
			return
		}
		i := x.laneOf(s.Lane)
		lane := x.oracle.view(w.fol.Mark()).Find(exportStreams[i])
		switch {
		case lane == nil, s.Position > x.head(w, i):
			w.fail("export-too-far", "%+v is sent, %d is the last", s, x.head(w, i))
		case !s.Row && s.Position <= lane.Cursor && !x.skipped[i]:
			w.fail("export-again", "%+v is sent, and %d is settled", s, lane.Cursor)
		}
		w.note(x.started > 1 && x.sink[i][s.Position], "a position is sent again after a crash")
		x.flying = append(x.flying, s)
	}
}

// delivers ends some of the sends.
func (x *exportWorld) delivers(w *World) {
	if len(x.zombies) > 0 && (x.calm || w.c.Choose("export/zombie", 3) == 1) {
		if x.arrives(w, x.zombies[0]) {
			w.Saw["a send that was given up arrives"]++
		}
		x.zombies = x.zombies[1:]
	}
	flying := x.flying
	x.flying = nil
	for _, s := range flying {
		fate := 0
		if !x.calm {
			fate = w.c.Choose("export/fate", 7)
		}
		r := scheduler.Result{Outcome: scheduler.OK}
		switch {
		case fate == 1: // still on its way
			x.flying = append(x.flying, s)
			continue
		case fate == 2: // lost
			r.Outcome = scheduler.Retryable
		case fate == 3: // no answer
			x.arrives(w, s)
			r.Outcome = scheduler.Retryable
		case fate == 4: // it arrives later
			x.zombies = append(x.zombies, s)
			r.Outcome = scheduler.Retryable
		case x.rejects(s):
			r = scheduler.Result{Outcome: scheduler.Permanent, Reason: types.ExportRejected, Status: 400}
		case x.sink[x.laneOf(s.Lane)][s.Position]:
			r.Outcome = scheduler.Duplicate
			w.Saw["a sink gets a position twice"]++
		default:
			x.arrives(w, s)
		}
		w.note(r.Outcome == scheduler.Retryable, "a sink does not answer")
		x.machine.Sent(w.now.Mono, s, r)
		w.note(x.machine.Stats().Down, "a sink is taken for down")
	}
}

// rejects reports whether the sink rejects a send: until the calm, except redeliveries.
func (x *exportWorld) rejects(s scheduler.Send) bool { return !x.calm && !s.Row && s.Position%8 == 3 }

// arrives gives a position to the sink, and reports whether it was new. The sink must have, or have rejected, all positions before it.
func (x *exportWorld) arrives(w *World, s scheduler.Send) bool {
	i := x.laneOf(s.Lane)
	if x.sink[i][s.Position] || x.rejects(s) {
		return false
	}
	for p := uint64(1); p < s.Position; p++ {
		if !x.sink[i][p] && !x.oracle.given[i][p] {
			w.fail("export-order", "%v gets %d, and not yet %d", exportStreams[i], s.Position, p)
		}
	}
	x.sink[i][s.Position] = true
	return true
}

// asksNode submits the commands of the scheduler.
func (x *exportWorld) asksNode(w *World) {
	for {
		c, ok := x.machine.NextCommand(w.now.Mono)
		if !ok {
			return
		}
		i := x.laneOf(c.Lane)
		h := x.header(w, i)
		var in command.Command
		switch c.Kind {
		case scheduler.Settle:
			in = &export.Settle{Header: h, Lane: c.Lane, From: c.From, To: c.To}
		case scheduler.Quarantine:
			in = &export.Quarantine{Header: h, Lane: c.Lane, Position: c.From, Reason: c.Reason, Status: c.Status}
		case scheduler.Resolve:
			in = &export.Resolve{Header: h, Lane: c.Lane, Position: c.From}
		}
		x.ask(w, i, exportAsk{of: c, lane: i}, in)
	}
}

// operates has a position redelivered or left out, or a lane exported again.
func (x *exportWorld) operates(w *World) {
	i := w.c.Choose("export/lane", len(exportStreams))
	lane := x.oracle.view(w.fol.Mark()).Find(exportStreams[i])
	switch {
	case lane == nil:
	case len(lane.Rows) > 0:
		r := lane.Rows[w.c.Choose("export/row", len(lane.Rows))]
		x.ask(w, i, exportAsk{lane: i}, &export.Redrive{Header: x.header(w, i), Lane: x.ids[i].LaneID, Position: r.Position})
	case lane.Cursor < x.head(w, i) && w.c.Choose("export/skip", 2) == 1:
		x.skipped[i] = true
		x.ask(w, i, exportAsk{lane: i}, &export.Skip{Header: x.header(w, i), Lane: x.ids[i].LaneID, To: lane.Cursor + 1})
	case lane.Cursor > 0 && w.c.Choose("export/rewind", 3) == 1:
		x.ask(w, i, exportAsk{lane: i}, &export.Rewind{Header: x.header(w, i), Lane: x.ids[i].LaneID, To: uint64(w.c.Choose("export/to", int(min(lane.Cursor, 8))))})
	}
}

func (x *exportWorld) header(w *World, lane int) command.Header {
	w.ticket++
	return command.Header{Ticket: types.NewTicket(w.ticket%8, w.ticket), Tenant: exportStreams[lane].Tenant}
}

// ask submits a command. A lane is opened once at a time.
func (x *exportWorld) ask(w *World, lane int, a exportAsk, in command.Command) {
	if a.of.Kind == 0 {
		for _, other := range x.asks { //nolint:maporder // the rule is the same for each
			if other.of.Kind == 0 && other.lane == lane {
				return
			}
		}
	}
	x.asks[in.Head().Ticket] = &a
	w.usage.enter = append(w.usage.enter, &event.Execute{Command: in})
}

// exportsReply handles a reply to a command of an export; false if it is not one.
func (w *World) exportsReply(r event.Reply) bool {
	if w.exports == nil || w.exports.asks[r.Ticket] == nil {
		return false
	}
	x := w.exports
	a := x.asks[r.Ticket]
	delete(x.asks, r.Ticket)
	answer := scheduler.Done
	switch r.Problem {
	case event.None:
		x.acked = max(x.acked, r.Position.LSN)
	case event.Busy, event.Unavailable, event.OutcomeUnknown:
		answer = scheduler.Retry
	case event.LaneMoved, event.NotFound:
		answer = scheduler.Moved
		w.note(a.of.Kind > 0, "a cursor has moved under its scheduler")
	case event.ExportCapacity:
		answer = scheduler.Full
		w.note(a.of.Kind == scheduler.Quarantine, "the quarantine is full")
	default:
		w.fail("export-refusal", "%+v is refused: %v", a.of, r.Problem)
	}
	if a.of.Kind > 0 {
		x.machine.Answered(w.now.Mono, a.of, answer)
	}
	return true
}

// crashed forgets what the last process had not done, and the frames that are lost. What it was sending may still arrive.
func (x *exportWorld) crashed(w *World) {
	x.oracle.cut(w.node.LSN())
	x.zombies = append(x.zombies, x.flying...)
	x.flying = nil
	x.starts()
}

// exportsBusy reports whether there is something to export, or to answer.
func (w *World) exportsBusy() bool {
	x := w.exports
	if x == nil {
		return false
	}
	book := x.oracle.view(w.fol.Mark())
	for i, n := range exportStreams {
		lane := book.Find(n)
		if head := x.head(w, i); head > 0 && (lane == nil || lane.Cursor < head) {
			return true
		}
		for j := 0; lane != nil && j < len(lane.Rows); j++ {
			if lane.Rows[j].Due {
				return true
			}
		}
	}
	return len(x.asks) > 0 || !x.machine.Idle()
}

// insistExports lets everything be exported. The sink accepts all.
func (w *World) insistExports() {
	if w.exports == nil {
		return
	}
	w.exports.calm = true
	for range 8 {
		w.exportMove()
		w.settle()
	}
}

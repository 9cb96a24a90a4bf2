package explore

import (
	"fmt"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/lanes"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// Exports are streams that are exported to a sink: the scheduler, the plane with its records, and a network that loses and delays. The
// scheduler forgets everything when the power fails. Records are durable up to one of them.
//
//	seal ─► offer ─► send ─► arrives ─► hears ─► command ─► decides ─► sync ─► answer
//
// Invariants:
//
//	X1  of a lane at most one position is sent at a time, beside redeliveries
//	X2  the sink gets a position when each one before it is stored or quarantined durably
//	X3  a position up to the cursor is stored or quarantined, after each record
//	X4  a position is quarantined if the sink rejects it, and leaves when it is stored
//	X5  the records give the state of the plane that wrote them
//	X6  in the end, everything is stored or quarantined and not due, unless the quarantine is full
type Exports struct {
	h          *exportsShared
	machine    lanes.Machine
	plane      *export.Plane
	now        types.Instant
	run        uint8 // of the scheduler, from 1
	log        [exportsLog]exportsRecord
	last, safe uint8 // records
	heads      [exportsLanes]uint8
	offered    [exportsLanes]uint8
	scanned    uint8 // records that the scheduler has been offered
	stored     [exportsLanes]uint8
	net        exportsNet
	asked      exportsQueue // commands on their way to the node, and those that wait for their answer
	left       ExportsPlan  // what may still happen
	isFull     bool         // a command was refused for lack of room
}

const (
	exportsLanes = 2
	exportsLog   = 12
	exportsWords = 4

	exportsPayload = 35 // bytes of a record of the plane
)

// ExportsPlan is the size of a scope.
type ExportsPlan struct {
	positions [exportsLanes]uint8 // of each stream
	bad       [exportsLanes]uint8 // bits of the positions that the sink rejects, except redeliveries
	rows      uint8               // of the quarantine
	powers    uint8
	losses    uint8 // sends or answers without an answer
	delays    uint8 // of these, sends that arrive later
	busy      uint8 // commands that the node cannot take
	redrives  uint8
	waits     uint8 // times until the next retry
}

// An exportsRecord is a record, and the model after it.
type exportsRecord struct {
	kind   record.Kind
	tenant types.Tenant
	body   [exportsPayload]byte
	books  exportsBooks
}

// exportsBooks are the lanes of the model: cursors, and bits of positions.
type exportsBooks struct {
	cursor      [exportsLanes]uint8
	quarantined [exportsLanes]uint8
	due         [exportsLanes]uint8
}

// An exportsWord is a send on its way, or its answer.
type exportsWord struct {
	lane, position uint8
	isRow          bool
	isAnswer       bool
	outcome        lanes.Outcome
	run            uint8 // of the scheduler; 0: it has given up the send
	attempt        uint8
}

type exportsNet struct {
	words [2 * exportsWords]exportsWord
	count uint8
}

// An exportsCommand is a command of the scheduler. One that was decided waits until its records are durable.
type exportsCommand struct {
	of        lanes.Command
	isDecided bool
	answer    lanes.Answer
	after     uint8 // records
}

type exportsQueue struct {
	commands [exportsWords]exportsCommand
	count    uint8
}

func (n *exportsNet) take(i int) exportsWord {
	was := n.words[i]
	copy(n.words[i:], n.words[i+1:n.count])
	n.count--
	n.words[n.count] = exportsWord{}
	return was
}

func (n *exportsNet) put(w exportsWord) {
	n.words[n.count] = w
	n.count++
}

func (q *exportsQueue) drop(i int) {
	copy(q.commands[i:], q.commands[i+1:q.count])
	q.count--
	q.commands[q.count] = exportsCommand{}
}

// exportsShared is the shared part of a scope. It only caches.
type exportsShared struct {
	plan  ExportsPlan
	ids   [exportsLanes]export.Lane
	empty *export.Plane // with the lanes
	view  *export.Plane // scratch
	frame exportsFrame
	err   error
	Saw   [exportsSights]uint64
}

type exportsSight uint8

const (
	exportsTwice       exportsSight = iota // the sink gets a position again
	exportsLate                            // a send arrives after the scheduler has given it up
	exportsQuarantined                     // a position is quarantined
	exportsResolved                        // and redelivered
	exportsFull                            // the quarantine is full
	exportsLost                            // records are lost
	exportsTail                            // records were recovered of which the scheduler had no answer
	exportsBusy                            // the node could not take a command
	exportsMany                            // one record settles several positions
	exportsSights
)

func (s exportsSight) String() string {
	return [exportsSights]string{"twice", "late", "quarantined", "resolved", "full", "lost", "tail", "busy", "many"}[s]
}

func (h *exportsShared) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf(format, args...)
	}
}

// exportsFrame takes the record of a decision.
type exportsFrame struct {
	rec record.Record
	is  bool
}

var _ plane.Frame = (*exportsFrame)(nil)

func (f *exportsFrame) Record() *record.Record { return &f.rec }
func (f *exportsFrame) Add() types.Position    { f.is = true; return types.Position{LSN: 1} }
func (*exportsFrame) Savepoint()               {}
func (*exportsFrame) Undo()                    {}
func (*exportsFrame) Commit()                  {}
func (*exportsFrame) FindRef(_ types.Tenant, _ types.NameHash, p command.PriorOutcome) (command.PriorOutcome, bool) {
	return p, false
}

// exportsLimits have no random times: a retry is due at once.
func exportsLimits() lanes.Limits {
	return lanes.Limits{Active: 2 * exportsLanes, Inflight: 3, Commands: 2, Window: 3, Failures: 64, Backoff: 1, MaxBackoff: 1}
}

// OpenExports returns a scope: its lanes are open, and nothing is sealed.
func OpenExports(p ExportsPlan) *Exports {
	h := &exportsShared{plan: p}
	l := export.Limits{Lanes: exportsLanes, TenantLanes: exportsLanes, Rows: max(1, int(p.rows)), TenantRows: max(1, int(p.rows))}
	h.empty, h.view = export.New(l, 1), export.New(l, 1)
	for i := range h.ids {
		lane, err := export.NewLane("sink", types.Tenant(i+1), export.UsageStream("requests"))
		if err != nil {
			h.fail("a lane: %w", err)
		}
		h.ids[i] = lane
		open := &export.Open{Header: command.Header{Tenant: lane.Tenant}, Lane: lane}
		h.empty.Decide(0, open, &h.frame, new(event.Reply))
		h.empty.Apply(0, types.TxID{}, &h.frame.rec)
	}
	w := &Exports{h: h, now: 1, left: p}
	w.plane = export.New(l, 1)
	h.empty.CopyTo(w.plane)
	w.starts()
	return w
}

// starts makes a scheduler that has forgotten everything.
func (w *Exports) starts() {
	w.run++
	w.machine = *lanes.New(exportsLimits(), nil, types.NewRand(1))
	w.offered, w.scanned, w.asked = [exportsLanes]uint8{}, 0, exportsQueue{}
}

// CopyTo overwrites dst, reusing its memory.
func (w *Exports) CopyTo(dst *Exports) {
	p, m := dst.plane, dst.machine
	*dst = *w
	dst.machine = m
	w.machine.CopyTo(&dst.machine)
	if p == nil {
		dst.plane, _ = w.plane.CopyTo(nil).(*export.Plane)
		return
	}
	dst.plane = p
	w.plane.CopyTo(p)
}

// Hash covers everything that affects later steps.
func (w *Exports) Hash() types.Hash64 {
	h := w.machine.Hash().Mix(uint64(w.plane.Hash())).Mix(uint64(w.now)).Mix(uint64(w.last) | uint64(w.safe)<<8 | uint64(w.scanned)<<16 | uint64(w.run)<<24).MixBool(w.isFull)
	for i := range w.last {
		b := &w.log[i].books
		for l := range exportsLanes {
			h = h.Mix(uint64(b.cursor[l]) | uint64(b.quarantined[l])<<8 | uint64(b.due[l])<<16)
		}
	}
	for l := range exportsLanes {
		h = h.Mix(uint64(w.heads[l]) | uint64(w.offered[l])<<8 | uint64(w.stored[l])<<16)
	}
	for i := range w.net.count {
		n := &w.net.words[i]
		h = h.Mix(uint64(n.lane) | uint64(n.position)<<8 | uint64(n.outcome)<<16 | uint64(n.run)<<24 | uint64(n.attempt)<<32).MixBool(n.isRow).MixBool(n.isAnswer)
	}
	for i := range w.asked.count {
		c := &w.asked.commands[i]
		h = c.of.Lane.HashInto(h).Mix(uint64(c.of.Kind) | uint64(c.answer)<<8 | uint64(c.after)<<16).Mix(c.of.From).Mix(c.of.To).MixBool(c.of.Row).MixBool(c.isDecided)
	}
	l := &w.left
	return h.Mix(uint64(w.net.count) | uint64(w.asked.count)<<8 | uint64(l.powers)<<16 | uint64(l.losses)<<24 | uint64(l.delays)<<32 | uint64(l.busy)<<40 | uint64(l.redrives)<<48 | uint64(l.waits)<<56)
}

// books returns the model after a number of records.
func (w *Exports) books(records uint8) exportsBooks {
	if records == 0 {
		return exportsBooks{}
	}
	return w.log[records-1].books
}

// Check checks the invariants of a state.
func (w *Exports) Check() error {
	if err := w.machine.Check(); err != nil {
		return err
	}
	if err := w.plane.Check(); err != nil {
		return err
	}
	b := w.books(w.last)
	for i := range exportsLanes {
		s, _ := w.plane.Find(w.h.ids[i].LaneID)
		if s.Cursor != uint64(b.cursor[i]) || s.Quarantined != ones(b.quarantined[i]) || s.Due != ones(b.due[i]) {
			return fmt.Errorf("X5: lane %d is %+v, the model has %+v", i, s, b)
		}
		for p := uint8(1); p <= b.cursor[i]; p++ {
			if !has(w.stored[i], p) && !has(b.quarantined[i], p) {
				return fmt.Errorf("X3: the cursor of lane %d is %d, and %d is neither stored nor quarantined", i, b.cursor[i], p)
			}
		}
		sends := 0
		for j := range w.net.count {
			if n := &w.net.words[j]; int(n.lane) == i && n.run == w.run && !n.isRow {
				sends++
			}
		}
		if sends > 1 {
			return fmt.Errorf("X1: lane %d has %d sends", i, sends)
		}
	}
	return nil
}

// Rest checks the end of a schedule.
func (w *Exports) Rest() error {
	if w.isFull || w.left.waits == 0 {
		return nil
	}
	b := w.books(w.last)
	for i, n := range w.h.plan.positions {
		if b.cursor[i] != n || b.due[i] != 0 {
			return fmt.Errorf("X6: lane %d of %d positions ends with %+v", i, n, b)
		}
	}
	if w.machine.Idle() && w.machine.Stats().Active == 0 {
		return nil
	}
	return fmt.Errorf("X6: the scheduler is left with %+v", w.machine.Stats())
}

func has(bits, position uint8) bool { return bits>>(position-1)&1 == 1 }

func bit(position uint8) uint8 { return 1 << (position - 1) }

func ones(bits uint8) (n int) {
	for ; bits > 0; bits &= bits - 1 {
		n++
	}
	return n
}

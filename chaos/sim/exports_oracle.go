package sim

import (
	"cmp"
	"encoding/binary"
	"reflect"
	"slices"

	"macronode/core/event"
	"macronode/core/export"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	meaning "macronode/models/export"
)

// The kinds of the records of the export plane, repeated here independently of core, as are their payloads.
const (
	exportOpened = iota
	exportSettled
	exportQuarantined
	exportResolved
	exportRedriven
	exportDiscarded
	exportSkipped
	exportRewound
	exportRemoved
	exportKinds
)

// An exportChange is a record.
type exportChange struct {
	lsn      types.LSN
	at       types.Time
	kind     int
	lane     meaning.Name
	position uint64
	status   int
	reason   int
}

// on makes the change on the model. A settlement names its last position only.
func (c *exportChange) on(b *meaning.Book) meaning.Outcome {
	switch c.kind {
	case exportOpened:
		return b.Open(c.lane, c.position)
	case exportSettled:
		from := uint64(1)
		if l := b.Find(c.lane); l != nil {
			from = l.Cursor + 1
		}
		if c.position < from {
			return meaning.Moved
		}
		return b.Settle(c.lane, from, c.position)
	case exportQuarantined:
		return b.Quarantine(c.lane, meaning.Row{Position: c.position, Reason: c.reason, Status: c.status, At: int64(c.at)})
	case exportResolved, exportDiscarded:
		return b.End(c.lane, c.position)
	case exportRedriven:
		return b.Redrive(c.lane, c.position)
	case exportSkipped:
		return b.Skip(c.lane, c.position)
	case exportRewound:
		return b.Rewind(c.lane, c.position)
	default:
		return b.Remove(c.lane)
	}
}

// exportOracle follows the frames with the reference model of exports. It shares no code with the plane.
type exportOracle struct {
	changes []exportChange
	book    *meaning.Book // after all frames
	seen    *meaning.Book // after the first changes: as many as are folded
	folded  int
	given   [len(exportStreams)]map[uint64]bool // positions that were ever quarantined or skipped
}

func newExportBook() *meaning.Book {
	l := exportLimits
	return &meaning.Book{MaxLanes: l.Lanes, MaxTenantLanes: l.TenantLanes, MaxRows: l.Rows, MaxTenantRows: l.TenantRows}
}

func newExportOracle() exportOracle {
	o := exportOracle{book: newExportBook(), seen: newExportBook()}
	for i := range o.given {
		o.given[i] = map[uint64]bool{}
	}
	return o
}

// view returns the model after the frames up to mark.
func (o *exportOracle) view(mark types.LSN) *meaning.Book {
	for ; o.folded < len(o.changes) && o.changes[o.folded].lsn <= mark; o.folded++ {
		o.changes[o.folded].on(o.seen)
	}
	return o.seen
}

// cut forgets the frames after last.
func (o *exportOracle) cut(last types.LSN) {
	o.changes = slices.DeleteFunc(o.changes, func(c exportChange) bool { return c.lsn > last })
	o.book, o.seen, o.folded = newExportBook(), newExportBook(), 0
	for i := range o.changes {
		o.changes[i].on(o.book)
	}
}

// exportsStepped checks the records of a step.
func (w *World) exportsStepped(in event.Event, body []byte) {
	x := w.exports
	if x == nil {
		return
	}
	var a *exportAsk
	if e, ok := in.(*event.Execute); ok {
		if a = x.asks[e.Command.Head().Ticket]; a != nil {
			a.stepped = true
		}
	}
	for _, c := range readExports(w, body) {
		if a == nil {
			w.fail("export-without-command", "%+v was not asked for", c)
			return
		}
		x.records(w, c)
	}
}

// records makes a record on the model. What is settled or resolved, the sink must have.
func (x *exportWorld) records(w *World, c exportChange) {
	i := slices.Index(exportStreams[:], c.lane)
	from, to := c.position, c.position
	if l := x.oracle.book.Find(c.lane); l != nil && (c.kind == exportSettled || c.kind == exportSkipped) {
		from = l.Cursor + 1
	}
	if c.kind == exportSettled || c.kind == exportResolved {
		for p := from; p <= to; p++ {
			if !x.sink[i][p] {
				w.fail("export-settles-undelivered", "%+v, and the sink does not have %d", c, p)
			}
		}
	}
	if got := c.on(x.oracle.book); got != meaning.Done {
		w.fail("export-record", "%+v is recorded, the model says %q", c, got)
	}
	if c.kind == exportQuarantined || c.kind == exportSkipped {
		for p := from; p <= to; p++ {
			x.oracle.given[i][p] = true
		}
	}
	x.oracle.changes = append(x.oracle.changes, c)
	_, s := w.trace.Around()
	w.note(s.Phase >= types.Draining, "a delivery is settled in a drain")
	w.Saw["export: "+[exportKinds]string{"opened", "settled", "quarantined", "resolved", "redriven", "discarded", "skipped", "rewound", "removed"}[c.kind]]++
}

// readExports returns the records of exports of a frame.
func readExports(w *World, body []byte) (all []exportChange) {
	if len(body) == 0 {
		return nil
	}
	h, rest, err := record.Open(body)
	if err != nil {
		w.fail("export-unreadable", "a frame: %v", err)
		return nil
	}
	var r record.Record
	for range h.Count {
		rest, _ = record.Next(rest, &r)
		kind := int(r.Kind) - int(record.PlaneKind(types.PlaneExport, 0))
		if kind < 0 || kind >= exportKinds {
			continue
		}
		c, b := exportChange{lsn: h.LSN, at: h.At, kind: kind}, r.Payload
		if kind == exportOpened {
			n, m := int(b[0]), int(b[1+b[0]])
			c.lane = meaning.Name{Tenant: r.Tenant, Sink: string(b[1 : 1+n]), Stream: string(b[2+n : 2+n+m])}
			if rest := b[2+n+m:]; len(rest) > 0 {
				c.position = binary.LittleEndian.Uint64(rest)
			}
		} else {
			c.lane = exportStreams[w.exports.laneOf(types.LaneID{Tenant: r.Tenant, ID: types.NameHash(b[:16])})]
			c.position, c.status, c.reason = binary.LittleEndian.Uint64(b[16:]), int(binary.LittleEndian.Uint16(b[32:])), int(b[34])
		}
		all = append(all, c)
	}
	return all
}

// recovers compares a recovered state with the model, and with all that was acknowledged.
func (x *exportWorld) recovers(w *World, st *state.State) {
	if x.acked > st.LSN && !w.unlawful {
		w.fail("export-acknowledged-lost", "%v was acknowledged, recovered is %v", x.acked, st.LSN)
	}
	left := exportOracle{changes: slices.Clone(x.oracle.changes)}
	left.cut(st.LSN)
	p := st.Plane(types.PlaneExport).(*export.Plane)
	if err := p.Check(); err != nil {
		w.fail("export-state", "%v", err)
	}
	if got, want := exportLanes(p), sortedLanes(left.book); !reflect.DeepEqual(got, want) {
		w.fail("export-state", "%v: lanes %+v, the model has %+v", st.LSN, got, want)
	}
}

// exportLanes returns the lanes of a plane in the form of the model.
func exportLanes(p *export.Plane) (all []meaning.Lane) {
	p.Lanes(0, func(l export.LaneState) bool {
		of := meaning.Lane{Name: meaning.Name{Tenant: l.Tenant, Sink: string(l.Sink), Stream: string(l.Stream)}, Cursor: l.Cursor}
		p.Rows(l.LaneID, func(r export.Quarantined) bool {
			of.Rows = append(of.Rows, meaning.Row{Position: r.Position, Reason: int(r.Reason), Status: int(r.Status), At: int64(r.At), Due: r.Due})
			return true
		})
		all = append(all, of)
		return true
	})
	return sortedLanes(&meaning.Book{Lanes: all})
}

func sortedLanes(b *meaning.Book) []meaning.Lane {
	all := b.Clone().Lanes
	for i := range all {
		if slices.SortFunc(all[i].Rows, func(a, b meaning.Row) int { return cmp.Compare(a.Position, b.Position) }); len(all[i].Rows) == 0 {
			all[i].Rows = nil
		}
	}
	slices.SortFunc(all, func(a, b meaning.Lane) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Sink, b.Sink), cmp.Compare(a.Stream, b.Stream))
	})
	return all
}

// certifyExports compares the durable frames at the end of a run with the model and the sink: the sink has every position up to
// the cursor, or it was quarantined.
func (w *World) certifyExports() {
	x := w.exports
	if x == nil {
		return
	}
	st := state.New(w.limits, 1)
	for i := range w.testified.frames {
		if err := st.Fold(w.testified.frames[i].Body, nil); err != nil {
			w.fail("export-fold", "%v: %v", w.testified.frames[i].LSN, err)
			return
		}
	}
	x.recovers(w, &st)
	for i, n := range exportStreams {
		l := x.oracle.book.Find(n)
		if l == nil {
			continue
		}
		for p := uint64(1); p <= l.Cursor; p++ {
			if !x.sink[i][p] && !x.oracle.given[i][p] {
				w.fail("export-lost", "%v at %d, and the sink does not have %d", n, l.Cursor, p)
			}
		}
		for p := range x.sink[i] { //nolint:maporder // the rule is the same for each
			if p > x.head(w, i) {
				w.fail("export-of-nothing", "%v: the sink has %d, the last is %d", n, p, x.head(w, i))
			}
		}
	}
	for _, a := range x.asks { //nolint:maporder // the rule is the same for each
		if a.stepped {
			w.fail("never-answered", "the command %+v was let in and never answered", a.of)
		}
	}
}

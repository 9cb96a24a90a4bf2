// Package meter counts usage inside of another program, by the accounting plane alone: without a node, and without a task of its own. The
// program decides when time passes and where frames are kept. The product does not link this package.
//
//	Record ──► frame ──► the program makes it durable, and answers then
//	Seal   ──► frame with the slices of the windows that are over
//	Replay ◄── frames, in order, after a start
//
// A Meter must not be used concurrently.
package meter

import (
	"errors"
	"fmt"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// Errors of Record and Replay.
var (
	ErrUndated = errors.New("meter: an event without a time of its own: it could not be forgotten")
	ErrFull    = errors.New("meter: too many events of the last 35 days")
	ErrFrame   = errors.New("meter: a frame that does not follow")
)

// frameSlices is the number of slices of one frame.
const frameSlices = 64

// A RejectedError says why no event of a call was recorded.
type RejectedError struct {
	Problem event.Problem
	Event   int // from 1; 0: no single one is at fault
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("meter: event %d: %s", e.Event, e.Problem.Detail())
}

// A Meter is the usage of all frames so far.
type Meter struct {
	plane  *accounting.Plane
	slices []accounting.Slice
	seen   map[name]command.PriorOutcome
	order  []named // of seen, by time
	most   int     // of seen

	lsn  types.LSN // of the last frame
	at   types.Time
	body []byte // of the open frame; nil: none
	rec  record.Record
}

// A name identifies an event.
type name struct {
	tenant types.Tenant
	event  types.NameHash
}

type named struct {
	name
	at types.Time
}

// New returns a meter without usage. It keeps the names of at most maxEvents events, each for 35 days, and all slices.
func New(l accounting.Limits, maxEvents int) *Meter {
	return &Meter{plane: accounting.New(l, 0), most: maxEvents, seen: make(map[name]command.PriorOutcome, maxEvents)}
}

// Record counts events of a tenant at a time: all of them, or none. An event that was counted before has no effect; so the same call may
// be repeated. The frame must be durable before the events are acknowledged. It is nil if all of them were counted before.
func (m *Meter) Record(at types.Time, t types.Tenant, events []accounting.Event) (frame []byte, recorded int, err error) {
	for i := range events {
		if events[i].Undated {
			return nil, 0, ErrUndated
		}
	}
	c := &accounting.RecordEvents{Header: command.Header{Tenant: t}, Events: append([]accounting.Event(nil), events...)}
	for i := range c.Events {
		c.Events[i].Place = uint16(i)
	}
	if err := c.Seal(); err != nil {
		return nil, 0, err
	}
	if err := c.ValidateFields(); err != nil {
		return nil, 0, err
	}
	m.pass(at)
	before := len(m.seen)
	if before+m.fresh(t, c.Events) > m.most {
		return nil, 0, ErrFull
	}
	var reply event.Reply
	m.plane.Decide(m.at, c, &open{m}, &reply)
	if reply.Problem != event.None {
		return nil, 0, &RejectedError{reply.Problem, int(reply.Item)}
	}
	if recorded = len(m.seen) - before; recorded == 0 { // the report alone changes nothing
		m.body = nil
		m.lsn--
		return nil, 0, nil
	}
	return m.end(), recorded, nil
}

// fresh returns how many events were not counted yet.
func (m *Meter) fresh(t types.Tenant, events []accounting.Event) (n int) {
	for i := range events {
		if _, is := m.seen[name{t, accounting.EventName(events[i].Source, events[i].ID)}]; !is {
			n++
		}
	}
	return n
}

// Seal seals windows that are over at a time, with at most frameSlices slices. The program calls it now and then, and again until it
// returns nil. A window is sealed once, and late usage is in a correction.
func (m *Meter) Seal(at types.Time) (frame []byte) {
	m.pass(at)
	f := open{m}
	for range frameSlices {
		if !m.plane.Expire(m.at, &m.rec) {
			break
		}
		f.Add()
	}
	return m.end()
}

// Replay applies a frame that Record or Seal has returned. Frames come in order.
func (m *Meter) Replay(frame []byte) error {
	h, rest, err := record.OpenWhole(frame)
	if err != nil {
		return err
	}
	if h.LSN != m.lsn+1 || h.At < m.at {
		return ErrFrame
	}
	m.lsn = h.LSN
	m.pass(h.At)
	for i := range h.Count {
		if rest, err = record.Next(rest, &m.rec); err != nil {
			return err
		}
		if !m.plane.Fits(&m.rec) {
			return ErrFrame
		}
		m.apply(i)
	}
	return nil
}

// Units returns the usage of a dimension of a tenant, in windows that begin in [from, to).
func (m *Meter) Units(t types.Tenant, dimension string, from, to types.Time) (sum types.Amount) {
	add := func(w accounting.Window, value uint64) {
		if from <= w.From && w.From < to {
			sum, _ = sum.Add(types.MinorUnits(value))
		}
	}
	for i := range m.slices {
		if s := &m.slices[i]; s.Tenant == t && string(s.Dimension) == dimension {
			for _, r := range s.Rows {
				add(s.Window, r.Value)
			}
		}
	}
	m.plane.Open(t, func(r accounting.OpenRow) bool {
		if string(r.Dimension) == dimension {
			add(r.Window, r.Value)
		}
		return true
	})
	return sum
}

// Slices returns all sealed slices, in the order in which they were sealed. An accounting.Verifier verifies them.
func (m *Meter) Slices() []accounting.Slice { return m.slices }

// pass lets time pass. It never goes back, and names are forgotten when their events are too old to be recorded again.
func (m *Meter) pass(to types.Time) {
	m.at = max(m.at, to)
	for len(m.order) > 0 && m.order[0].at.Add(accounting.MaxFuture+accounting.MaxAge) < m.at {
		delete(m.seen, m.order[0].name)
		m.order = m.order[1:]
	}
}

// apply applies the record with an index in its frame.
func (m *Meter) apply(index uint16) {
	r, id := &m.rec, types.NewTxID(0, types.Position{LSN: m.lsn, Index: index})
	for i := range m.plane.Refs(r) {
		ref, content := m.plane.Ref(r, i)
		k := name{r.Tenant, ref}
		m.seen[k] = command.PriorOutcome{Hash: content, ID: id, At: m.at}
		m.order = append(m.order, named{k, m.at})
	}
	m.plane.Apply(m.at, id, r)
	if _, is := accounting.ReadSlice(r); is {
		s, err := accounting.DecodeSlice(r.Tenant, append([]byte(nil), r.Payload...))
		types.Assert(err == nil, "meter: a slice that cannot be read")
		m.slices = append(m.slices, s)
	}
}

// end ends the open frame.
func (m *Meter) end() (frame []byte) {
	frame, m.body = m.body, nil
	return frame
}

// open is the open frame of a meter.
type open struct{ *Meter }

var _ plane.Frame = open{}

func (f open) Record() *record.Record { return &f.rec }

// Add adds a record to the frame, and applies it.
func (f open) Add() types.Position {
	if f.body == nil {
		f.lsn++
		f.body = record.Begin(nil, f.lsn, f.at)
	}
	var index uint16
	f.body, index = record.Add(f.body, 0, &f.rec)
	f.apply(index)
	return types.Position{LSN: f.lsn, Index: index}
}

// FindRef returns what an event was counted by.
func (f open) FindRef(t types.Tenant, ref types.NameHash, prior command.PriorOutcome) (command.PriorOutcome, bool) {
	if s, ok := f.seen[name{t, ref}]; ok {
		return s, true
	}
	return prior, false
}

// The plane records a call after all of it was checked, so nothing is ever undone.
func (open) Savepoint() {}
func (open) Undo()      {}
func (open) Commit()    {}

package accounting

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

// MaxEvents is the number of events of one command.
const MaxEvents = 1024

// Limits of the identity of an event.
const (
	MaxSource  = 256 // bytes
	MaxEventID = 256 // bytes
)

// Why a command is invalid.
var (
	ErrEvents = errors.New("events: must be 1..1024")
	ErrSeries = errors.New("events: a series is not from NewSeries")
	ErrTime   = errors.New("events: the time is missing, or before 1970")
	ErrSame   = errors.New("events: the same id with other content")
)

// An Event is usage that was observed once. Its source and its ID identify it for ever within a tenant:
// the same event has one effect, however often it is reported.
type Event struct {
	Source  string // whence the event is
	ID      string // unique within the source
	Series  Series
	Value   uint64     // in units of the dimension
	Time    types.Time // when it happened
	Undated bool       // Time is that of the request: an equal event may have another
	Place   uint16     // in the request, from 0

	name    types.NameHash       // of source and ID
	content types.RequestHash    // of all other fields
	prior   command.PriorOutcome // of name, from the index
}

// RecordEvents counts events. All of them are recorded, or none: then Item of the reply is the first
// event with the problem, from 1. Its problems are EventConflict (the same source and ID with other
// content), EventTooOld, EventInFuture, UsageOverflow and UsageCapacity.
//
// It needs no idempotency key: a retry finds its events recorded.
type RecordEvents struct {
	command.Header
	Events []Event

	repeats int  // equal events that Seal removed
	prepaid bool // its usage is paid in the same step: SealPrepaid
}

// Plane is the accounting plane.
func (*RecordEvents) Plane() types.Plane { return types.PlaneAccounting }

// ValidateFields returns why c is invalid.
func (c *RecordEvents) ValidateFields() error {
	if len(c.Events) == 0 || len(c.Events)+c.repeats > MaxEvents {
		return ErrEvents
	}
	for i := range c.Events {
		e := &c.Events[i]
		switch {
		case e.Series.check() != nil:
			return ErrSeries
		case e.Time <= 0:
			return ErrTime
		}
	}
	return nil
}

// Refs passes the name of each event and where to put its outcome.
func (c *RecordEvents) Refs(each func(types.NameHash, *command.PriorOutcome)) {
	for i := range c.Events {
		each(c.Events[i].name, &c.Events[i].prior)
	}
}

// A SameIDError names two events of one request with the same source and ID and other content.
type SameIDError struct{ First, Second uint16 }

func (e *SameIDError) Error() string {
	return fmt.Sprintf("%v: events %d and %d", ErrSame, e.First, e.Second)
}
func (e *SameIDError) Unwrap() error { return ErrSame }

// Seal computes the digests of c and sorts its events, outside of the step. Of equal events it keeps one.
// Its error is a *SameIDError.
func (c *RecordEvents) Seal() error {
	for i := range c.Events {
		c.Events[i].seal()
	}
	order := make([]uint16, len(c.Events)) // places in c.Events: an event is large to move
	for i := range order {
		order[i] = uint16(i)
	}
	sort := func(compare func(a, b *Event) int) {
		slices.SortFunc(order, func(i, j uint16) int {
			a, b := &c.Events[i], &c.Events[j]
			return cmp.Or(compare(a, b), cmp.Compare(a.Place, b.Place))
		})
	}
	sort(func(a, b *Event) int { return bytes.Compare(a.name[:], b.name[:]) })
	for i := 1; i < len(order); i++ {
		if a, b := &c.Events[order[i-1]], &c.Events[order[i]]; a.name == b.name && a.content != b.content {
			return &SameIDError{a.Place, b.Place}
		}
	}
	order = slices.CompactFunc(order, func(i, j uint16) bool { return c.Events[i].name == c.Events[j].name })
	c.repeats = len(c.Events) - len(order)
	sort(func(a, b *Event) int { // the order of Decide
		if by := bytes.Compare(a.Series.Dimension, b.Series.Dimension); by != 0 {
			return by
		}
		return cmp.Or(bytes.Compare(a.Series.Labels, b.Series.Labels), cmp.Compare(a.Time, b.Time))
	})
	sorted := make([]Event, len(order))
	for i, place := range order {
		sorted[i] = c.Events[place]
	}
	c.Events = sorted
	return nil
}

// SealPrepaid is Seal for events that are paid in the step that records them: see CheckPrepaid.
func (c *RecordEvents) SealPrepaid() error {
	c.prepaid = true
	return c.Seal()
}

func (e *Event) seal() {
	e.name = EventName(e.Source, e.ID)
	at := e.Time
	if e.Undated {
		at = 0
	}
	b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, e.Value), uint64(at))
	e.content = digest.RequestHash(append(append(append(b, e.Series.Dimension...), 0), e.Series.Labels...))
}

// EventName returns the digest that identifies an event. No ref of the wallet has the same: a ref has no
// zero byte.
func EventName(source, id string) types.NameHash {
	b := binary.LittleEndian.AppendUint16([]byte("\x00event\x00"), uint16(len(source)))
	return digest.Name(append(append(b, source...), id...))
}

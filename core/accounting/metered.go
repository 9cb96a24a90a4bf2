package accounting

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/types"
)

// MaxMetered is the number of rows of one RecordMetered.
const MaxMetered = 1024

// ErrMetered means that a RecordMetered has an API key, an idempotency key, no rows or too many, or an invalid row.
var ErrMetered = errors.New("metered: must be 1..1024 rows of series, with a time and at least one event, and no key")

// Metered is usage that the node counted itself.
type Metered struct {
	Series Series
	Time   types.Time // in the window; a time that the node has not reached counts as now
	Count
}

// RecordMetered counts usage that the node counted itself. All of it is recorded, or none. Its problems are
// EventTooOld, UsageOverflow and UsageCapacity.
//
// Nothing identifies its rows: a command whose outcome is unknown must not be repeated.
type RecordMetered struct {
	command.Header
	Metered []Metered // in the order of Sort
}

var _ command.ByNode = (*RecordMetered)(nil)

// Plane is the accounting plane.
func (*RecordMetered) Plane() types.Plane { return types.PlaneAccounting }

// ByNode is true: no request can be one.
func (*RecordMetered) ByNode() bool { return true }

// ValidateFields returns ErrMetered if c is invalid.
func (c *RecordMetered) ValidateFields() error {
	if c.Caller != 0 || len(c.Key.Text) > 0 || len(c.Metered) == 0 || len(c.Metered) > MaxMetered {
		return ErrMetered
	}
	for i := range c.Metered {
		if m := &c.Metered[i]; m.Series.check() != nil || m.Time <= 0 || m.Events == 0 {
			return ErrMetered
		}
	}
	return nil
}

// Sort puts the rows in the order that the command needs: by dimension, labels and time.
func (c *RecordMetered) Sort() {
	slices.SortFunc(c.Metered, func(a, b Metered) int {
		return cmp.Or(slices.Compare(a.Series.Dimension, b.Series.Dimension), slices.Compare(a.Series.Labels, b.Series.Labels), cmp.Compare(a.Time, b.Time))
	})
}

// decideMetered records all rows, or none. The limit of dimensions of a tenant is no limit here: the node meters three of them, and
// the dimensions that a tenant makes itself must not keep them out.
func (p *Plane) decideMetered(at types.Time, in *RecordMetered, f plane.Frame, reply *event.Reply) {
	if reply.Problem, reply.Shortage = p.CheckMetered(at, in.Tenant, in.Metered, false); reply.Problem == event.None {
		reply.Position = p.AddMetered(at, in.Tenant, in.Metered, false, f)
	}
}

// CheckMetered returns why rows of a tenant cannot be recorded: EventTooOld, UsageOverflow, or UsageCapacity with the shortage.
func (p *Plane) CheckMetered(at types.Time, t types.Tenant, rows []Metered, prepaid bool) (event.Problem, event.Shortage) {
	var need needs
	for i := range rows {
		m := &rows[i]
		if m.Time < at.Add(-MaxAge) {
			return event.EventTooOld, event.Shortage{}
		}
		if !need.add(p, p.meteredKey(at, t, m, prepaid), m.Series.stream, m.Value) {
			return event.UsageOverflow, event.Shortage{}
		}
	}
	need.tenantStreams = 0
	if s := p.shortage(t, &need); s.Limit != event.NoLimit {
		return event.UsageCapacity, s
	}
	return event.None, event.Shortage{}
}

// AddMetered records rows that CheckMetered has accepted, and returns the position of the last.
func (p *Plane) AddMetered(at types.Time, t types.Tenant, rows []Metered, prepaid bool, f plane.Frame) (last types.Position) {
	for i := range rows {
		m := &rows[i]
		k := p.meteredKey(at, t, m, prepaid)
		u := k.usage(&m.Series)
		b := binary.LittleEndian.AppendUint64(u.appendPrefix(p.payload[:0]), m.Value)
		last = p.add(f, t, kindMetered, binary.LittleEndian.AppendUint64(b, m.Events))
	}
	return last
}

func (p *Plane) meteredKey(at types.Time, t types.Tenant, m *Metered, prepaid bool) rowKey {
	k := p.keyOf(at, t, min(m.Time, at), m.Series.ID)
	k.prepaid = prepaid
	return k
}

// MonthOfMetered returns the month of the lines of m, which is recorded at at.
func (p *Plane) MonthOfMetered(at types.Time, m *Metered) types.Time {
	return MonthOf(p.windowAt(min(m.Time, at)).From).From
}

// Package export is the reference model of the export plane: lists that are searched from the beginning. It shares no
// code with the plane, so that both cannot have the same bug.
package export

import (
	"slices"

	"macronode/core/types"
)

// An Outcome is what becomes of a command.
type Outcome string

const (
	Done     Outcome = "done"
	NoChange Outcome = "no change"
	NotFound Outcome = "not found"
	Moved    Outcome = "moved"
	Capacity Outcome = "capacity"
)

// A Book has all lanes, and the largest numbers of lanes and rows. A tenant whose number is 0 has as many as it leaves to others.
type Book struct {
	MaxLanes, MaxTenantLanes, MaxRows, MaxTenantRows int

	Lanes []Lane
	Sinks []Sink
}

// A Sink was seen, and gets the items after a frame.
type Sink struct {
	Name  string
	After uint64
}

// A Name identifies a lane.
type Name struct {
	Tenant       types.Tenant
	Sink, Stream string
}

// A Lane has the positions up to its cursor.
type Lane struct {
	Name
	Cursor uint64
	Rows   []Row
}

// A Row is a position in quarantine.
type Row struct {
	Position       uint64
	Reason, Status int
	At             int64
	Due            bool
}

// Clone returns a copy.
func (b *Book) Clone() *Book {
	c := *b
	c.Lanes, c.Sinks = slices.Clone(b.Lanes), slices.Clone(b.Sinks)
	for i := range c.Lanes {
		c.Lanes[i].Rows = slices.Clone(c.Lanes[i].Rows)
	}
	return &c
}

// Find returns a lane, or nil.
func (b *Book) Find(n Name) *Lane {
	for i := range b.Lanes {
		if b.Lanes[i].Name == n {
			return &b.Lanes[i]
		}
	}
	return nil
}

func (b *Book) row(n Name, position uint64) *Row {
	if l := b.Find(n); l != nil {
		for i := range l.Rows {
			if l.Rows[i].Position == position {
				return &l.Rows[i]
			}
		}
	}
	return nil
}

// Begin records that a sink is seen in a frame: the first one decides.
func (b *Book) Begin(sink string, now bool, frame uint64) Outcome {
	if slices.ContainsFunc(b.Sinks, func(s Sink) bool { return s.Name == sink }) {
		return NoChange
	}
	if !now || slices.ContainsFunc(b.Lanes, func(l Lane) bool { return l.Sink == sink }) {
		frame = 0
	}
	b.Sinks = append(b.Sinks, Sink{sink, frame})
	return Done
}

// Forget removes a sink.
func (b *Book) Forget(sink string) Outcome {
	left := slices.DeleteFunc(slices.Clone(b.Sinks), func(s Sink) bool { return s.Name == sink })
	if len(left) == len(b.Sinks) {
		return NotFound
	}
	b.Sinks = left
	return Done
}

// full reports whether a tenant gets no more of what all tenants have: it is at its limit, or has no limit and as many as are left.
func full(all, most, ofTenant, mostOfTenant int) bool {
	if mostOfTenant == 0 {
		mostOfTenant = most - all
	}
	return all >= most || ofTenant >= mostOfTenant
}

// Open makes a lane, whose positions up to after are not exported.
func (b *Book) Open(n Name, after uint64) Outcome {
	ofTenant := 0
	for _, l := range b.Lanes {
		if l.Name == n {
			return NoChange
		}
		if l.Tenant == n.Tenant {
			ofTenant++
		}
	}
	if full(len(b.Lanes), b.MaxLanes, ofTenant, b.MaxTenantLanes) {
		return Capacity
	}
	b.Lanes = append(b.Lanes, Lane{Name: n, Cursor: after})
	return Done
}

// Settle delivers from..to.
func (b *Book) Settle(n Name, from, to uint64) Outcome {
	l := b.Find(n)
	switch {
	case l == nil:
		return NotFound
	case from != l.Cursor+1:
		return Moved
	}
	l.Cursor = to
	return Done
}

// Quarantine keeps a position.
func (b *Book) Quarantine(n Name, r Row) Outcome {
	l, was := b.Find(n), b.row(n, r.Position)
	switch {
	case l == nil:
		return NotFound
	case was != nil:
		*was = r
		return Done
	case r.Position != l.Cursor+1:
		return Moved
	}
	all, ofTenant := 0, 0
	for _, o := range b.Lanes {
		all += len(o.Rows)
		if o.Tenant == n.Tenant {
			ofTenant += len(o.Rows)
		}
	}
	if full(all, b.MaxRows, ofTenant, b.MaxTenantRows) {
		return Capacity
	}
	l.Cursor++
	l.Rows = append(l.Rows, r)
	return Done
}

// Redrive marks a row as due.
func (b *Book) Redrive(n Name, position uint64) Outcome {
	r := b.row(n, position)
	switch {
	case r == nil:
		return NotFound
	case r.Due:
		return NoChange
	}
	r.Due = true
	return Done
}

// End removes a row.
func (b *Book) End(n Name, position uint64) Outcome {
	if b.row(n, position) == nil {
		return NotFound
	}
	l := b.Find(n)
	l.Rows = slices.DeleteFunc(l.Rows, func(r Row) bool { return r.Position == position })
	return Done
}

// Skip moves a cursor forward.
func (b *Book) Skip(n Name, to uint64) Outcome {
	l := b.Find(n)
	switch {
	case l == nil:
		return NotFound
	case to <= l.Cursor:
		return Moved
	}
	l.Cursor = to
	return Done
}

// Rewind moves a cursor back.
func (b *Book) Rewind(n Name, to uint64) Outcome {
	l := b.Find(n)
	switch {
	case l == nil:
		return NotFound
	case to >= l.Cursor:
		return Moved
	}
	l.Cursor = to
	l.Rows = slices.DeleteFunc(l.Rows, func(r Row) bool { return r.Position > to })
	return Done
}

// Remove ends a lane.
func (b *Book) Remove(n Name) Outcome {
	if b.Find(n) == nil {
		return NotFound
	}
	b.Lanes = slices.DeleteFunc(b.Lanes, func(l Lane) bool { return l.Name == n })
	return Done
}

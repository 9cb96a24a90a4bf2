// Package accounting is the reference model of the accounting plane: lists that are searched from the beginning. It
// shares no code with the plane, so that both cannot have the same bug.
package accounting

import (
	"cmp"
	"math/big"
	"slices"

	"macronode/core/types"
)

// An Outcome is what becomes of a command.
type Outcome string

const (
	Conflict Outcome = "conflict"
	TooOld   Outcome = "too old"
	InFuture Outcome = "in the future"
	Overflow Outcome = "overflow"
	Capacity Outcome = "capacity"
)

// Limits of a Book, in rows and milliseconds.
type Limits struct {
	Rows, Streams, TenantRows, TenantStreams int
	Window, Grace, MaxAge, MaxFuture         int64
}

// An Event is usage that was observed once.
type Event struct {
	ID                string
	Dimension, Labels string
	Value             uint64
	Time              int64
	Undated           bool // an equal event may have another time
}

// Metered is usage that the node counted itself. Nothing identifies it.
type Metered struct {
	Dimension, Labels string
	Value             uint64
	Events            int
	Time              int64 // a later time than that of the node counts as now
}

// A row is usage that was recorded, with its place in the books.
type row struct {
	tenant            types.Tenant
	dimension, labels string
	from, to, due     int64
	late, prepaid     bool
	value             uint64
	events            int
}

// A Slice is sealed usage.
type Slice struct {
	Tenant    types.Tenant
	Dimension string
	Seq       int
	Late      bool
	Prepaid   bool
	From, To  int64
	Rows      []Row
}

// A Row is the usage of a series.
type Row struct {
	Labels string
	Value  uint64
	Events int
}

type seen struct {
	tenant types.Tenant
	event  Event
}

// A Book is the state of the accounting plane.
type Book struct {
	Limits Limits
	Slices []Slice // all that were ever sealed

	seen    []seen
	open    []row // one for each event and each metered usage that is not sealed
	all     []row // as open, also those that are sealed
	streams []stream
}

type stream struct {
	tenant    types.Tenant
	dimension string
}

// Counts are the numbers of an answer.
type Counts struct{ Recorded, Duplicate, Late int }

// Record counts events at a time. If there are problems, it counts none of them and returns all problems.
func (b *Book) Record(at int64, t types.Tenant, events []Event) (problems []Outcome, n Counts) {
	return b.record(at, t, events, false)
}

// RecordPrepaid is Record for events that are paid.
func (b *Book) RecordPrepaid(at int64, t types.Tenant, events []Event) (problems []Outcome, n Counts) {
	return b.record(at, t, events, true)
}

func (b *Book) record(at int64, t types.Tenant, events []Event, prepaid bool) (problems []Outcome, n Counts) {
	next := &Book{b.Limits, b.Slices, slices.Clone(b.seen), slices.Clone(b.open), b.all, slices.Clone(b.streams)}
	for _, e := range events {
		if i := slices.IndexFunc(next.seen, func(s seen) bool { return s.tenant == t && s.event.ID == e.ID }); i >= 0 {
			if !sameContent(next.seen[i].event, e) {
				problems = append(problems, Conflict)
			}
			n.Duplicate++
			continue
		}
		next.seen = append(next.seen, seen{t, e})
		switch {
		case e.Time < at-b.Limits.MaxAge:
			problems = append(problems, TooOld)
			continue
		case e.Time > at+b.Limits.MaxFuture:
			problems = append(problems, InFuture)
			continue
		}
		n.Recorded++
		if next.place(at, e.Time, row{tenant: t, dimension: e.Dimension, labels: e.Labels, value: e.Value, events: 1, prepaid: prepaid}) {
			n.Late++
		}
	}
	asked := *next
	asked.Limits.Rows -= b.Limits.Rows / 4 // a quarter is for metered usage
	asked.Limits.TenantRows -= b.Limits.TenantRows / 4
	if problems = append(problems, asked.limits(b, t)...); len(problems) > 0 {
		return problems, Counts{}
	}
	*b = *next
	return nil, n
}

// Meter counts metered usage at a time. If there are problems, it counts none of it and returns all problems.
func (b *Book) Meter(at int64, t types.Tenant, usage []Metered) (problems []Outcome) {
	return b.meter(at, t, usage, false)
}

// MeterPrepaid is Meter for usage that is paid, or due.
func (b *Book) MeterPrepaid(at int64, t types.Tenant, usage []Metered) (problems []Outcome) {
	return b.meter(at, t, usage, true)
}

func (b *Book) meter(at int64, t types.Tenant, usage []Metered, prepaid bool) (problems []Outcome) {
	next := &Book{b.Limits, b.Slices, b.seen, slices.Clone(b.open), b.all, slices.Clone(b.streams)}
	for _, m := range usage {
		if m.Time < at-b.Limits.MaxAge {
			problems = append(problems, TooOld)
			continue
		}
		next.place(at, min(m.Time, at), row{tenant: t, dimension: m.Dimension, labels: m.Labels, value: m.Value, events: m.Events, prepaid: prepaid})
	}
	free := *next
	free.Limits.TenantStreams = len(next.streams) // the dimensions of metered usage have no limit of the tenant
	if problems = append(problems, free.limits(b, t)...); len(problems) == 0 {
		*b = *next
	}
	return problems
}

// limits returns the limits that b exceeds, with more usage of a tenant than before.
func (b *Book) limits(before *Book, t types.Tenant) (problems []Outcome) {
	if b.overflows() {
		problems = append(problems, Overflow)
	}
	if b.isFull(before, t) {
		problems = append(problems, Capacity)
	}
	return problems
}

func sameContent(a, b Event) bool {
	if a.Undated != b.Undated {
		return false
	}
	if a.Undated {
		a.Time, b.Time = 0, 0
	}
	return a == b
}

// place adds usage of a time, which is recorded at at, and reports whether it is late.
func (b *Book) place(at, of int64, r row) (late bool) {
	r.from = of / b.Limits.Window * b.Limits.Window
	r.to = r.from + b.Limits.Window
	if r.due = r.to + b.Limits.Grace; r.due <= at {
		r.late, r.due = true, at/b.Limits.Window*b.Limits.Window+b.Limits.Window+b.Limits.Grace
	}
	b.open = append(b.open, r)
	b.all = append(b.all, r)
	if s := (stream{r.tenant, r.dimension}); !slices.Contains(b.streams, s) {
		b.streams = append(b.streams, s)
	}
	return r.late
}

func sameRow(a, b row) bool {
	a.value, b.value, a.events, b.events = 0, 0, 0, 0
	return a == b
}

func (b *Book) overflows() bool {
	for _, r := range b.open {
		sum := new(big.Int)
		for _, o := range b.open {
			if sameRow(r, o) {
				sum.Add(sum, new(big.Int).SetUint64(o.value))
			}
		}
		if !sum.IsUint64() {
			return true
		}
	}
	return false
}

// count returns the numbers of rows and streams, of all tenants and of one.
func (b *Book) count(t types.Tenant) (rows, tenantRows, streams, tenantStreams int) {
	var distinct []row
	for _, r := range b.open {
		if !slices.ContainsFunc(distinct, func(d row) bool { return sameRow(d, r) }) {
			distinct = append(distinct, r)
			if r.tenant == t {
				tenantRows++
			}
		}
	}
	for _, s := range b.streams {
		if s.tenant == t {
			tenantStreams++
		}
	}
	return len(distinct), tenantRows, len(b.streams), tenantStreams
}

// isFull reports whether b has more rows or streams than a limit, and more than before.
func (b *Book) isFull(before *Book, t types.Tenant) bool {
	rows, tenantRows, streams, tenantStreams := b.count(t)
	wasRows, _, wasStreams, _ := before.count(t)
	exhausted := tenantRows > b.Limits.TenantRows
	if b.Limits.TenantRows == 0 { // for the last of the new rows, the tenant had fewer than were left
		exhausted = tenantRows-1 >= b.Limits.Rows-(rows-1)
	}
	return rows > wasRows && (rows > b.Limits.Rows || exhausted) ||
		streams > wasStreams && (streams > b.Limits.Streams || tenantStreams > b.Limits.TenantStreams)
}

// Seal seals everything that is due at a time, with at most most rows in a slice, and returns the new slices.
func (b *Book) Seal(at int64, most int) []Slice {
	before := len(b.Slices)
	var due []row
	b.open = slices.DeleteFunc(slices.Clone(b.open), func(r row) bool {
		if r.due <= at {
			due = append(due, r)
		}
		return r.due <= at
	})
	slices.SortStableFunc(due, func(a, b row) int {
		number := func(is bool) int {
			if is {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.dimension, b.dimension), cmp.Compare(number(a.late), number(b.late)), cmp.Compare(number(a.prepaid), number(b.prepaid)),
			cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.labels, b.labels))
	})
	var last row
	for _, r := range due {
		slice := func(r row) row { return row{r.tenant, r.dimension, "", r.from, r.to, r.due, r.late, r.prepaid, 0, 0} }
		n := len(b.Slices)
		fresh := n == before || slice(r) != slice(last)
		if !fresh {
			s := &b.Slices[n-1]
			if row := &s.Rows[len(s.Rows)-1]; row.Labels == r.labels {
				row.Value += r.value
				row.Events += r.events
				continue
			}
			if fresh = len(s.Rows) == most; !fresh {
				s.Rows = append(s.Rows, Row{r.labels, r.value, r.events})
				continue
			}
		}
		last = r
		seq := 1
		for _, s := range b.Slices {
			if s.Tenant == r.tenant && s.Dimension == r.dimension {
				seq++
			}
		}
		b.Slices = append(b.Slices, Slice{r.tenant, r.dimension, seq, r.late, r.prepaid, r.from, r.to, []Row{{r.labels, r.value, r.events}}})
	}
	return b.Slices[before:]
}

// A Sum is the usage of a series in a window.
type Sum struct {
	Dimension, Labels string
	From, To          int64
	Value, Late       *big.Int // Late is a part of Value
	Events            int
}

// AsOf returns the usage of a tenant that was due by a time, in the order of dimension, window and labels.
func (b *Book) AsOf(t types.Tenant, asOf int64) (all []Sum) {
	for _, r := range b.all {
		if r.tenant != t || r.due > asOf {
			continue
		}
		i := slices.IndexFunc(all, func(s Sum) bool {
			return s.Dimension == r.dimension && s.Labels == r.labels && s.From == r.from && s.To == r.to
		})
		if i < 0 {
			i = len(all)
			all = append(all, Sum{r.dimension, r.labels, r.from, r.to, new(big.Int), new(big.Int), 0})
		}
		value := new(big.Int).SetUint64(r.value)
		all[i].Value.Add(all[i].Value, value)
		if r.late {
			all[i].Late.Add(all[i].Late, value)
		}
		all[i].Events += r.events
	}
	slices.SortFunc(all, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Labels, b.Labels))
	})
	return all
}

// AsOfLimit returns the latest time up to at by which nothing is due that is not sealed.
func (b *Book) AsOfLimit(at int64) int64 {
	for _, r := range b.open {
		at = min(at, r.due-1)
	}
	return at
}

// Total is the usage of a series in a window, sealed or not.
func (b *Book) Total(t types.Tenant, dimension, labels string, from int64) (value uint64, events int) {
	for _, s := range b.Slices {
		for _, r := range s.Rows {
			if s.Tenant == t && s.Dimension == dimension && s.From == from && r.Labels == labels {
				value, events = value+r.Value, events+r.Events
			}
		}
	}
	for _, r := range b.open {
		if r.tenant == t && r.dimension == dimension && r.from == from && r.labels == labels {
			value, events = value+r.value, events+r.events
		}
	}
	return value, events
}

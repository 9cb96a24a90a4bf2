// Package accounting is the accounting plane: usage is counted into windows of UTC time, and each window
// is sealed into slices that form a hash chain.
//
//	events ──► RecordEvents ──► rows of open windows ──time──► slices ──► index, exports
//	             │ duplicate: no effect                        seq 1, 2, 3 … of each stream
//	             └ late: a row of the next correction
//
// The usage of a prepaid tenant is paid as it is recorded: core/flow decides the price, and a line has what is paid.
//
// A row is the usage of one series in one window. A stream is a dimension of a tenant: its slices have
// no gap, and each names the digest of the one before. A sealed slice never changes: usage that comes
// too late for its window is in a correction, which names that window.
package accounting

import (
	"time"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/table"
	"macronode/core/types"
)

// Limits of a Plane.
type Limits struct {
	Rows      int // of all windows that are not sealed
	Streams   int // of all tenants; a stream is permanent
	Tenants   int // that have a stream
	TenantRow int // rows of one tenant; 0: see share.Left
	TenantDim int // streams of one tenant
	Lines     int // of prepaid usage, of all tenants

	Window time.Duration // length of a window; windows begin at multiples of it since 1970
	Grace  time.Duration // after the end of a window, until it is sealed
}

// How far the time of an event may be from that of the node.
const (
	MaxAge    = 35 * 24 * time.Hour
	MaxFuture = 5 * time.Minute
)

// Plane is the state of the accounting plane.
//
// Invariants:
//
//	A1  every row has a stream, and rows and streams are counted by their tenant
//	A2  due is a heap of all rows
//	A3  the list of a tenant has each of its rows once
//	A4  the seq of a stream is the number of its slices, and head the digest of the last one
//	A5  closing is a heap of all lines, and each line is of a month
type Plane struct {
	limits  Limits
	rows    table.Pool[rowKey, Count]
	texts   []seriesText // by place in rows
	links   []link       // by place in rows: the list of its tenant
	due     table.Heap
	streams table.Pool[streamKey, Stream]
	tenants table.Pool[types.Tenant, tenant]
	lines   table.Pool[LineKey, Line]
	closing table.Heap // of lines

	noting bool // since a savepoint: usage is recorded outside of it

	payload [types.MaxPlaneRecord]byte // scratch of Decide and Expire
	fresh   [MaxEvents]bool            // scratch of Decide: the events that are no duplicates
	order   [maxSliceRows + 1]uint32   // scratch of Expire
	scratch [maxSlice + 64]byte        // scratch of Expire
}

var _ plane.Plane = (*Plane)(nil)

// Spec returns the plane for the list of planes of state.Limits.
func Spec(l Limits) plane.Spec {
	return plane.Spec{ID: types.PlaneAccounting, Bytes: Bytes(l),
		New: func(seed types.Hash64) plane.Plane { return New(l, seed) }}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.PoolBytes[rowKey, Count](l.Rows) + table.SliceBytes[seriesText](l.Rows) + table.SliceBytes[link](l.Rows) +
		table.HeapBytes(l.Rows) + table.PoolBytes[streamKey, Stream](l.Streams) + table.PoolBytes[types.Tenant, tenant](l.Tenants) +
		table.PoolBytes[LineKey, Line](l.Lines) + table.HeapBytes(l.Lines)
}

// New returns a plane without usage.
func New(l Limits, seed types.Hash64) *Plane {
	return &Plane{limits: l, rows: table.NewPool[rowKey, Count](l.Rows, seed), texts: make([]seriesText, l.Rows), links: make([]link, l.Rows),
		due: table.NewHeap(l.Rows), streams: table.NewPool[streamKey, Stream](l.Streams, seed), tenants: table.NewPool[types.Tenant, tenant](l.Tenants, seed),
		lines: table.NewPool[LineKey, Line](l.Lines, seed), closing: table.NewHeap(l.Lines)}
}

// ID is that of the accounting plane.
func (*Plane) ID() types.Plane { return types.PlaneAccounting }

// Authorized requires the scope meter.
func (*Plane) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeMeter)
}

// Cost is a ref for each event, and the records of all events. Events are many, and can wait: they leave room for the
// keys of payments.
func (*Plane) Cost(c command.Command) command.Cost {
	cost := command.Cost{Bytes: 2 * types.MaxRecord} // the report, and the eviction of old keys
	switch in := c.(type) {
	case *RecordEvents:
		cost.Rows, cost.LowPriority = len(in.Events), true
		for i := range in.Events {
			cost.Bytes += usageBytes(&in.Events[i].Series, entrySize)
		}
	case *RecordMetered:
		for i := range in.Metered {
			cost.Bytes += usageBytes(&in.Metered[i].Series, countSize)
		}
	}
	return cost
}

// usageBytes is the size of a record of usage of a series, with its entries.
func usageBytes(s *Series, entries int) int {
	return recordPrefix + usagePrefix + len(s.Dimension) + len(s.Labels) + entries
}

// Hash identifies the state.
func (p *Plane) Hash() types.Hash64 {
	h := p.rows.Hash().Mix(uint64(p.streams.Hash())).Mix(uint64(p.tenants.Hash()))
	if p.lines.Len() > 0 { // without lines, as before there were any
		h = h.Mix(uint64(p.lines.Hash()))
	}
	return h
}

// CopyTo overwrites dst, or returns a new copy.
func (p *Plane) CopyTo(dst plane.Plane) plane.Plane {
	d, ok := dst.(*Plane)
	if !ok {
		d = &Plane{}
	}
	d.limits = p.limits
	used := p.rows.Capacity()
	if len(d.texts) != len(p.texts) {
		d.texts, d.links = make([]seriesText, len(p.texts)), make([]link, len(p.links))
	}
	copy(d.texts, p.texts[:used])
	copy(d.links, p.links[:used])
	p.rows.CopyTo(&d.rows)
	p.due.CopyTo(&d.due, used)
	p.streams.CopyTo(&d.streams)
	p.tenants.CopyTo(&d.tenants)
	p.lines.CopyTo(&d.lines)
	p.closing.CopyTo(&d.closing, p.lines.Capacity())
	return d
}

// Savepoint, Undo and Commit bound what a flow may revert. Usage is never among it: Apply asserts that.
func (p *Plane) Savepoint() { p.noting = true }
func (p *Plane) Undo()      { p.noting = false }
func (p *Plane) Commit()    { p.noting = false }

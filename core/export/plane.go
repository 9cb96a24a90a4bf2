// Package export is the export plane: how far each stream of a tenant was exported to each sink.
//
//	stream:  1 2 3 4 5 6 7 8 …      slices of a dimension, or movements of the wallet: they are in the journal
//	lane:    ✓ ✓ ✗ ✓ ✓ │            cursor 5: 1, 2, 4 and 5 are settled, 3 is quarantined
//	                   └ the next
//
// A lane contains positions, not data: what it has not exported stays in the journal, so nothing is ever shed.
// The next position is exported when all positions before it are settled, quarantined, or skipped by an operator.
// A quarantined position is kept until it is redelivered or discarded. If the quarantine is full, the lane waits.
package export

import (
	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/table"
	"macronode/core/types"
)

// Limits of a Plane.
type Limits struct {
	Lanes       int // of all tenants
	TenantLanes int // of one tenant; 0: see share.Left
	Rows        int // quarantined positions of all tenants
	TenantRows  int // of one tenant; 0: see share.Left
}

// Plane is the state of the export plane.
//
// Invariants:
//
//	E1  a quarantined position is not after the cursor of its lane
//	E2  the list of a lane has each of its rows once, and the lane counts them and those that are due
//	E3  a tenant counts its lanes and rows, and is known while it has a lane
//	E4  the ID of a lane is the digest of its names
//	E5  the key of a sink is the digest of its name
type Plane struct {
	plane.NoRefs
	limits  Limits
	lanes   table.Pool[types.LaneID, lane]
	names   []names // by place in lanes
	rows    table.Pool[rowKey, row]
	links   []link // by place in rows: the list of its lane
	tenants table.Pool[types.Tenant, tenant]
	sinks   table.Pool[types.NameHash, sink]

	noting bool // since a savepoint: nothing is exported in it

	payload [maxPayload]byte // scratch of Decide
}

var _ plane.Plane = (*Plane)(nil)

// Spec returns the plane for the list of planes of state.Limits.
func Spec(l Limits) plane.Spec {
	return plane.Spec{ID: types.PlaneExport, Bytes: Bytes(l),
		New: func(seed types.Hash64) plane.Plane { return New(l, seed) }}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.PoolBytes[types.LaneID, lane](l.Lanes) + table.SliceBytes[names](l.Lanes) +
		table.PoolBytes[rowKey, row](l.Rows) + table.SliceBytes[link](l.Rows) + table.PoolBytes[types.Tenant, tenant](l.Lanes) +
		table.PoolBytes[types.NameHash, sink](MaxSinks)
}

// New returns a plane without lanes.
func New(l Limits, seed types.Hash64) *Plane {
	return &Plane{limits: l, lanes: table.NewPool[types.LaneID, lane](l.Lanes, seed), names: make([]names, l.Lanes),
		rows: table.NewPool[rowKey, row](l.Rows, seed), links: make([]link, l.Rows), tenants: table.NewPool[types.Tenant, tenant](l.Lanes, seed),
		sinks: table.NewPool[types.NameHash, sink](MaxSinks, seed)}
}

// ID is that of the export plane.
func (*Plane) ID() types.Plane { return types.PlaneExport }

// Authorized requires the node itself, or for a command of an operator a key with the scope admin.
func (*Plane) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	in := c.Head()
	if in.Caller == 0 {
		return true
	}
	own, is := c.(command.ByNode)
	return !(is && own.ByNode()) && keys.Allows(at, in.Caller, in.Tenant, event.ScopeAdmin)
}

// Cost is that of two records: the change, and the eviction of old keys.
func (*Plane) Cost(command.Command) command.Cost { return command.Cost{Bytes: 2 * types.MaxRecord} }

// Hash identifies the state. Without sinks it is that of the journals that have no records of them.
func (p *Plane) Hash() types.Hash64 {
	h := p.lanes.Hash().Mix(uint64(p.rows.Hash())).Mix(uint64(p.tenants.Hash()))
	if p.sinks.Len() > 0 {
		h = h.Mix(uint64(p.sinks.Hash()))
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
	if len(d.names) != len(p.names) || len(d.links) != len(p.links) {
		d.names, d.links = make([]names, len(p.names)), make([]link, len(p.links))
	}
	copy(d.names, p.names[:p.lanes.Capacity()])
	copy(d.links, p.links[:p.rows.Capacity()])
	p.lanes.CopyTo(&d.lanes)
	p.rows.CopyTo(&d.rows)
	p.tenants.CopyTo(&d.tenants)
	p.sinks.CopyTo(&d.sinks)
	return d
}

// Savepoint, Undo and Commit bound what a flow may revert. Exports are never among it: Apply asserts that.
func (p *Plane) Savepoint() { p.noting = true }
func (p *Plane) Undo()      { p.noting = false }
func (p *Plane) Commit()    { p.noting = false }

// HasTimers is false: nothing is due by time alone.
func (*Plane) HasTimers() bool                        { return false }
func (*Plane) Expire(types.Time, *record.Record) bool { return false }

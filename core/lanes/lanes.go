// Package lanes decides which position is sent to a sink next. There is one Machine per sink.
//
//	Offer ──► ready ──Next──► sent ──► acknowledged ──NextCommand──► settled ──► next position, or idle
//	            ▲               │ retryable, or permanent within the budget
//	            └── backoff ◄───┤
//	                            └ permanent after the budget ──NextCommand──► quarantined
//
// A lane has positions, not data. It is loaded while it has something to send or to settle. An idle lane takes
// no memory here: its cursor is in core/export. What is not loaded waits in the journal, and Again reports when
// to look for it.
//
// The machine is volatile. After a restart every lane goes on after its durable cursor: a position may be sent
// twice, and is never left out.
package lanes

import (
	"time"

	"macronode/core/queue"
	"macronode/core/table"
	"macronode/core/types"
)

// Limits of a Machine.
type Limits struct {
	Active   int    // lanes that are loaded
	Inflight int    // sends at once
	Tenant   int    // of these, of one tenant; 0: it leaves room for others, see share.MayGrow
	Commands int    // commands to the node at once
	Window   uint64 // positions of a lane that the sink has acknowledged and that are not settled

	Backoff    time.Duration // before the first retry, at most; it doubles with each further one
	MaxBackoff time.Duration
	Budget     time.Duration // of permanent failures of a position before its quarantine
	Failures   int           // of several tenants in a row, after which the sink is taken for down
}

// MaxWeight is the largest weight of a tenant.
const MaxWeight = 8

// DefaultLimits returns the limits of a sink that is not configured otherwise.
func DefaultLimits() Limits {
	return Limits{Active: 8192, Inflight: 16, Commands: 64, Window: 64,
		Backoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second, Budget: 10 * time.Second, Failures: 5}
}

// A key identifies what is loaded: a lane, or the redelivery of a quarantined position.
type key struct {
	lane types.LaneID
	row  uint64 // the position; 0: the lane itself
}

// HashInto mixes k into h.
func (k key) HashInto(h types.Hash64) types.Hash64 { return k.lane.HashInto(h).Mix(k.row) }

// nothing is the value of a table that is used as a set.
type nothing struct{}

// HashInto returns h.
func (nothing) HashInto(h types.Hash64) types.Hash64 { return h }

// A stage is where a lane is.
type stage uint8

const (
	idle    stage = iota // it has nothing to send now
	ready                // in the list of its tenant
	delayed              // in the heap, until its retry
	sent                 // its next position is being sent
)

// A lane has the positions between its cursor and its head: cursor ≤ acked ≤ head.
type lane struct {
	tenant uint32 // a place in tenants
	cursor uint64 // settled
	acked  uint64 // the sink has the positions up to here; the next one is sent
	head   uint64 // positions up to here exist
	stage  stage

	tries     uint32        // failed attempts of the next position
	due       types.Instant // of the next attempt, if delayed
	permanent bool          // the next position has failed permanently
	since     types.Instant // when it did first

	reason  types.ExportReason // why the next position is to be quarantined; 0: it is not
	status  uint16
	blocked bool // the quarantine is full

	owed    bool // in the queue of lanes that have a command for the node
	asked   bool // a command of the lane is with the node
	leaving bool // its cursor has moved: it leaves as soon as nothing of it runs

	prev, next uint32 // in the list of its tenant: places plus one; 0: none
}

// Machine is the scheduler of a sink.
//
// Invariants:
//
//	L1  of a lane at most one send and one command run; a position is sent after those before it are acknowledged,
//	    and settled after those before it are settled or quarantined
//	L2  at most Inflight sends run, and Commands commands; of one tenant, at most Tenant sends, or it leaves room for others
//	L3  a lane that is ready is in the list of its tenant once, a delayed one in the heap, one with a command in
//	    the queue
//	L4  a tenant is in the ring once if it has a ready lane, and is known while it has a lane
//	L5  at most Window positions of a lane are acknowledged and not settled
type Machine struct {
	limits  Limits
	weight  func(types.Tenant) uint8
	dice    types.Rand
	keys    table.Pool[key, nothing]
	lanes   []lane // by place in keys
	known   table.Pool[types.Tenant, nothing]
	tenants []tenant // by place in known
	ring    ring
	owed    queue.Queue[place] // of lanes
	retries table.Heap         // of lanes

	inflight int
	commands int
	leaving  int
	again    bool // something is not loaded
	stopped  bool

	failures int          // retryable ones in a row
	failed   types.Tenant // of the last of them
	several  bool         // they are of several tenants
	open     bool         // the sink is taken for down
	probes   uint32       // that have failed
	probeAt  types.Instant

	refusals  uint32 // commands in a row that the node could not take
	commandAt types.Instant

	counters Counters
}

// A place is a place in lanes.
type place uint32

// HashInto mixes p into h.
func (p place) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(p)) }

// Counters count since the start.
type Counters struct {
	Delivered   uint64 // positions that the sink acknowledged
	Duplicates  uint64 // of these, it had already
	Retryable   uint64 // sends that failed because of the sink
	Permanent   uint64 // sends that the sink rejected
	Quarantined uint64 // positions
}

// Stats are the numbers of a machine.
type Stats struct {
	Active   int  // lanes
	Inflight int  // sends
	Commands int  // with the node
	Blocked  int  // lanes that wait because the quarantine is full
	Down     bool // the sink is taken for down: one probe at a time
	Counters
}

// New returns a machine without lanes. The weight of a tenant, 1..8, is the number of its sends in a turn; if
// weight is nil, it is 1 for all.
func New(l Limits, weight func(types.Tenant) uint8, dice types.Rand) *Machine {
	types.Assert(l.Active > 0 && l.Inflight > 0 && l.Tenant >= 0 && l.Commands > 0 && l.Window > 0 && l.Failures > 0, "lanes: limits without room")
	types.Assert(l.Backoff > 0 && l.Backoff <= l.MaxBackoff && l.Budget >= 0, "lanes: a backoff that does not grow")
	seed := types.Hash64(dice.Uint64n(1 << 62))
	return &Machine{limits: l, weight: weight, dice: dice, keys: table.NewPool[key, nothing](l.Active, seed), lanes: make([]lane, l.Active),
		known: table.NewPool[types.Tenant, nothing](l.Active, seed), tenants: make([]tenant, l.Active),
		owed: queue.New[place](l.Active, queue.Reject), retries: table.NewHeap(l.Active), again: true}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.PoolBytes[key, nothing](l.Active) + table.SliceBytes[lane](l.Active) + table.PoolBytes[types.Tenant, nothing](l.Active) +
		table.SliceBytes[tenant](l.Active) + table.SliceBytes[place](l.Active) + table.HeapBytes(l.Active)
}

// Offer loads a lane whose positions up to cursor are settled, and up to head exist. The cursor was read after the
// last answer to a command. If the lane is loaded, its head is raised. If an operator has moved the cursor
// meanwhile, the lane leaves first. Offer returns false if the lane is not loaded as it is offered: then Again
// reports when to offer it again.
func (m *Machine) Offer(id types.LaneID, cursor, head uint64) (loaded bool) {
	return m.offer(key{id, 0}, cursor, head)
}

// Reload lets everything leave that is loaded of a lane, because an operator has changed it: Again reports when to
// offer it again. What is being sent ends first. It visits all lanes.
func (m *Machine) Reload(id types.LaneID) {
	m.again = true
	for p := range m.keys.Capacity() {
		if k, _, taken := m.keys.At(uint32(p)); taken && k.lane == id {
			m.leave(uint32(p))
		}
	}
}

// leave lets a lane leave as soon as nothing of it runs. If it has a command for the node, that finds out what the
// cursor is.
func (m *Machine) leave(p uint32) {
	l := &m.lanes[p]
	m.again = true
	if l.leaving || l.owed || l.asked {
		return
	}
	l.leaving = true
	m.leaving++
	m.schedule(p)
}

// OfferRow loads the redelivery of a quarantined position.
func (m *Machine) OfferRow(id types.LaneID, position uint64) (loaded bool) {
	return m.offer(key{id, position}, position-1, position)
}

func (m *Machine) offer(k key, cursor, head uint64) bool {
	if p, known := m.keys.Find(k); known {
		l := &m.lanes[p]
		if l.leaving {
			m.again = true
			return false
		}
		if !l.asked && (cursor < l.cursor || l.acked < cursor) {
			m.leave(p)
			return false
		}
		l.head = max(l.head, head)
		m.schedule(p)
		return true
	}
	switch {
	case head <= cursor:
		return true
	case m.stopped, m.keys.Room() == 0:
		m.again = true
		return false
	}
	p := m.keys.Put(k, nothing{})
	m.lanes[p] = lane{tenant: m.addLane(k.lane.Tenant), cursor: cursor, acked: cursor, head: head}
	m.schedule(p)
	return true
}

// schedule moves the lane at a place to where it belongs after a change, or unloads it.
func (m *Machine) schedule(p uint32) {
	l := &m.lanes[p]
	if l.stage == idle && !l.leaving && l.reason == 0 && l.acked < l.head && l.acked-l.cursor < m.limits.Window {
		m.addReady(p)
	}
	if !l.owed && !l.asked && !l.leaving && (l.cursor < l.acked || l.reason != 0) {
		l.owed = true
		err := m.owed.Push(place(p))
		types.Assert(err == nil, "lanes: a place twice in the queue")
	}
	if l.leaving && l.stage == ready {
		m.dropReady(p)
	}
	if l.leaving && l.stage == delayed {
		m.retries.Remove(p, m.sooner)
		l.stage = idle
	}
	if l.stage == idle && !l.owed && !l.asked && (l.leaving || l.cursor == l.head) {
		m.unload(p)
	}
}

func (m *Machine) unload(p uint32) {
	if m.lanes[p].leaving {
		m.leaving--
	}
	m.dropLane(m.lanes[p].tenant)
	m.lanes[p] = lane{}
	m.keys.Drop(p)
}

// sooner is the order of the retries.
func (m *Machine) sooner(a, b uint32) bool {
	da, db := m.lanes[a].due, m.lanes[b].due
	return da < db || da == db && a < b
}

// Loaded reports whether a lane is loaded, or the redelivery of a row of it; row 0: the lane.
func (m *Machine) Loaded(id types.LaneID, row uint64) bool {
	_, loaded := m.keys.Find(key{id, row})
	return loaded
}

// Again reports that something may not be loaded, and that there is room for it: offer all lanes again that
// have something to export, beginning after the last one that was loaded. It is true at first.
func (m *Machine) Again() bool {
	return m.again && !m.stopped && m.leaving == 0 && m.keys.Room() >= max(1, m.limits.Active/8)
}

// BeginScan begins to offer all lanes again.
func (m *Machine) BeginScan() { m.again = false }

// Room returns the number of lanes that can be loaded.
func (m *Machine) Room() int { return m.keys.Room() }

// Stop ends the sends, because the node drains. Those that run are waited for, and what the sink has
// acknowledged is still settled.
func (m *Machine) Stop() { m.stopped = true }

// Idle reports that nothing is being sent, and nothing is to be settled.
func (m *Machine) Idle() bool { return m.inflight == 0 && m.commands == 0 && m.owed.Len() == 0 }

// Due returns when Next or NextCommand may return something that they do not return now. False: not without
// another call.
func (m *Machine) Due() (due types.Instant, any bool) {
	earlier := func(at types.Instant) {
		if !any || at < due {
			due, any = at, true
		}
	}
	if p, ok := m.retries.First(); ok && !m.stopped {
		earlier(m.lanes[p].due)
	}
	if m.open && m.ring.first > 0 && m.inflight == 0 && !m.stopped {
		earlier(m.probeAt)
	}
	if m.owed.Len() > 0 && m.commands < m.limits.Commands {
		earlier(m.commandAt)
	}
	return due, any
}

// Stats returns the numbers of m. It visits all lanes.
func (m *Machine) Stats() Stats {
	s := Stats{Active: m.keys.Len(), Inflight: m.inflight, Commands: m.commands, Down: m.open, Counters: m.counters}
	for p := range m.keys.Capacity() {
		if _, _, taken := m.keys.At(uint32(p)); taken && m.lanes[p].blocked {
			s.Blocked++
		}
	}
	return s
}

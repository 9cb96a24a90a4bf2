package lanes

import (
	"macronode/core/share"
	"macronode/core/types"
)

// A tenant has the lanes of it that are ready, in the order in which they became so. A turn is as many sends as its
// weight. It goes on while the tenant has sends that run, even if none of its lanes is ready meanwhile.
type tenant struct {
	lanes       uint32 // that are loaded
	out         int    // sends that run
	first, last uint32 // places in lanes plus one; 0: none
	credit      uint8  // sends that are left of its turn
	turn        bool   // it is in the ring
	prev, next  uint32 // in the ring: places plus one; 0: none
}

// A ring has the tenants that have something to send, in the order of their turns. One that may have no further send now keeps its place.
type ring struct{ first, last uint32 } // places plus one; 0: none

// addLane counts a lane of a tenant and returns the place of the tenant.
func (m *Machine) addLane(t types.Tenant) (at uint32) {
	at, known := m.known.Find(t)
	if !known {
		at = m.known.Put(t, nothing{})
		m.tenants[at] = tenant{}
	}
	m.tenants[at].lanes++
	return at
}

// dropLane is the opposite of addLane. A tenant that has no lane is forgotten.
func (m *Machine) dropLane(at uint32) {
	t := &m.tenants[at]
	if t.lanes--; t.lanes > 0 {
		return
	}
	types.Assert(!t.turn && t.out == 0 && t.first == 0, "lanes: a tenant with work and without a lane")
	m.known.Drop(at)
}

// addReady adds the idle lane at a place to the end of the list of its tenant.
func (m *Machine) addReady(p uint32) {
	l := &m.lanes[p]
	t := &m.tenants[l.tenant]
	l.stage, l.prev, l.next = ready, t.last, 0
	if t.last > 0 {
		m.lanes[t.last-1].next = p + 1
	} else {
		t.first = p + 1
	}
	t.last = p + 1
	m.enter(l.tenant)
}

// dropReady removes the lane at a place from the list of its tenant.
func (m *Machine) dropReady(p uint32) {
	l := &m.lanes[p]
	t := &m.tenants[l.tenant]
	if l.prev > 0 {
		m.lanes[l.prev-1].next = l.next
	} else {
		t.first = l.next
	}
	if l.next > 0 {
		m.lanes[l.next-1].prev = l.prev
	} else {
		t.last = l.prev
	}
	l.stage, l.prev, l.next = idle, 0, 0
	if t.first == 0 && t.turn {
		m.exit(l.tenant)
	}
	m.rest(l.tenant)
}

// enter lets a tenant take part, if it has something to send: at the front if its turn is not over, else at the end.
func (m *Machine) enter(at uint32) {
	t := &m.tenants[at]
	if t.turn || t.first == 0 {
		return
	}
	t.turn = true
	switch r := &m.ring; {
	case r.first == 0:
		r.first, r.last = at+1, at+1
	case t.credit > 0:
		t.next, m.tenants[r.first-1].prev = r.first, at+1
		r.first = at + 1
	default:
		t.prev, m.tenants[r.last-1].next = r.last, at+1
		r.last = at + 1
	}
}

// exit takes a tenant out of the ring.
func (m *Machine) exit(at uint32) {
	t := &m.tenants[at]
	if t.prev > 0 {
		m.tenants[t.prev-1].next = t.next
	} else {
		m.ring.first = t.next
	}
	if t.next > 0 {
		m.tenants[t.next-1].prev = t.prev
	} else {
		m.ring.last = t.prev
	}
	t.turn, t.prev, t.next = false, 0, 0
}

// rest ends the turn of a tenant that has nothing to send.
func (m *Machine) rest(at uint32) {
	if t := &m.tenants[at]; t.first == 0 && t.out == 0 {
		t.credit = 0
	}
}

// nextTurn returns the first tenant in the ring that may have another send. Those before it have sends that run: they are fewer than Inflight.
func (m *Machine) nextTurn() (at uint32, ok bool) {
	for next := m.ring.first; next > 0; next = m.tenants[next-1].next {
		if m.mayGrow(next - 1) {
			return next - 1, true
		}
	}
	return 0, false
}

// mayGrow reports whether the tenant at a place may have another send. A send lasts as long as the sink wants: a tenant may have many lanes whose
// positions do not get an answer, and leaves room for others, also if these have nothing to send now.
func (m *Machine) mayGrow(at uint32) bool {
	has := m.tenants[at].out
	if m.limits.Tenant > 0 {
		return has < m.limits.Tenant
	}
	return share.MayGrow(int(m.weightOf(at)), has, m.limits.Inflight-m.inflight)
}

// takeTurn returns the first ready lane of a tenant in the ring. The lane is being sent from now on.
func (m *Machine) takeTurn(at uint32) (p uint32) {
	t := &m.tenants[at]
	if t.credit == 0 {
		t.credit = m.weightOf(at)
	}
	t.credit--
	t.out++
	p = t.first - 1
	m.dropReady(p)
	m.lanes[p].stage = sent
	if t.turn && t.credit == 0 {
		m.exit(at)
		m.enter(at)
	}
	return p
}

// weightOf returns the weight of the tenant at a place.
func (m *Machine) weightOf(at uint32) uint8 {
	if m.weight == nil {
		return 1
	}
	t, _ := m.known.Row(at)
	return min(max(m.weight(t), 1), MaxWeight)
}

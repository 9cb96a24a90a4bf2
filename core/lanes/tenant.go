package lanes

import "macronode/core/types"

// A tenant has the lanes of it that are ready, in the order in which they became so.
type tenant struct {
	lanes       uint32 // that are loaded
	out         int    // sends that run
	first, last uint32 // places in lanes plus one; 0: none
	credit      uint8  // sends that are left of its turn
	turn        bool   // it is in the ring
}

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
		m.leave(l.tenant)
	}
}

// enter gives a tenant a place at the end of the ring, if it may send.
func (m *Machine) enter(at uint32) {
	t := &m.tenants[at]
	if t.turn || t.first == 0 || t.out >= m.limits.Tenant {
		return
	}
	t.turn = true
	m.push(&m.ring, at)
}

// leave takes a tenant out of the ring, wherever it is. Its turn ends.
func (m *Machine) leave(at uint32) {
	for range m.ring.Len() {
		if p, _ := m.ring.Pop(); uint32(p) != at {
			m.push(&m.ring, uint32(p))
		}
	}
	m.tenants[at].turn, m.tenants[at].credit = false, 0
}

// takeTurn returns the first ready lane of the tenant whose turn it is, which is no longer ready.
func (m *Machine) takeTurn() (p uint32) {
	at := uint32(m.ring.At(0))
	t := &m.tenants[at]
	if t.credit == 0 {
		t.credit = m.weightOf(at)
	}
	p = t.first - 1
	l := &m.lanes[p]
	if t.first = l.next; t.first > 0 {
		m.lanes[t.first-1].prev = 0
	} else {
		t.last = 0
	}
	l.stage, l.prev, l.next = sent, 0, 0
	t.credit--
	t.out++
	if t.first == 0 || t.out >= m.limits.Tenant {
		t.credit = 0
	}
	if t.credit == 0 { // the turn ends
		m.ring.Pop()
		t.turn = false
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

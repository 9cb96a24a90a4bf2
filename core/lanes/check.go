package lanes

import (
	"errors"
	"fmt"
)

// Check returns the invariants that do not hold.
func (m *Machine) Check() error {
	errs := []error{m.keys.Check(), m.known.Check(), m.retries.Check(m.sooner), m.owed.Check()}
	var stages [sent + 1]int
	owed, asked, leaving := 0, 0, 0
	ofTenant := map[uint32][3]int{} // lanes, sends, ready
	for p := range m.keys.Capacity() {
		k, _, taken := m.keys.At(uint32(p))
		if !taken {
			continue
		}
		l := &m.lanes[p]
		stages[l.stage]++
		owed, asked, leaving = owed+count(l.owed), asked+count(l.asked), leaving+count(l.leaving)
		n := ofTenant[l.tenant]
		ofTenant[l.tenant] = [3]int{n[0] + 1, n[1] + count(l.stage == sent), n[2] + count(l.stage == ready)}
		switch t, _ := m.known.Row(l.tenant); {
		case t != k.lane.Tenant, l.owed && l.asked, l.stage == sent && l.acked == l.head, l.reason != 0 && l.stage != idle:
			errs = append(errs, fmt.Errorf("lanes: L1: place %d: %+v", p, *l))
		case l.cursor > l.acked, l.acked > l.head, l.acked-l.cursor > m.limits.Window:
			errs = append(errs, fmt.Errorf("lanes: L5: place %d: %+v", p, *l))
		}
	}
	if stages[sent] != m.inflight || m.inflight > m.limits.Inflight || asked != m.commands || asked > m.limits.Commands || leaving != m.leaving {
		errs = append(errs, fmt.Errorf("lanes: L2: %d sends and %d commands run, %d and %d are counted", stages[sent], asked, m.inflight, m.commands))
	}
	if stages[delayed] != m.retries.Len() || owed != m.owed.Len() {
		errs = append(errs, fmt.Errorf("lanes: L3: %d are delayed and %d owe a command, the heap has %d and the queue %d", stages[delayed], owed, m.retries.Len(), m.owed.Len()))
	}
	turns := 0
	for at := range m.known.Capacity() {
		if _, _, taken := m.known.At(uint32(at)); taken {
			errs = append(errs, m.checkTenant(uint32(at), ofTenant[uint32(at)]))
			turns += count(m.tenants[at].turn)
			delete(ofTenant, uint32(at))
		}
	}
	prev := uint32(0)
	for next := m.ring.first; next > 0 && turns >= 0; next = m.tenants[next-1].next {
		if t := &m.tenants[next-1]; !t.turn || t.prev != prev {
			errs = append(errs, errors.New("lanes: L4: the ring is broken"))
			break
		}
		turns--
		prev = next
	}
	if len(ofTenant) > 0 || turns != 0 || m.ring.last != prev {
		errs = append(errs, errors.New("lanes: L4: a lane of a tenant that is not known, or a ring without a tenant"))
	}
	return errors.Join(errs...)
}

// checkTenant compares a tenant with the numbers of its lanes, sends and ready lanes.
func (m *Machine) checkTenant(at uint32, want [3]int) error {
	t := &m.tenants[at]
	n, prev := 0, uint32(0)
	for next := t.first; next > 0 && n <= want[2]; next = m.lanes[next-1].next {
		if l := &m.lanes[next-1]; l.stage != ready || l.tenant != at || l.prev != prev {
			return fmt.Errorf("lanes: L3: the list of tenant place %d is broken", at)
		}
		n++
		prev = next
	}
	if n != want[2] || t.last != prev || int(t.lanes) != want[0] || t.out != want[1] ||
		t.turn != (n > 0) || t.credit >= MaxWeight || t.credit > 0 && n == 0 && t.out == 0 {
		return fmt.Errorf("lanes: L4: tenant place %d has %+v, %d ready; want %v", at, *t, n, want)
	}
	if most := m.limits.Tenant; most > 0 && t.out > most || most == 0 && t.out > max(1, m.limits.Inflight-1) {
		return fmt.Errorf("lanes: L2: tenant place %d has %d sends", at, t.out)
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

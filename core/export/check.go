package export

import (
	"errors"
	"fmt"

	"macronode/core/digest"
	"macronode/core/types"
)

// Check returns the invariants that do not hold.
func (p *Plane) Check() error {
	errs := []error{p.lanes.Check(), p.rows.Check(), p.tenants.Check(), p.sinks.Check()}
	count := map[types.Tenant]tenant{}
	listed := 0
	for at := range p.lanes.Capacity() {
		id, l, taken := p.lanes.At(uint32(at))
		if !taken {
			continue
		}
		t := count[id.Tenant]
		count[id.Tenant] = tenant{t.lanes + 1, t.rows + l.rows}
		listed += int(l.rows)
		n := &p.names[at]
		if !validNames(n.Sink(), n.Stream()) || identify(n.Sink(), id.Tenant, n.Stream()).LaneID != id {
			errs = append(errs, fmt.Errorf("export: E4: lane %d has other names", at))
		}
		errs = append(errs, p.checkList(uint32(at), id, l))
	}
	if listed != p.rows.Len() {
		errs = append(errs, fmt.Errorf("export: E2: the lanes count %d rows, there are %d", listed, p.rows.Len()))
	}
	for at := range p.sinks.Capacity() {
		if id, s, taken := p.sinks.At(uint32(at)); taken && digest.Name(s.name[:s.size]) != id {
			errs = append(errs, fmt.Errorf("export: E5: sink %d has another name", at))
		}
	}
	for at := range p.tenants.Capacity() {
		of, t, taken := p.tenants.At(uint32(at))
		if !taken {
			continue
		}
		if want := count[of]; t != want {
			errs = append(errs, fmt.Errorf("export: E3: tenant %d counts %v, and has %v", of, t, want))
		}
		delete(count, of)
	}
	if len(count) > 0 {
		errs = append(errs, errors.New("export: E3: a lane of a tenant that is not known"))
	}
	return errors.Join(errs...)
}

// checkList checks the rows of a lane.
func (p *Plane) checkList(place uint32, id types.LaneID, l lane) error {
	n, due, prev := uint32(0), uint32(0), uint32(0)
	for next := l.first; next > 0 && n <= l.rows; next = p.links[next-1].next {
		k, r := p.rows.Row(next - 1)
		n++
		due += one(r.due)
		switch {
		case k.lane != id, p.links[next-1].prev != prev:
			return fmt.Errorf("export: E2: the list of lane %d is broken", place)
		case k.position == 0, k.position > l.cursor:
			return fmt.Errorf("export: E1: lane %d at %d has %d in quarantine", place, l.cursor, k.position)
		}
		prev = next
	}
	if n != l.rows || due != l.due {
		return fmt.Errorf("export: E2: lane %d counts %d rows and %d due, and has %d and %d", place, l.rows, l.due, n, due)
	}
	return nil
}

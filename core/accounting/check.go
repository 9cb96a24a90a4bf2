package accounting

import (
	"errors"
	"fmt"

	"macronode/core/digest"
	"macronode/core/types"
)

// Check returns the invariants that do not hold.
func (p *Plane) Check() error {
	errs := []error{p.rows.Check(), p.streams.Check(), p.tenants.Check(), p.checkHeap(), p.checkLines()}
	count := map[types.Tenant]tenant{}
	for at := range p.rows.Capacity() {
		k, _, taken := p.rows.At(uint32(at))
		if !taken {
			continue
		}
		t := count[k.tenant]
		t.rows++
		count[k.tenant] = t
		text := &p.texts[at]
		if _, known := p.streams.Find(streamKey{k.tenant, digest.Name(text.Dimension())}); !known {
			errs = append(errs, fmt.Errorf("accounting: A1: row %d has no stream", at))
		}
		if s := identifySeries(text.Dimension(), text.Labels()); s.ID != k.series {
			errs = append(errs, fmt.Errorf("accounting: row %d has the text of another series", at))
		}
		if k.due < k.window.To {
			errs = append(errs, fmt.Errorf("accounting: row %d is sealed before its window ends", at))
		}
	}
	for at := range p.streams.Capacity() {
		k, s, taken := p.streams.At(uint32(at))
		if !taken {
			continue
		}
		t := count[k.tenant]
		t.streams++
		count[k.tenant] = t
		if (s.Seq == 0) != (s.Head == Digest{}) {
			errs = append(errs, fmt.Errorf("accounting: A4: stream %d with seq %d and head %v", at, s.Seq, s.Head))
		}
	}
	for at := range p.tenants.Capacity() {
		of, t, taken := p.tenants.At(uint32(at))
		if !taken {
			continue
		}
		want := count[of]
		delete(count, of)
		if t.rows != want.rows || t.streams != want.streams {
			errs = append(errs, fmt.Errorf("accounting: A1: tenant %d counts %d rows and %d streams, and has %d and %d", of, t.rows, t.streams, want.rows, want.streams))
		}
		errs = append(errs, p.checkList(of, t.rows))
	}
	if len(count) > 0 {
		errs = append(errs, errors.New("accounting: A1: a row or a stream of a tenant that is not counted"))
	}
	return errors.Join(errs...)
}

func (p *Plane) checkHeap() error {
	if p.due.Len() != p.rows.Len() {
		return fmt.Errorf("accounting: A2: %d rows, %d in the heap", p.rows.Len(), p.due.Len())
	}
	return p.due.Check(p.before)
}

func (p *Plane) checkLines() error {
	errs := []error{p.lines.Check(), p.closing.Check(p.closesBefore)}
	if p.closing.Len() != p.lines.Len() {
		errs = append(errs, fmt.Errorf("accounting: A5: %d lines, %d in the heap", p.lines.Len(), p.closing.Len()))
	}
	for at := range p.lines.Capacity() {
		if k, _, taken := p.lines.At(uint32(at)); taken && !isMonth(k.Month) {
			errs = append(errs, fmt.Errorf("accounting: A5: line %d is of no month", at))
		}
	}
	return errors.Join(errs...)
}

func (p *Plane) checkList(of types.Tenant, want uint32) error {
	n := uint32(0)
	p.openRows(of, func(place uint32) bool {
		k, _ := p.rows.Row(place)
		n++
		return k.tenant == of && n <= want
	})
	if n != want {
		return fmt.Errorf("accounting: A3: the list of tenant %d has %d rows, not %d", of, n, want)
	}
	return nil
}

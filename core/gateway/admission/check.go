package admission

import (
	"fmt"

	"macronode/core/gateway/drr"
	"macronode/core/table"
	"macronode/core/types"
)

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	n := table.SliceBytes[row](l.Places) + table.SliceBytes[uint32](l.Places) + routesBytes(&l)
	n += drr.Bytes(lineLimits(&l))
	for f := range l.Facets {
		n += drr.Bytes(queueLimits(&l, types.Facet(f)))
	}
	return n
}

// HashInto is h after all of a.
func (a *Admit) HashInto(h types.Hash64) types.Hash64 {
	h = a.line.HashInto(a.limits.HashInto(h.Mix(uint64(a.turn)).Mix(a.taken).MixBool(a.passed)))
	for f := range a.queues {
		h = a.queues[f].HashInto(h)
	}
	h = a.routes.hashInto(h)
	for i := range a.rows {
		if r := &a.rows[i]; r.state != free {
			h = r.flow.HashInto(h.Mix(uint64(r.ticket)).Mix(uint64(r.state)).Mix(uint64(r.facet)).Mix(uint64(r.route))).Mix(uint64(r.key)).MixBool(r.keyEnded).Mix(r.cost)
			h = h.Mix(uint64(r.since)).Mix(uint64(r.end)).Mix(uint64(r.until)).Mix(uint64(r.patience))
			h = h.Mix(uint64(r.part.state)).Mix(r.part.bytes).Mix(uint64(r.part.until))
		}
	}
	return h
}

// CopyTo overwrites dst, reusing its memory.
func (a *Admit) CopyTo(dst *Admit) {
	dst.plain = a.plain
	dst.rows, dst.dues = append(dst.rows[:0], a.rows...), append(dst.dues[:0], a.dues...)
	a.routes.copyTo(&dst.routes)
	for f := range a.queues {
		a.queues[f].CopyTo(&dst.queues[f])
	}
	a.line.CopyTo(&dst.line)
}

// Check returns the first invariant that does not hold.
func (a *Admit) Check() error {
	var outs [types.NumFacets]uint32
	listed := 0
	for i := range a.rows {
		r := &a.rows[i]
		if waits := a.queues[r.facet].Queued(uint32(i)); waits != (r.state == queued) {
			return fmt.Errorf("A2: place %d is in state %d, waits %v", i, r.state, waits)
		}
		if waits := a.line.Queued(uint32(i)); waits != (r.state == out && r.part.state == lined) || r.state == queued && r.part != (part{}) {
			return fmt.Errorf("A5: place %d is in state %d, its part in %d, in line %v", i, r.state, r.part.state, waits)
		}
		if r.state == free {
			continue
		}
		if r.state == out {
			outs[r.facet]++
		}
		if r.state != lost {
			listed++
			if int(r.due) >= len(a.dues) || a.dues[r.due] != uint32(i) {
				return fmt.Errorf("A3: place %d is not where it stands", i)
			}
		}
	}
	for f, n := range outs {
		if int(n) != a.queues[f].InUse() {
			return fmt.Errorf("A1: %d permits of %v are out, counted %d", n, types.Facet(f), a.queues[f].InUse())
		}
		if err := a.queues[f].Check(); err != nil {
			return err
		}
	}
	if err := a.line.Check(); err != nil {
		return err
	}
	for i := range a.dues {
		if i > 0 && a.before(i, (i-1)/2) {
			return fmt.Errorf("A3: %d is due before %d", a.dues[i], a.dues[(i-1)/2])
		}
	}
	if listed != len(a.dues) {
		return fmt.Errorf("A3: %d are due, %d stand there", listed, len(a.dues))
	}
	return a.routes.check(a.limits.Routes, a.rows)
}

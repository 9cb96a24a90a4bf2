package policycheck

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// ranked is numbers made small: in the same order, and nothing is nothing.
func ranked(all ...*int) {
	values := []int{0}
	for _, n := range all {
		values = append(values, *n)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for _, n := range all {
		at, _ := slices.BinarySearch(values, *n)
		*n = min(at, 4)
	}
}

// shrunk are two gates made small: who may be more before a change or behind it still is.
func shrunk(from, to event.Policy) (was, is event.Policy, places int) {
	was, is = from, to
	for f := range was.Facets {
		a, b := &was.Facets[f], &is.Facets[f]
		ranked(&a.Permits, &b.Permits)
		queue := []*int{&a.Queue, &b.Queue, &a.PerFlow, &b.PerFlow}
		for c := range types.NumClasses {
			queue = append(queue, &a.PerClass[c], &b.PerClass[c])
		}
		ranked(queue...)
		places += max(a.Permits+a.Queue, b.Permits+b.Queue)
	}
	was.Routes, is.Routes = nil, nil
	was.Upstreams, is.Upstreams = nil, nil
	return was, is, max(1, places)
}

// what may happen in a house.
const (
	crowd  = iota // one of each kind comes
	come          // the kinds, one after another
	settle = come + int(types.NumClasses) + 1
	leave  = settle + 1 // who waits
	late   = leave + 1
	stream = late + 1 // who is in, where bytes are counted
	moves  = stream + 1
)

// do makes a move; possible is false where there is nothing to move.
func (s *stage) do(move int) (possible bool, err error) {
	switch move {
	case crowd:
		for c := range types.NumClasses {
			if _, _, err := s.arrive(kind{class: c}); err != nil {
				return true, err
			}
		}
		return true, nil
	case settle:
		return s.leaves(in)
	case leave:
		return s.leaves(waits)
	case stream:
		if !s.play.bytes {
			return false, nil
		}
		return s.streams()
	case late:
		if s.count(types.FacetWallet, waits)+s.count(types.FacetQuery, waits) == 0 {
			return false, nil
		}
		return true, s.pass(s.gate.MaxWait)
	case come + int(types.NumClasses):
		_, _, err = s.arrive(kind{class: types.ClassAuthed, facet: types.FacetQuery})
	default:
		_, _, err = s.arrive(kind{class: types.Class(move - come)})
	}
	return true, err
}

// charged counts one by the rules that are for him: when he comes, or, of the instance, when
// he goes. Who is never let in is not counted any more.
func (s *stage) charged(g *guest, goes bool) {
	for i := range s.gate.Quotas {
		q := &s.gate.Quotas[i]
		keyed := q.Scope == types.ScopeKey || q.Scope == types.ScopeTenant
		if (q.Scope == types.ScopeInstance) == goes && q.Classes.Has(g.class) && q.Route == g.route && (g.class != types.ClassAnon || !keyed) {
			s.counts[i]++
			g.rules |= 1 << i
		}
	}
}

func (s *stage) undone(g *guest) {
	for m := g.rules; m != 0; m &= m - 1 {
		s.counts[bits.TrailingZeros16(m)]--
	}
	g.rules = 0
}

// before plays every history of so many moves, and the change behind each.
func (p *play) before(s *stage, to *event.Policy, fresh uint16, more int) error {
	if p.exhausted() {
		return nil
	}
	if err := p.change(s, to, fresh); err != nil || more == 0 {
		return err
	}
	for move := range moves {
		t := p.copy(s)
		possible, err := t.do(move)
		if err == nil && possible {
			err = p.before(t, to, fresh, more-1)
		}
		if p.done(t); err != nil {
			return err
		}
	}
	return nil
}

// change makes the change, and plays what may come behind it until all is quiet.
func (p *play) change(s *stage, to *event.Policy, fresh uint16) error {
	t := p.copy(s)
	defer p.done(t)
	was := t.gate
	t.gate = to
	if err := t.hear(&event.ApplyPolicy{Policy: *to}, "the change"); err != nil {
		return err
	}
	for i := range t.guests {
		if g := &t.guests[i]; g.state == waits && to.Weights[g.class] == 0 {
			return t.wrong("%v wait, who are not served", g.kind)
		}
	}
	for move := range moves {
		u := p.copy(t)
		possible, err := u.do(move)
		if err == nil && possible {
			err = u.bounded(was, fresh)
		}
		if err == nil && (possible || move == late) {
			err = u.quiet(move == crowd)
		}
		if p.done(u); err != nil {
			return err
		}
	}
	return nil
}

// bounded says which rule let more go, in no time, than the larger of its bursts.
func (s *stage) bounded(was *event.Policy, fresh uint16) error {
	for i := range min(len(was.Quotas), len(s.gate.Quotas)) {
		a, b := &was.Quotas[i], &s.gate.Quotas[i]
		if a.Scope == types.ScopeInstance && a.Unit == types.UnitBytes {
			continue // it lets go whom it can pay nothing for, and then is owed
		}
		same := a.Scope == b.Scope && a.Unit == b.Unit && a.Route == b.Route && fresh>>i&1 == 0 && !a.Shadow && !b.Shadow && a.Rate > 0 && b.Rate > 0
		if same && s.now.Mono == 0 && s.counts[i] > max(a.Burst, b.Burst) {
			return s.wrong("quota %d lets more go at once than either of its bursts", i+1)
		}
	}
	return nil
}

// quiet lets all leave, and all who are not told be told; then everybody who is served may
// still come in.
func (s *stage) quiet(doors bool) error {
	for i := range s.guests {
		if !s.guests[i].asks {
			continue
		}
		if err := s.pass(2*patience + 1); err != nil { // its caller's quotas, and its turn
			return err
		}
		if s.guests[i].asks {
			return s.wrong("one of the %v is never told whether he may go on", s.guests[i].kind)
		}
	}
	for any, round := true, 0; any; round++ {
		var err error
		for left := true; left && err == nil; {
			left, err = s.leaves(in)
		}
		if err == nil {
			err = s.pass(2 * time.Second) // nobody waits for longer
		}
		if err != nil {
			return err
		}
		any = false
		for i := range s.guests {
			g := &s.guests[i]
			if any = any || g.state != over; g.state == waits && round > 0 {
				return s.wrong("one of the %v is never told", g.kind)
			}
		}
	}
	var said event.Status
	s.node.Status(&said)
	for f := range types.NumFacets {
		if said.Permits[f] != 0 || said.Queued[f] != [types.NumClasses]uint32{} {
			return s.wrong("all have left, and %d permits of %v are out, %v wait", said.Permits[f], f, said.Queued[f])
		}
	}
	if !doors {
		return nil
	}
	return s.doors()
}

// turns plays permits, queues and weights: no quota is in their way.
func (p *play) turns(from, to event.Policy) error {
	was, is, places := shrunk(from, to)
	was.Quotas, is.Quotas, is.ResetQuotas = nil, nil, 0
	return p.house(was, is, places, 1)
}

// quotas plays quotas: with bursts as small as can be, and room for everybody.
func (p *play) quotas(from, to event.Policy) error {
	if len(from.Quotas)+len(to.Quotas) == 0 {
		return nil
	}
	was, is, _ := shrunk(from, to)
	was.Quotas, is.Quotas = slices.Clone(was.Quotas), slices.Clone(is.Quotas)
	for len(was.Quotas) < len(is.Quotas) {
		was.Quotas = append(was.Quotas, event.Quota{})
	}
	for len(is.Quotas) < len(was.Quotas) {
		is.Quotas = append(is.Quotas, event.Quota{})
	}
	for i := range was.Quotas {
		p.bytes = p.bytes || was.Quotas[i].Unit == types.UnitBytes || is.Quotas[i].Unit == types.UnitBytes
		a, b := int(min(was.Quotas[i].Burst, 1<<62)), int(min(is.Quotas[i].Burst, 1<<62))
		ranked(&a, &b)
		for q, burst := range [...]int{a, b} {
			of := [...]*event.Quota{&was.Quotas[i], &is.Quotas[i]}[q]
			if of.Burst = uint64(burst); of.Scope == types.ScopeInstance && burst > 0 {
				of.Burst += 4 // or nobody's own would ever be used up
			}
		}
	}
	for f := range was.Facets {
		room := event.FacetLimits{Permits: 8, Queue: 8, PerClass: [types.NumClasses]int{8, 8, 8}, PerFlow: 8}
		was.Facets[f], is.Facets[f] = room, room
	}
	return p.house(was, is, 16*int(types.NumFacets), 0)
}

// house plays a change in a small house: empty, busy, full.
func (p *play) house(was, is event.Policy, places, deep int) error {
	s := p.small(places, &was)
	for crowds := range 4 {
		for range crowds {
			if _, err := s.do(crowd); err != nil {
				return fmt.Errorf("before the change: %w", err)
			}
		}
		if err := p.before(s, &is, is.ResetQuotas, 1+(crowds+1)%2*deep); err != nil {
			return err
		}
	}
	return nil
}

package policycheck

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// rankAll replaces numbers by their ranks, at most 4. Zero stays zero.
func rankAll(all ...*int) {
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

// shrinkPolicies returns two small policies that preserve the order of the limits before and after the
// change.
func shrinkPolicies(from, to event.Policy) (was, is event.Policy, places int) {
	was, is = from, to
	for f := range was.Facets {
		a, b := &was.Facets[f], &is.Facets[f]
		rankAll(&a.Permits, &b.Permits)
		queue := []*int{&a.Queue, &b.Queue, &a.PerFlow, &b.PerFlow}
		for c := range types.NumClasses {
			queue = append(queue, &a.PerClass[c], &b.PerClass[c])
		}
		rankAll(queue...)
		places += max(a.Permits+a.Queue, b.Permits+b.Queue)
	}
	was.Routes, is.Routes = nil, nil
	was.Upstreams, is.Upstreams = nil, nil
	return was, is, max(1, places)
}

// The moves of a history.
const (
	arriveAll  = iota // one request of each class arrives
	arriveOne         // one move for each class
	finishOne  = arriveOne + int(types.NumClasses) + 1
	abandonOne = finishOne + 1 // a waiting request is abandoned
	timeOut    = abandonOne + 1
	sendMore   = timeOut + 1 // an admitted request sends more, if bytes are counted
	moves      = sendMore + 1
)

// do makes a move. possible is false if the move cannot be made.
func (s *simulation) do(move int) (possible bool, err error) {
	switch move {
	case arriveAll:
		for c := range types.NumClasses {
			if _, _, err := s.arrive(kind{class: c}); err != nil {
				return true, err
			}
		}
		return true, nil
	case finishOne:
		return s.finish(in)
	case abandonOne:
		return s.finish(waits)
	case sendMore:
		if !s.play.bytes {
			return false, nil
		}
		return s.reserveBytes()
	case timeOut:
		if s.count(types.FacetWallet, waits)+s.count(types.FacetQuery, waits) == 0 {
			return false, nil
		}
		return true, s.advance(s.gate.MaxWait)
	case arriveOne + int(types.NumClasses):
		_, _, err = s.arrive(kind{class: types.ClassAuthed, facet: types.FacetQuery})
	default:
		_, _, err = s.arrive(kind{class: types.Class(move - arriveOne)})
	}
	return true, err
}

// charge counts a request by the quotas that apply to it: on arrival, or on admission for quotas
// of the instance. A rejected request is not counted.
func (s *simulation) charge(g *request, goes bool) {
	for i := range s.gate.Quotas {
		q := &s.gate.Quotas[i]
		keyed := q.Scope == types.ScopeKey || q.Scope == types.ScopeTenant
		if (q.Scope == types.ScopeInstance) == goes && q.Classes.Has(g.class) && q.Route == g.route && (g.class != types.ClassAnon || !keyed) {
			s.counts[i]++
			g.rules |= 1 << i
		}
	}
}

func (s *simulation) uncharge(g *request) {
	for m := g.rules; m != 0; m &= m - 1 {
		s.counts[bits.TrailingZeros16(m)]--
	}
	g.rules = 0
}

// exploreBefore explores every history of a number of moves, with the change after each.
func (p *play) exploreBefore(s *simulation, to *event.Policy, fresh uint16, more int) error {
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
			err = p.exploreBefore(t, to, fresh, more-1)
		}
		if p.done(t); err != nil {
			return err
		}
	}
	return nil
}

// change applies the change and explores what may follow, until all requests have ended.
func (p *play) change(s *simulation, to *event.Policy, fresh uint16) error {
	t := p.copy(s)
	defer p.done(t)
	was := t.gate
	t.gate = to
	if err := t.handle(&event.ApplyPolicy{Policy: *to}, "the change"); err != nil {
		return err
	}
	for i := range t.requests {
		if g := &t.requests[i]; g.state == waits && to.Weights[g.class] == 0 {
			return t.wrong("%v wait although they are not served", g.kind)
		}
	}
	for move := range moves {
		u := p.copy(t)
		possible, err := u.do(move)
		if err == nil && possible {
			err = u.checkBurst(was, fresh)
		}
		if err == nil && (possible || move == timeOut) {
			err = u.checkQuiet(move == arriveAll)
		}
		if p.done(u); err != nil {
			return err
		}
	}
	return nil
}

// checkBurst returns an error if a quota admits more at one time than the larger of its bursts.
func (s *simulation) checkBurst(was *event.Policy, fresh uint16) error {
	for i := range min(len(was.Quotas), len(s.gate.Quotas)) {
		a, b := &was.Quotas[i], &s.gate.Quotas[i]
		if a.Scope == types.ScopeInstance && a.Unit == types.UnitBytes {
			continue // a request may make its balance negative
		}
		same := a.Scope == b.Scope && a.Unit == b.Unit && a.Route == b.Route && fresh>>i&1 == 0 && !a.Shadow && !b.Shadow && a.Rate > 0 && b.Rate > 0
		if same && s.now.Mono == 0 && s.counts[i] > max(a.Burst, b.Burst) {
			return s.wrong("quota %d admits more at once than either of its bursts", i+1)
		}
	}
	return nil
}

// checkQuiet ends all requests. Each must get a decision, and then every caller that is served can
// still be admitted.
func (s *simulation) checkQuiet(doors bool) error {
	for i := range s.requests {
		if !s.requests[i].asks {
			continue
		}
		if err := s.advance(2*patience + 1); err != nil { // quotas of the caller, and its turn
			return err
		}
		if s.requests[i].asks {
			return s.wrong("one of the %v gets no decision on its bytes", s.requests[i].kind)
		}
	}
	for any, round := true, 0; any; round++ {
		var err error
		for left := true; left && err == nil; {
			left, err = s.finish(in)
		}
		if err == nil {
			err = s.advance(2 * time.Second) // longer than any wait
		}
		if err != nil {
			return err
		}
		any = false
		for i := range s.requests {
			g := &s.requests[i]
			if any = any || g.state != finished; g.state == waits && round > 0 {
				return s.wrong("one of the %v never gets a decision", g.kind)
			}
		}
	}
	var status event.Status
	s.node.Status(&status)
	for f := range types.NumFacets {
		if status.Permits[f] != 0 || status.Queued[f] != [types.NumClasses]uint32{} {
			return s.wrong("all requests have ended, but %d permits of %v are in use, %v wait", status.Permits[f], f, status.Queued[f])
		}
	}
	if !doors {
		return nil
	}
	return s.checkAdmission()
}

// checkFacets explores permits, queues and weights, without quotas.
func (p *play) checkFacets(from, to event.Policy) error {
	was, is, places := shrinkPolicies(from, to)
	was.Quotas, is.Quotas, is.ResetQuotas = nil, nil, 0
	return p.explore(was, is, places, 1)
}

// quotas explores quotas, with the smallest bursts and room for every request.
func (p *play) quotas(from, to event.Policy) error {
	if len(from.Quotas)+len(to.Quotas) == 0 {
		return nil
	}
	was, is, _ := shrinkPolicies(from, to)
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
		rankAll(&a, &b)
		for q, burst := range [...]int{a, b} {
			of := [...]*event.Quota{&was.Quotas[i], &is.Quotas[i]}[q]
			if of.Burst = uint64(burst); of.Scope == types.ScopeInstance && burst > 0 {
				of.Burst += 4 // or no other quota would ever be exhausted
			}
		}
	}
	for f := range was.Facets {
		room := event.FacetLimits{Permits: 8, Queue: 8, PerClass: [types.NumClasses]int{8, 8, 8}, PerFlow: 8}
		was.Facets[f], is.Facets[f] = room, room
	}
	return p.explore(was, is, 16*int(types.NumFacets), 0)
}

// explore explores a change of a small policy when it is idle, busy and full.
func (p *play) explore(was, is event.Policy, places, deep int) error {
	s := p.newSimulation(places, &was)
	for crowds := range 4 {
		for range crowds {
			if _, err := s.do(arriveAll); err != nil {
				return fmt.Errorf("before the change: %w", err)
			}
		}
		if err := p.exploreBefore(s, &is, is.ResetQuotas, 1+(crowds+1)%2*deep); err != nil {
			return err
		}
	}
	return nil
}

package policycheck

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Never reports a kind of caller that is served and would never be admitted, even alone.
type Never struct {
	Class types.Class
	Facet types.Facet
	Route uint16             // of the route of a quota; 0: any
	Why   event.RejectReason // reason of the rejection
	Rule  uint8              // number of the quota, from 1; 0: not a quota
}

func (n *Never) Error() string {
	why := map[event.RejectReason]string{event.RejectQuotaExceeded: fmt.Sprintf("quota %d admits no request", n.Rule), event.RejectPacingTimeout: "a quota of the instance admits no request",
		event.RejectQueueFull: "the queue has no room, and every request must wait", event.RejectClassLimit: "the class has no part of the queue",
		event.RejectFlowLimit: "a flow has no part of the queue", event.RejectQueueTimeout: "there are no permits"}[n.Why]
	if why == "" {
		why = "they are rejected with " + n.Why.String()
	}
	of := fmt.Sprintf("%v callers of %v", n.Class, n.Facet)
	if n.Route > 0 {
		of += fmt.Sprintf(", route %d,", n.Route)
	}
	return of + " would never be admitted, even alone: " + why
}

// kinds returns the kinds of callers that a policy serves. A facet with neither permits nor a
// queue is not served. Callers of a route with a quota are a kind of their own.
func kinds(g *event.Policy) (all []kind) {
	for f := range types.NumFacets {
		if g.Facets[f].Permits+g.Facets[f].Queue == 0 {
			continue
		}
		for c := range types.NumClasses {
			if g.Weights[c] == 0 {
				continue
			}
			all = append(all, kind{class: c, facet: f})
			for i := range g.Quotas {
				if q := &g.Quotas[i]; q.Scope == types.ScopeRoute && q.Classes.Has(c) {
					all = append(all, kind{c, f, q.Route})
				}
			}
		}
	}
	return all
}

// checkAdmission returns an error if a kind of caller that is served would never be admitted,
// with the real quotas and small facets.
func (p *play) checkAdmission(g event.Policy) error {
	_, is, places := shrinkPolicies(g, g)
	return p.newSimulation(places, &is).checkAdmission()
}

// checkAdmission lets each kind of caller come alone.
func (s *simulation) checkAdmission() error {
	for _, k := range kinds(s.gate) {
		t := s.play.copy(s)
		err := t.checkAlone(k)
		s.play.done(t)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkAlone sends one request, again after each Retry-After, and finally after the longest refill of
// a burst.
func (s *simulation) checkAlone(k kind) error {
	v := event.Decision{}
	for _, rest := range [...]time.Duration{0, 0, 32 * 24 * time.Hour, 400 * 24 * time.Hour} {
		if err := s.advance(max(rest, v.RetryAfter)); err != nil {
			return err
		}
		came, decided, err := s.arrive(k)
		if err == nil && !decided { // it waits
			came, err = s.awaitDecision(&s.requests[len(s.requests)-1])
		}
		if err != nil {
			return err
		}
		if v = came; v.Reason == event.Admitted {
			_, err = s.finish(in)
			return err
		}
		if v.Reason == event.RejectQuotaExceeded && v.RetryAfter == 0 {
			break
		}
	}
	return &Never{k.class, k.facet, k.route, v.Reason, v.Rule}
}

// awaitDecision waits for the decision on a request.
func (s *simulation) awaitDecision(g *request) (v event.Decision, err error) {
	ticket := g.ticket
	for range 64 {
		due, any := s.node.Due()
		if !any {
			break
		}
		s.set(max(s.now.Mono, due))
		if err := s.handle(event.Tick{}, "a tick"); err != nil {
			return v, err
		}
		for i := range s.decisions {
			if s.decisions[i].Ticket == ticket {
				return s.decisions[i], nil
			}
		}
	}
	return v, s.wrong("a request never gets a decision")
}

package policycheck

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Never is a kind of caller that is served, and would never be let in, even alone.
type Never struct {
	Class types.Class
	Facet types.Facet
	Route uint16             // of a route's quota; 0: any
	Why   event.RejectReason // that he is told
	Rule  uint8              // of the quotas, from 1; 0: it is none
}

func (n *Never) Error() string {
	why := map[event.RejectReason]string{event.RejectQuotaExceeded: fmt.Sprintf("quota %d lets nobody go", n.Rule), event.RejectPacingTimeout: "a quota of the instance lets nobody go",
		event.RejectQueueFull: "nobody may wait there, and who comes waits", event.RejectClassLimit: "the class has no part of the queue",
		event.RejectFlowLimit: "a flow has no part of the queue", event.RejectQueueTimeout: "there are no permits"}[n.Why]
	if why == "" {
		why = "they are told: " + n.Why.String()
	}
	of := fmt.Sprintf("%v callers of %v", n.Class, n.Facet)
	if n.Route > 0 {
		of += fmt.Sprintf(", route %d,", n.Route)
	}
	return of + " would never be let in, even alone: " + why
}

// kinds are those who are served by a gate. A facet with neither permits nor a queue is not
// there; who has a route's quota is a kind of his own.
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

// doors says who of those who are served would never be let in: by quotas as they are, in a
// house that is small.
func (p *play) doors(g event.Policy) error {
	_, is, places := shrunk(g, g)
	return p.small(places, &is).doors()
}

// doors asks each kind that is served to come alone.
func (s *stage) doors() error {
	for _, k := range kinds(s.gate) {
		t := s.play.copy(s)
		err := t.alone(k)
		s.play.done(t)
		if err != nil {
			return err
		}
	}
	return nil
}

// alone lets one come, when he was told to and at the end after longer than any burst takes.
func (s *stage) alone(k kind) error {
	v := event.Decision{}
	for _, rest := range [...]time.Duration{0, 0, 32 * 24 * time.Hour, 400 * 24 * time.Hour} {
		if err := s.pass(max(rest, v.RetryAfter)); err != nil {
			return err
		}
		came, told, err := s.arrive(k)
		if err == nil && !told { // he waits
			came, err = s.hears(&s.guests[len(s.guests)-1])
		}
		if err != nil {
			return err
		}
		if v = came; v.Reason == event.Admitted {
			_, err = s.leaves(in)
			return err
		}
		if v.Reason == event.RejectQuotaExceeded && v.RetryAfter == 0 {
			break
		}
	}
	return &Never{k.class, k.facet, k.route, v.Reason, v.Rule}
}

// hears waits until one who waits is told.
func (s *stage) hears(g *guest) (v event.Decision, err error) {
	ticket := g.ticket
	for range 64 {
		due, any := s.node.Due()
		if !any {
			break
		}
		s.set(max(s.now.Mono, due))
		if err := s.hear(event.Tick{}, "a tick"); err != nil {
			return v, err
		}
		for i := range s.said {
			if s.said[i].Ticket == ticket {
				return s.said[i], nil
			}
		}
	}
	return v, s.wrong("somebody is never told")
}

package sim

import (
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// changes applies the policy with one change. Later processes start with it.
func (w *World) changes() {
	g := w.config.Policy()
	g.Version++
	alters[w.c.Choose("change/what", len(alters))](w, &g)
	takes := w.config.CheckPolicy(&g)
	if takes == nil {
		w.config = w.config.WithPolicy(&g)
	}
	if takes == nil {
		w.takesAway(g.Upstreams[0].Endpoints)
	}
	w.step(&event.ApplyPolicy{Policy: g})
	var s event.Status
	if w.node.Status(&s); (s.PolicyVersion == g.Version) != (takes == nil) {
		w.fail("change", "gate %d, which it should take or not: %v; it has %d", g.Version, takes, s.PolicyVersion)
	}
	if w.step(event.ConfigReloaded{Failed: takes != nil}); takes != nil {
		w.Saw["a gate that the node does not take"]++
	}
}

// takesAway notes calls whose endpoint a change removes.
func (w *World) takesAway(left uint16) {
	for i := range w.visitors {
		switch t := &w.visitors[i].trip; {
		case t.of/endpoints > 0 || left>>t.of&1 == 1:
		case t.is == resting:
			w.Saw["a change removes the endpoint of a waiting retry"]++
		case t.is != home:
			w.Saw["a change removes the endpoint of a call"]++
		}
	}
}

// alters are the possible changes.
var alters = [...]func(*World, *event.Policy){
	func(w *World, g *event.Policy) { g.Facets[w.facet()].Permits = 1 + w.c.Choose("change/permits", 3) },
	func(w *World, g *event.Policy) {
		f := &g.Facets[w.facet()]
		f.Queue = 0
		for c := range f.PerClass {
			f.PerClass[c] = 1 + w.c.Choose("change/queue", 3)
			f.Queue += f.PerClass[c]
		}
	},
	func(w *World, g *event.Policy) { g.Facets[w.facet()].PerFlow = 1 + w.c.Choose("change/flow", 2) },
	func(w *World, g *event.Policy) {
		g.Facets[w.facet()].FlowPermits = w.c.Choose("change/flow permits", 3)
	},
	func(w *World, g *event.Policy) {
		g.Facets[w.facet()].ClassPermits[1+w.c.Choose("change/class permits of", 2)] = w.c.Choose("change/class permits", 3)
	},
	func(w *World, g *event.Policy) { g.Weights[types.ClassAnon] = uint64(w.c.Choose("change/weight", 2)) },
	func(w *World, g *event.Policy) {
		g.Weights[types.ClassAuthed] = uint64(1 + w.c.Choose("change/weight", 5))
	},
	func(w *World, g *event.Policy) { g.Quotas[w.rule(g)].Burst = uint64(1 + w.c.Choose("change/burst", 9)) },
	func(w *World, g *event.Policy) { q := &g.Quotas[w.rule(g)]; q.Shadow = !q.Shadow },
	func(w *World, g *event.Policy) { // a rule is removed, or added without counts
		at := w.rule(g)
		if g.Quotas[at].Rate == 0 {
			g.Quotas[at] = event.Quota(gateway(config(), w.narrow).Quotas[at])
			g.ResetQuotas = 1 << at
			return
		}
		g.Quotas[at] = event.Quota{}
	},
	func(w *World, g *event.Policy) { // another rate with a longer period
		at := w.rule(g)
		q, was := &g.Quotas[at], gateway(config(), w.narrow).Quotas[at]
		rate, every := was.Rate<<w.c.Choose("change/rate", 3), was.Every*time.Duration(1+w.c.Choose("change/every", 3))
		if q.Rate > 0 && uint64(every)%rate == 0 { // otherwise a unit costs a fraction of a nanosecond
			q.Rate, q.Every = rate, every
		}
	},
	func(w *World, g *event.Policy) { g.ResetQuotas = 1 << w.rule(g) }, // a fresh rule
	func(w *World, g *event.Policy) {
		g.Routes[1+w.c.Choose("change/route", 2)] = routeLimits[w.c.Choose("change/most", len(routeLimits))]
	},
	func(w *World, g *event.Policy) {
		g.MaxWait = mostWait - time.Duration(w.c.Choose("change/wait", 40))*time.Millisecond
		g.MaxPacingDelay = 4 * g.MaxWait
	},
	func(w *World, g *event.Policy) { g.Quantum = uint64(1+w.c.Choose("change/quantum", 3)) << 12 },
	func(w *World, g *event.Policy) {
		g.Upstreams[0].Endpoints = uint16(1 + w.c.Choose("change/endpoints", 3))
	},
}

// routeLimits are those that a change gives a route.
var routeLimits = [...]event.RouteLimits{{}, {Requests: 1}, {Requests: 2, PerFlow: 2}, {Requests: 4}}

func (w *World) facet() types.Facet {
	return types.Facet(w.c.Choose("change/facet", int(types.NumFacets)))
}

func (w *World) rule(g *event.Policy) int { return w.c.Choose("change/rule", len(g.Quotas)) }

// changed notes the effect of a change on waiting requests.
func (w *World) changed(in *event.ApplyPolicy, answered []event.Decision) {
	for _, v := range answered {
		switch v.Reason { //nolint:exhaustive // a change makes no other decision
		case event.Admitted:
			w.Saw["a change admits a waiting request"]++
		case event.RejectClassDisabled:
			w.Saw["a change rejects a waiting request"]++
		}
	}
	_, s := w.trace.Around()
	for f, n := range s.Permits {
		if s.PolicyVersion == in.Policy.Version && int(n) > in.Policy.Facets[f].Permits {
			w.Saw["fewer permits than are out"]++
		}
	}
}

package node_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/node"
	"macronode/core/state"
	"macronode/core/types"
)

// change parses a policy as differences to the current one, and describes the effects:
//
//	change permits=1 queue=2 anon=0 authed=5     of every facet; weights
//	change 1=peer/N/DURATION/BURST 2=none        quotas by position
//	change fresh=1                               the first quota is a new one with the same values
//	change route1=2 up0=0b10 wait=10ms           limit of a route; endpoints of an upstream
func (s *stage) change(w []string) string {
	g := s.config.Policy()
	g.Version++
	for _, one := range w {
		key, value, _ := strings.Cut(one, "=")
		s.alter(&g, key, value)
	}
	if why := s.config.CheckPolicy(&g); why != nil {
		s.step(&event.ApplyPolicy{Policy: g})
		return why.Error() + "\n"
	}
	s.config = s.config.WithPolicy(&g)
	return s.step(&event.ApplyPolicy{Policy: g})
}

func (s *stage) alter(g *event.Policy, key, value string) {
	number := func() (n int) {
		if _, err := fmt.Sscanf(value, "%v", &n); err != nil {
			s.t.Fatal(value, err)
		}
		return n
	}
	i := 0
	switch key {
	case "permits", "queue":
		for f := range g.Facets {
			*map[string]*int{"permits": &g.Facets[f].Permits, "queue": &g.Facets[f].Queue}[key] = number()
		}
	case "anon":
		g.Weights[types.ClassAnon] = uint64(number())
	case "authed":
		g.Weights[types.ClassAuthed] = uint64(number())
	case "fresh":
		g.ResetQuotas |= 1 << (number() - 1)
	case "wait":
		g.MaxWait, _ = time.ParseDuration(value)
	default:
		switch {
		case strings.HasPrefix(key, "route"):
			i = int(s.number(key[len("route"):]))
			for len(g.Routes) <= i {
				g.Routes = append(g.Routes, event.RouteLimits{})
			}
			g.Routes[i].Requests = number()
		case strings.HasPrefix(key, "up"):
			i = int(s.number(key[len("up"):]))
			for len(g.Upstreams) <= i {
				g.Upstreams = append(g.Upstreams, event.Upstream(upstream.Default(0)))
			}
			g.Upstreams[i].Endpoints = uint16(number())
		default:
			i = int(s.number(key))
			for len(g.Quotas) < i {
				g.Quotas = append(g.Quotas, event.Quota{})
			}
			if g.Quotas[i-1] = (event.Quota{}); value != "none" {
				g.Quotas[i-1] = event.Quota(rule(s.t, value))
			}
		}
	}
}

// TestCheckPolicy: an invalid policy is reported in advance, and changes nothing if it is applied anyway.
func TestCheckPolicy(t *testing.T) {
	for what, c := range map[string]struct {
		alter func(*event.Policy)
		want  error
	}{
		"the same":        {func(*event.Policy) {}, nil},
		"places":          {func(g *event.Policy) { g.Facets[types.FacetQuery].Queue = 500 }, node.ErrSlots},
		"replies":         {func(g *event.Policy) { g.Facets[types.FacetWallet].Permits, g.Facets[types.FacetQuery].Queue = 4, 2 }, node.ErrReplies},
		"calls":           {func(g *event.Policy) { g.Facets[types.FacetProxy].Permits = 5; g.Facets[types.FacetQuery].Queue = 1 }, node.ErrCalls},
		"quantum":         {func(g *event.Policy) { g.Quantum = 0 }, node.ErrQuantum},
		"a large quantum": {func(g *event.Policy) { g.Quantum = 1 << 40 }, node.ErrQuantum},
		"wait":            {func(g *event.Policy) { g.MaxWait = -1 }, node.ErrNegative},
		"pace":            {func(g *event.Policy) { g.MaxPacingDelay = -1 }, node.ErrNegative},
		"flow":            {func(g *event.Policy) { g.Facets[types.FacetQuery].PerFlow = -1 }, node.ErrNegative},
		"class":           {func(g *event.Policy) { g.Facets[types.FacetQuery].PerClass[types.ClassAnon] = -1 }, node.ErrNegative},
		"route":           {func(g *event.Policy) { g.Routes = []event.RouteLimits{{PerFlow: -1}} }, node.ErrNegative},
		"routes":          {func(g *event.Policy) { g.Routes = make([]event.RouteLimits, node.MaxRoutes+1) }, node.ErrRoutes},
		"quota":           {func(g *event.Policy) { g.Quotas = []event.Quota{{Rate: 1}} }, quota.ErrNoSubject},
		"quotas":          {func(g *event.Policy) { g.Quotas = make([]event.Quota, quota.MaxRules+1) }, quota.ErrTooMany},
		"upstream":        {func(g *event.Policy) { g.Upstreams[1].MaxAttempts = 0 }, upstream.ErrAttempts},
		"upstreams":       {func(g *event.Policy) { g.Upstreams = make([]event.Upstream, upstream.MaxUpstreams+1) }, upstream.ErrTooMany},
	} {
		s := newStage(t)
		s.config.Admission.Places = 30
		s.node = node.New(s.config, state.New(s.config.State, 1), 0, types.NewRand(1))
		g := s.config.Policy()
		g.Version = 5
		c.alter(&g)
		if err := s.config.CheckPolicy(&g); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		s.step(event.Tick{})
		before := s.node.Hash()
		s.step(&event.ApplyPolicy{Policy: g})
		var status event.Status
		s.node.Status(&status)
		if took := status.PolicyVersion == 5; took != (c.want == nil) || !took && s.node.Hash() != before {
			t.Errorf("%s: it was taken: %v", what, took)
		}
	}
}

// change applies a random policy, if the node accepts it.
func (p *admissionClient) change(t *rapid.T, c *node.Config) {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	g := c.Policy()
	g.Version++
	for f := range g.Facets {
		g.Facets[f] = event.FacetLimits{Permits: n("permits", 0, 2), Queue: n("queue", 1, 3), PerClass: [types.NumClasses]int{n("class", 1, 3), 3, 2}, PerFlow: n("flow", 1, 3),
			ClassPermits: [types.NumClasses]int{0, n("authed permits", 0, 2), n("anon permits", 0, 2)}, FlowPermits: n("flow permits", 0, 2)}
	}
	for class := range g.Weights {
		g.Weights[class] = uint64(n("weight", 0, 3))
	}
	g.Quantum, g.MaxWait = uint64(n("quantum", 4096, 1<<16)), time.Duration(n("wait", 0, 25))*time.Millisecond
	g.Routes = []event.RouteLimits{{}, {Requests: n("route", 0, 3), PerFlow: n("route flow", 0, 2)}, {Requests: n("route", 0, 3)}}
	for i := range g.Quotas {
		g.Quotas[i].Burst = uint64(n("burst", 1, 20_000))
	}
	g.ResetQuotas = uint16(n("fresh", 0, 3))
	if why := c.CheckPolicy(&g); why != nil {
		t.Fatal(why)
	}
	*c = c.WithPolicy(&g)
	p.step(t, &event.ApplyPolicy{Policy: g})
	var s event.Status
	if p.node.Status(&s); s.PolicyVersion != g.Version {
		t.Fatalf("gate %d, and it has %d", g.Version, s.PolicyVersion)
	}
}

// TestApplyPolicyKeepsStepAllocationFree: a change may allocate, later steps do not.
func TestApplyPolicyKeepsStepAllocationFree(t *testing.T) {
	r, in := newGate()
	c := config(limits(1, 16))
	g := c.Policy()
	g.Quotas = append(g.Quotas, event.Quota{Scope: types.ScopePeer, Rate: 1e6, Every: time.Second, Burst: 1000, Classes: quota.AllClasses})
	g.Quotas[1], g.Routes = event.Quota{}, []event.RouteLimits{{}, {Requests: 1}, {Requests: 2}, {Requests: 3}}
	g.Facets[types.FacetQuery].Queue, g.Facets[types.FacetProxy].Queue = 2, 2
	if why := c.CheckPolicy(&g); why != nil {
		t.Fatal(why)
	}
	var left event.Finish
	r.pass(in, &left)
	r.node.Step(r.now, &event.ApplyPolicy{Policy: g}, &r.out)
	if n := testing.AllocsPerRun(1000, func() { r.pass(in, &left) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

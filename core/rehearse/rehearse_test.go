package rehearse_test

import (
	"strings"
	"testing"
	"time"

	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/quota"
	"macronode/core/rehearse"
	"macronode/core/upstream"
	"macronode/core/words"
)

// gate is what a node in front of a service may have.
func gate() event.Gate {
	g := event.Gate{Version: 1, Quantum: 64 << 10, Weights: [words.Classes]uint64{10, 5, 1}, Wait: 25 * time.Millisecond, Pace: time.Millisecond, Routes: []int{0, 0, 7}}
	for f := range g.Facets {
		g.Facets[f] = event.FacetRoom{Permits: 256, Queue: 512, Class: [words.Classes]int{256, 256, 170}, Flow: 128}
	}
	g.Quotas = []event.Quota{
		{Scope: words.OfInstance, Rate: 5000, Every: time.Second, Burst: 100, Classes: quota.All},
		{Scope: words.OfPeer, Rate: 10, Every: time.Second, Burst: 20, Classes: quota.Of(words.Anon)},
		{Scope: words.OfTenant, Unit: words.Bytes, Rate: 1 << 20, Every: time.Second, Burst: 1 << 22, Classes: quota.Of(words.Authed, words.Internal)},
		{Scope: words.OfInstance, Unit: words.Bytes, Rate: 1 << 24, Every: time.Second, Burst: 1 << 24, Classes: quota.All},
		{Scope: words.OfRoute, Route: 2, Rate: 3, Every: time.Second, Burst: 2, Classes: quota.All},
	}
	g.Upstreams = []event.Upstream{event.Upstream(upstream.Default(2)), event.Upstream(upstream.Default(1))}
	return g
}

func config() node.Config {
	c := node.Config{Held: 512, Calls: 768, Admit: admit.Limits{Places: 4096, Least: 4 << 10, Grace: time.Second}}
	g := gate()
	return c.With(&g)
}

// TestGood: changes that are well are found well, in bounded steps.
func TestGood(t *testing.T) {
	for what, alter := range map[string]func(*event.Gate){
		"nothing":            func(*event.Gate) {},
		"fewer permits":      func(g *event.Gate) { g.Facets[words.Money].Permits = 1 },
		"more permits":       func(g *event.Gate) { g.Facets[words.Money].Permits = 300 },
		"a smaller queue":    func(g *event.Gate) { g.Facets[words.Money].Queue, g.Facets[words.Money].Flow = 1, 1 },
		"nobody anon":        func(g *event.Gate) { g.Weights[words.Anon] = 0 },
		"nobody authed":      func(g *event.Gate) { g.Weights[words.Authed] = 0 },
		"a smaller quantum":  func(g *event.Gate) { g.Quantum = 4 << 10 },
		"no wait":            func(g *event.Gate) { g.Wait = 0 },
		"no quotas":          func(g *event.Gate) { g.Quotas = nil },
		"fewer quotas":       func(g *event.Gate) { g.Quotas[0], g.Quotas[1] = event.Quota{}, event.Quota{} },
		"slower":             func(g *event.Gate) { g.Quotas[1].Rate, g.Quotas[1].Burst = 1, 1 },
		"faster":             func(g *event.Gate) { g.Quotas[1].Rate, g.Quotas[1].Burst = 1000, 1000 },
		"fresh":              func(g *event.Gate) { g.Fresh = 3 },
		"a shadow of rate 0": func(g *event.Gate) { g.Quotas[1].Rate, g.Quotas[1].Shadow = 0, true },
		"fewer endpoints":    func(g *event.Gate) { g.Upstreams[0].Endpoints = 2 },
		"fewer lookers":      func(g *event.Gate) { g.Upstreams[0].Floor, g.Upstreams[0].Trials = 1, 1 },
		"no upstream":        func(g *event.Gate) { g.Upstreams = nil },
		"not checked":        func(g *event.Gate) { g.Upstreams[0].Fall, g.Upstreams[0].Rise = 0, 0 },
	} {
		to, began := gate(), time.Now()
		alter(&to)
		played, err := rehearse.Change(config(), &to)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %d steps in %v", what, played.Steps, time.Since(began))
		if played.Steps > rehearse.MaxSteps || played.Partial {
			t.Errorf("%s: %+v", what, played)
		}
	}
}

// TestBad: planted gates are found bad, each by what is bad about it.
func TestBad(t *testing.T) {
	for want, alter := range map[string]func(*event.Gate){
		"places": func(g *event.Gate) { g.Facets[words.Lists].Queue = 5000 },
		"anon callers of money would never be let in, even alone: the class has no part of the queue":   func(g *event.Gate) { g.Facets[words.Money].Class[words.Anon] = 0 },
		"internal callers of lists would never be let in, even alone: a flow has no part of the queue":  func(g *event.Gate) { g.Facets[words.Lists].Flow = 0 },
		"internal callers of beyond would never be let in, even alone: there are no permits":            func(g *event.Gate) { g.Facets[words.Beyond].Permits = 0 },
		"internal callers of beyond would never be let in, even alone: nobody may wait there":           func(g *event.Gate) { g.Facets[words.Beyond].Queue = 0 },
		"anon callers of money would never be let in, even alone: quota 2 lets nobody go":               func(g *event.Gate) { g.Quotas[1].Rate = 0 },
		"a quota of the instance lets nobody go":                                                        func(g *event.Gate) { g.Quotas[0].Rate = 0 },
		"internal callers of money, route 2, would never be let in, even alone: quota 5 lets nobody go": func(g *event.Gate) { g.Quotas[4].Rate = 0 },
	} {
		to := gate()
		alter(&to)
		_, err := rehearse.Change(config(), &to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		c := config()
		if err := rehearse.Gate(c.With(&to)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("from the start: %v, want %s", err, want)
		}
	}
}

// large is a gate with as many of everything as there may be, no two alike.
func large(version uint64) event.Gate {
	g := gate()
	g.Version, g.Quotas, g.Upstreams = version, nil, nil
	for i := range uint64(quota.MaxRules) {
		q := event.Quota{Scope: words.Scope(i % uint64(words.OfRoute)), Rate: 1 + i*version, Every: time.Second, Burst: 1 + i + 3*version, Classes: quota.All}
		if i%3 == 0 {
			q.Scope, q.Route = words.OfRoute, uint16(i)+1
		}
		g.Quotas = append(g.Quotas, q)
	}
	for i := range upstream.MaxUpstreams {
		u := upstream.Default(uint8(1 + i%upstream.MaxEndpoints))
		u.Tries, u.Spare = uint8(1+i%5), uint32(i)+uint32(version)
		g.Upstreams = append(g.Upstreams, event.Upstream(u))
	}
	return g
}

// TestLarge: however much there is, a rehearsal is bounded.
func TestLarge(t *testing.T) {
	from, to := large(1), large(2)
	began := time.Now()
	played, err := rehearse.Change(config().With(&from), &to)
	if err != nil || played.Steps >= rehearse.MaxSteps || played.Partial {
		t.Errorf("%+v: %v", played, err)
	}
	t.Logf("%d steps in %v", played.Steps, time.Since(began))
}

func BenchmarkChange(b *testing.B) {
	from, to := large(1), large(2)
	for b.Loop() {
		if _, err := rehearse.Change(config().With(&from), &to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	for b.Loop() {
		if err := rehearse.Gate(config()); err != nil {
			b.Fatal(err)
		}
	}
}

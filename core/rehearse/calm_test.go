package rehearse_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/rehearse"
	"macronode/core/upstream"
	"macronode/core/words"
)

var gates = flag.Int("gates", 12, "pairs of gates that TestCalm draws")

// drawn is a gate that is well: whoever is served may come in.
func drawn(d *words.Dice) event.Gate {
	n := func(least, most uint64) uint64 { return least + d.Below(most-least+1) }
	g := event.Gate{Version: n(1, 9), Quantum: n(4<<10, 1<<20), Wait: time.Duration(n(0, 1000)) * time.Millisecond, Pace: time.Duration(n(0, 100)) * time.Millisecond,
		Routes: make([]int, n(0, 30)), Fresh: uint16(n(0, 1<<16-1))}
	for f := range g.Facets {
		of := event.FacetRoom{Permits: int(n(1, 40)), Queue: int(n(1, 60))}
		of.Flow = int(n(1, uint64(of.Queue)))
		for c := range of.Class {
			of.Class[c], g.Weights[c] = int(n(1, uint64(of.Queue))), n(0, 12)
		}
		g.Facets[f] = of
	}
	for range n(0, quota.MaxRules) {
		q := event.Quota{Scope: words.Scope(n(0, uint64(words.Scopes)-1)), Unit: words.Unit(n(0, 1)), Rate: n(1, 10000), Classes: quota.All, Shadow: n(0, 4) == 0,
			Every: [...]time.Duration{time.Second, time.Minute, 100 * time.Hour}[n(0, 2)], Burst: n(1, 100)}
		if q.Scope == words.OfRoute {
			q.Route = uint16(n(1, 5))
		}
		if q.Scope == words.OfPeer || q.Scope == words.OfRoute {
			q.Classes = event.Classes(n(1, 7))
		}
		if n(0, 5) == 0 {
			q = event.Quota{}
		}
		g.Quotas = append(g.Quotas, q)
	}
	for range n(0, 5) {
		u := upstream.Default(0)
		u.Endpoints, u.Fresh, u.Tries = uint16(n(0, 31)), uint16(n(0, 31)), uint8(n(1, 10))
		u.Eject, u.Floor, u.Trials, u.Least = uint32(n(1, 5)), uint32(n(1, 5)), uint32(n(1, 5)), uint32(n(1, 20))
		if n(0, 2) == 0 {
			u.Fall, u.Rise = 0, 0
		}
		g.Upstreams = append(g.Upstreams, event.Upstream(u))
	}
	return g
}

// TestCalm: whatever a gate is changed to, as long as it is well nothing is said.
func TestCalm(t *testing.T) {
	most := 0
	for seed := range *gates {
		d := words.NewDice(uint64(seed))
		from, to := drawn(&d), drawn(&d)
		if d.Below(2) == 0 { // or nearly the same
			quotas, upstreams := to.Quotas, to.Upstreams
			to = from
			to.Quotas = slices.Clone(from.Quotas)
			for i := range min(len(quotas), len(from.Quotas)) {
				if to.Quotas[i].Rate > 0 && quotas[i].Rate > 0 {
					to.Quotas[i].Rate, to.Quotas[i].Burst = quotas[i].Rate, quotas[i].Burst
				}
			}
			to.Upstreams = upstreams
		}
		played, err := rehearse.Change(config().With(&from), &to)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		most = max(most, played.Steps)
	}
	t.Logf("%d steps at most", most)
}

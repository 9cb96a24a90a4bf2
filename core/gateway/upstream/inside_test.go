package upstream

import (
	"strings"
	"testing"
	"time"

	"macronode/ci/hashcoverage"
	"macronode/core/event"
	"macronode/core/types"
)

// busy returns an upstream of two endpoints with a call in each phase.
func busy() Upstreams {
	m := New(5, types.NewRand(1), Default(2))
	p := m.Pick(1, event.Pick{Idempotent: true})
	m.Report(1, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptAnswered})
	p = m.Pick(1, event.Pick{Idempotent: true})
	m.Report(1, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptFailed, TimeLeft: time.Second})
	m.Pick(1, event.Pick{Idempotent: true})
	return m
}

func TestHashCoversEveryField(t *testing.T) {
	m := busy()
	hashcoverage.Every(t, &m, func() types.Hash64 { return m.HashInto(0) }, "upstreams[].firstEndpoint: of its making")
}

func TestCheckReportsBrokenInvariants(t *testing.T) {
	for want, spoil := range map[string]func(*Upstreams){
		"U1: endpoint 0": func(m *Upstreams) { m.endpoints[0].calls++ },
		"U2: row 1":      func(m *Upstreams) { m.calls[1].idempotent = false },
		"U2: row 2":      func(m *Upstreams) { m.calls[2].attempts = 4 },
		"U3: 10001":      func(m *Upstreams) { m.upstreams[0].groups[0].budget.saved = 10001 },
		"U4: 9 tries": func(m *Upstreams) {
			m.upstreams[0].groups[0].breaker.state, m.upstreams[0].groups[0].breaker.inFlight = event.CircuitHalfOpen, 9
		},
		"U4: closed": func(m *Upstreams) { m.upstreams[0].groups[0].breaker.successes = 1 },
		"U5: breaker 0": func(m *Upstreams) {
			b := &m.upstreams[0].groups[0].breaker
			b.state, b.counts = event.CircuitOpen, attemptCounts{}
		},
		"U8: open, and it counts": func(m *Upstreams) { m.upstreams[0].groups[0].breaker.state = event.CircuitOpen },
		"U8: closed for caller 3": func(m *Upstreams) { m.upstreams[0].groups[0].breaker.openCaller = 3 },
		"U8: closed for caller 0": func(m *Upstreams) { m.upstreams[0].groups[0].breaker.openForOne = true },
		"U5: endpoint 1":          func(m *Upstreams) { m.endpoints[1].ejections[1].ejected = true },
		"U7: upstream 0":          func(m *Upstreams) { m.down = 1 },
		"U6: row 3":               func(m *Upstreams) { m.free[0] = 3; m.free[1] = 3 },
		"U6: 3 used, 1 free of 5": func(m *Upstreams) { m.free = m.free[:1] },
	} {
		m := busy()
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(&m)
		if err := m.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestOperationsDoNotAllocate handles requests after New.
func TestOperationsDoNotAllocate(t *testing.T) {
	m := New(64, types.NewRand(1), Default(4))
	now := types.Instant(1)
	if n := testing.AllocsPerRun(1000, func() {
		now += 1000
		p := m.Pick(now, event.Pick{Idempotent: true})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptCompleted})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestStatsNamesUnhealthyEndpoints shows that UnhealthyBits names the endpoints.
func TestStatsNamesUnhealthyEndpoints(t *testing.T) {
	m := New(1, types.NewRand(1), Default(4))
	for _, c := range []struct {
		at   uint8
		well bool
		want uint16
	}{{2, false, 4}, {0, false, 5}, {2, true, 1}, {3, false, 9}, {0, true, 8}} {
		for range 3 {
			m.HealthChecked(0, event.HealthChecked{Endpoint: c.at, Healthy: c.well})
		}
		if got := m.Stats(0).UnhealthyBits; got != c.want {
			t.Errorf("endpoint %d, healthy %v: %b are unhealthy, want %b", c.at, c.well, got, c.want)
		}
	}
}

// TestDownNeedsAllEndpointsUnhealthy: an upstream is down while health checks fail on each of its
// endpoints. An upstream without endpoints or without checks is not down.
func TestDownNeedsAllEndpointsUnhealthy(t *testing.T) {
	rules := []Rules{Default(1), Default(2), Default(2)}
	rules[2].UnhealthyAfter, rules[2].HealthyAfter = 0, 0
	m := New(1, types.NewRand(1), rules...)
	want := func(what string, down uint64) {
		t.Helper()
		if got := m.Down(); got != down {
			t.Errorf("%s: %b are down, want %b", what, got, down)
		}
		if err := m.Check(); err != nil {
			t.Error(what, err)
		}
	}
	probe := func(of uint16, at uint8, well bool) {
		for range 3 {
			m.HealthChecked(0, event.HealthChecked{Upstream: of, Endpoint: at, Healthy: well})
		}
	}
	want("at first", 0)
	probe(1, 0, false)
	want("one of two is sick", 0)
	probe(0, 0, false)
	want("the only one is sick", 1)
	probe(1, 1, false)
	probe(2, 0, false)
	probe(2, 1, false)
	want("both are sick", 3)
	probe(1, 0, true)
	want("one is well again", 1)
	probe(1, 0, false)
	more := append([]Rules(nil), rules...)
	more[1] = Default(3)
	m.ApplyPolicy(0, more)
	want("another endpoint without results", 1)
	m.ApplyPolicy(0, rules)
	want("as before", 3)
	m.ApplyPolicy(0, rules[1:2])
	want("the first becomes one of two endpoints, the others are gone", 0)
}

// TestRetriesStayWithinBudget: over any time, retries are at most the share of the requests and
// the spare retries.
func TestRetriesStayWithinBudget(t *testing.T) {
	r := Default(4)
	r.BreakerMinAttempts = 1 << 30 // otherwise the circuit opens first
	m := New(8, types.NewRand(1), r)
	const seconds, each = 60, 200
	for i := range seconds * each {
		now := types.Instant(i) * types.Instant(time.Second) / each
		p := m.Pick(now, event.Pick{Idempotent: true})
		for p.NoEndpoint == event.EndpointPicked {
			on := m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptFailed, TimeLeft: time.Second})
			if !on.Retry {
				break
			}
			p = m.Retry(now, event.Retry{Ticket: p.Ticket})
		}
		retries, asked := m.Stats(0).Retries, uint64(i+1)
		if most := asked/10 + 3 + uint64(i/each) + 1; retries > most {
			t.Fatalf("%d retries of %d requests, want at most %d", retries, asked, most)
		}
	}
	if got := m.Stats(0).Retries; got < seconds*each/10 {
		t.Errorf("%d retries of %d requests: the budget was not used", got, seconds*each)
	}
}

// TestSpareRetriesReturnEverySecond: one more each whole second, however often they are used in
// between.
func TestSpareRetriesReturnEverySecond(t *testing.T) {
	g, r := &group{}, Rules{RetryPerSecond: 3, RetryBurst: 10}
	for _, c := range []struct {
		at   time.Duration
		pays bool
	}{{900 * time.Millisecond, false}, {1900 * time.Millisecond, true}, {1999 * time.Millisecond, false}, {2000 * time.Millisecond, true},
		{2900 * time.Millisecond, false}, {time.Hour, true}, {time.Hour, true}, {time.Hour, true}, {time.Hour, false}} {
		if got := g.spendRetry(types.Instant(c.at), &r); got != c.pays {
			t.Errorf("at %v: %v, want %v", c.at, got, c.pays)
		}
	}
}

// TestBackoffIsWithinBounds: backoff stays within its bounds and uses the whole range.
func TestBackoffIsWithinBounds(t *testing.T) {
	for tries, want := range [][2]time.Duration{{50e6, 100e6}, {100e6, 200e6}, {200e6, 400e6}, {400e6, 800e6}, {800e6, 1600e6}, {1600e6, 2e9}, {2e9, 2e9}} {
		low, high := time.Hour, time.Duration(0)
		for seed := range uint64(2000) {
			r := Default(1)
			r.MaxAttempts, r.BreakerMinAttempts = MaxAttempts, 1000
			r.RetryPerSecond = MaxAttempts
			m := New(1, types.NewRand(seed), r)
			p := m.Pick(1, event.Pick{Idempotent: true})
			var on event.RetryDecision
			for range tries + 1 {
				on = m.Report(1, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptFailed, TimeLeft: time.Hour})
				m.Retry(1, event.Retry{Ticket: p.Ticket})
			}
			low, high = min(low, on.Wait), max(high, on.Wait)
		}
		slack := (want[1] - want[0]) / 100
		if low < want[0] || low > want[0]+slack || high > want[1] || high < want[1]-slack {
			t.Errorf("after %d retries: waits of %v to %v, want %v to %v", tries, low, high, want[0], want[1])
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	m := New(4096, types.NewRand(1), Default(8))
	now := types.Instant(1)
	for b.Loop() {
		now += 1000
		p := m.Pick(now, event.Pick{Idempotent: true})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptCompleted})
	}
}

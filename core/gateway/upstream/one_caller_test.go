package upstream_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

// TestOneCallerOpensNoCircuitForOthers: the requests of one caller fail, those of others succeed. However many there are
// of each, and whatever the rules are, the others are served. If others are served before each failure, the circuit stays
// closed.
func TestOneCallerOpensNoCircuitForOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, _ := drawn(t)
		rules.BreakerFailurePercent = uint32(rapid.IntRange(1, 100).Draw(t, "percent"))
		m, now := upstream.New(4, types.NewRand(1), rules), types.Instant(time.Hour)
		alone := rapid.Bool().Draw(t, "alone") // the one caller also sends requests while no others do
		request := func(of event.CallerID, outcome event.AttemptOutcome) {
			p := m.Pick(now, event.Pick{Caller: of})
			if outcome == event.AttemptAnswered && p.NoEndpoint != event.EndpointPicked || !alone && p.Circuit != event.CircuitClosed {
				t.Fatalf("caller %d: %v, circuit %v", of, p.NoEndpoint, p.Circuit)
			}
			m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: outcome})
			m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptCompleted})
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		}
		const failing event.CallerID = 100
		others := rapid.IntRange(1, 20).Draw(t, "others")
		t.Repeat(map[string]func(*rapid.T){
			"fail": func(t *rapid.T) {
				if !alone {
					request(event.CallerID(rapid.IntRange(1, others).Draw(t, "before")), event.AttemptAnswered)
				}
				for range rapid.IntRange(1, 40).Draw(t, "failures") {
					request(failing, event.AttemptFailed)
				}
			},
			"serve": func(t *rapid.T) {
				request(event.CallerID(rapid.IntRange(1, others).Draw(t, "caller")), event.AttemptAnswered)
			},
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}

// TestFailingCallerStopsNoTrialRequests: if a circuit opened because the upstream was down, it closes when the upstream
// answers other callers, although the requests of one caller still fail and come first.
func TestFailingCallerStopsNoTrialRequests(t *testing.T) {
	rules := upstream.Default(1)
	m, now := upstream.New(64, types.NewRand(1), rules), types.Instant(time.Hour)
	request := func(of event.CallerID, outcome event.AttemptOutcome) event.Picked {
		p := m.Pick(now, event.Pick{Caller: of})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: outcome})
		m.Report(now, event.AttemptResult{Ticket: p.Ticket, Outcome: event.AttemptCompleted})
		return p
	}
	for n := range 20 {
		request(event.CallerID(1+n%2), event.AttemptFailed)
	}
	if got := m.Stats(0).Circuits[event.Authenticated].State; got != event.CircuitOpen {
		t.Fatalf("the circuit is %v", got)
	}
	for tries := 0; m.Stats(0).Circuits[event.Authenticated].State != event.CircuitClosed; tries++ {
		now, _ = m.Due()
		for range 5 {
			request(1, event.AttemptFailed)
		}
		for range rules.HalfOpenSuccesses {
			if p := request(2, event.AttemptAnswered); p.NoEndpoint != event.EndpointPicked {
				t.Fatalf("caller 2: %+v", p)
			}
		}
		if tries > 0 {
			t.Fatal("the circuit does not close")
		}
	}
}

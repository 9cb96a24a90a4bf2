package upstream_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
	model "macronode/models/upstream"
)

// drawn draws rules with numbers small enough that all limits matter.
func drawn(t *rapid.T) (upstream.Rules, model.Rules) {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	w := model.Rules{Endpoints: n("endpoints", 1, 5), Tries: n("tries", 1, 8), Share: n("share", 0, 60), Spare: n("spare", 0, 3),
		Hoard: n("hoard", 3, 6), Eject: n("eject", 1, 4), Out: 2e9, OutMost: 9e9, Least: n("least", 1, 6), Part: n("part", 1, 100),
		Rest: 1e9, RestMost: 5e9, Floor: n("floor", 1, 4), Trials: n("trials", 1, 4), Fall: n("fall", 1, 3), Rise: n("rise", 1, 3)}
	return upstream.Rules{Endpoints: uint16(1<<w.Endpoints - 1), MaxAttempts: uint8(w.Tries), RetryPercent: uint32(w.Share), RetryPerSecond: uint32(w.Spare),
		RetryBurst: uint32(w.Hoard), EjectAfter: uint32(w.Eject), EjectFor: time.Duration(w.Out), MaxEjectFor: time.Duration(w.OutMost), BreakerMinAttempts: uint32(w.Least),
		BreakerFailurePercent: uint32(w.Part), BreakerOpenFor: time.Duration(w.Rest), MaxBreakerOpenFor: time.Duration(w.RestMost), HalfOpenInFlight: uint32(w.Floor),
		HalfOpenSuccesses: uint32(w.Trials), UnhealthyAfter: uint8(w.Fall), HealthyAfter: uint8(w.Rise)}, w
}

// held is a request in progress.
type held struct {
	ticket types.Ticket
	call   *model.Call
}

// TestMatchesModel compares with the reference model under random traffic.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rows = 12
		rules, wants := drawn(t)
		most := rapid.SampledFrom([]int{0, 1, 2, 3, model.Apart + 3}).Draw(t, "callers")
		seed := rapid.Uint64().Draw(t, "seed")
		m, w := upstream.New(rows, types.NewRand(seed), rules), model.New(wants, types.NewRand(seed))
		now := types.Instant(rapid.Int64Range(0, 1e11).Draw(t, "now"))
		var all []held
		picked := func(t *rapid.T, got event.Picked, c *model.Call, stop string) {
			if got.NoEndpoint.String() != stop || stop == "picked" && int(got.Endpoint) != c.At {
				t.Fatalf("picked %+v, the model has %s, %d", got, stop, c.At)
			}
			if open := got.NoEndpoint == event.NoEndpointCircuitOpen; open != (got.RetryAfter > 0) || open && got.Circuit == event.CircuitClosed {
				t.Fatalf("picked %+v", got)
			}
			g := &w.Groups[c.By]
			if got.NoEndpoint != event.NoEndpointStale && got.Circuit.String() != g.For(c.Of) || stop == "picked" && got.Ejected != w.Endpoints[c.At].Groups[c.By].Out {
				t.Fatalf("picked %+v, the model has %s, %+v", got, g.Circuit, w.Endpoints[c.At])
			}
		}
		one := func(t *rapid.T) held {
			if len(all) == 0 {
				t.Skip("no request in progress")
			}
			return all[rapid.IntRange(max(0, len(all)-20), len(all)-1).Draw(t, "which")]
		}
		report := func(t *rapid.T, h held, ending event.AttemptOutcome) {
			in := event.AttemptResult{Ticket: h.ticket, Outcome: ending, BodyConsumed: rapid.IntRange(0, 5).Draw(t, "spent") == 0, ResponseStarted: rapid.IntRange(0, 5).Draw(t, "said") == 0,
				TimeLeft: time.Duration(rapid.SampledFrom([]int64{0, 100e6, 100e6 + 1, 5e9}).Draw(t, "patience"))}
			got := m.Report(now, in)
			want, why := w.Report(int64(now), h.call, ending.String(), in.BodyConsumed, in.ResponseStarted, int64(in.TimeLeft))
			if got.Retry != (want >= 0) || got.Retry && int64(got.Wait) != want || got.NoRetry.String() != why {
				t.Fatalf("%v: %+v, the model has %v %q", ending, got, want, why)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"pick": func(t *rapid.T) {
				in := event.Pick{Idempotent: rapid.IntRange(0, 3).Draw(t, "once") > 0, Callers: event.Callers(rapid.IntRange(0, 3).Draw(t, "callers") / 3),
					Caller: event.CallerID(rapid.IntRange(0, most).Draw(t, "caller"))}
				if len(all)-w.In("gone", -1) >= rows {
					if got := m.Pick(now, in); got.NoEndpoint != event.NoEndpointOverflow {
						t.Fatalf("a row too many: %+v", got)
					}
					return
				}
				got := m.Pick(now, in)
				c, stop := w.Pick(int64(now), int(in.Callers), int(in.Caller), in.Idempotent)
				all = append(all, held{got.Ticket, c})
				picked(t, got, c, stop)
			},
			"retry": func(t *rapid.T) {
				h := one(t)
				got := m.Retry(now, event.Retry{Ticket: h.ticket})
				if h.call.Is != "resting" {
					if got.NoEndpoint != event.NoEndpointStale {
						t.Fatalf("%s, and tried again: %+v", h.call.Is, got)
					}
					return
				}
				picked(t, got, h.call, w.Retry(int64(now), h.call))
			},
			"report": func(t *rapid.T) {
				report(t, one(t), event.AttemptOutcome(rapid.IntRange(0, int(event.NumAttemptOutcomes)-1).Draw(t, "ending")))
			},
			"fail": func(t *rapid.T) { // several in a row, to open the circuit and to eject
				for _, h := range all {
					if h.call.Is == "trying" {
						report(t, h, event.AttemptFailed)
					}
				}
			},
			"answer": func(t *rapid.T) {
				for _, h := range all[max(0, len(all)-rapid.IntRange(1, 12).Draw(t, "last")):] {
					if h.call.Is == "trying" {
						report(t, h, event.AttemptAnswered)
					}
				}
			},
			"fail of a caller": func(t *rapid.T) {
				of := rapid.IntRange(0, most).Draw(t, "caller")
				for _, h := range all {
					if h.call.Is == "trying" && h.call.Of == of {
						report(t, h, event.AttemptFailed)
					}
				}
			},
			"again": func(t *rapid.T) {
				for _, h := range all {
					if h.call.Is == "resting" {
						got := m.Retry(now, event.Retry{Ticket: h.ticket})
						picked(t, got, h.call, w.Retry(int64(now), h.call))
					}
				}
			},
			"change": func(t *rapid.T) { // rare: a change resets progress
				if rapid.IntRange(0, 9).Draw(t, "now and then") == 0 {
					rules = change(t, now, &m, w)
				}
			},
			"probe": func(t *rapid.T) {
				at, well := rapid.IntRange(0, 5).Draw(t, "at"), rapid.Bool().Draw(t, "well")
				m.HealthChecked(now, event.HealthChecked{Endpoint: uint8(at), Healthy: well})
				w.Probed(int64(now), at, well)
			},
			"pass": func(t *rapid.T) {
				now += types.Instant(rapid.OneOf(rapid.Int64Range(0, 2e9), rapid.Int64Range(0, 3e10)).Draw(t, "ns"))
				m.Tick(now)
				w.Pass(int64(now))
			},
			"due": func(*rapid.T) {
				if due, any := m.Due(); any {
					now = due
				}
				m.Tick(now)
				w.Pass(int64(now))
			},
			"": func(t *rapid.T) { compareModel(t, now, &m, w, rules) },
		})
	})
}

func compareModel(t *rapid.T, now types.Instant, m *upstream.Upstreams, w *model.Upstream, rules upstream.Rules) {
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	v := m.Stats(0)
	for by := range event.NumCallers {
		if c, g := v.Circuits[by], &w.Groups[by]; c.State.String() != g.Circuit || int(c.Epoch) != g.Era || int(c.Opened) != g.Opened {
			t.Fatalf("%v callers: %v in epoch %d, the model has %s in %d", by, c.State, c.Epoch, g.Circuit, g.Era)
		}
	}
	proven := false
	for i := range w.Endpoints {
		e := &w.Endpoints[i]
		proven = proven || e.Proven && !e.Sick
		for by := range event.NumCallers {
			calls, out, sick := m.Endpoint(0, uint8(i), by)
			if int(calls) != w.Busy(i) || out != e.Groups[by].Out || sick != e.Sick || v.UnhealthyBits>>i&1 == 1 != sick {
				t.Fatalf("endpoint %d has %d calls, out %v, sick %v; the model has %d, %+v", i, calls, out, sick, w.Busy(i), e)
			}
		}
	}
	if v.SeenHealthy != proven {
		t.Fatalf("proven %v, the model has %v", v.SeenHealthy, proven)
	}
	checkDue(t, now, m, rules)
}

// exact: before Due a Tick changes nothing; at Due it changes something.
func checkDue(t *rapid.T, now types.Instant, m *upstream.Upstreams, rules upstream.Rules) {
	s := upstream.New(1, types.NewRand(0), rules)
	m.CopyTo(&s)
	if s.HashInto(0) != m.HashInto(0) {
		t.Fatal("a copy is another")
	}
	due, any := s.Due()
	last := due - 1
	if !any {
		last = now.Add(time.Hour)
	}
	was := s.HashInto(0)
	if s.Tick(last); s.HashInto(0) != was {
		t.Fatalf("due at %v (%v), and something happens by %v", due, any, last)
	}
	if any {
		if s.Tick(due); s.HashInto(0) == was {
			t.Fatalf("due at %v, and nothing happens", due)
		}
	}
	if s.Tick(due); m.HashInto(0) != was {
		t.Fatal("a copy is not of its own")
	}
}

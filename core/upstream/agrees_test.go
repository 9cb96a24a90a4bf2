package upstream_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/upstream"
	"macronode/core/words"
	twin "macronode/models/upstream"
)

// drawn are rules that are small enough for all of them to matter.
func drawn(t *rapid.T) (upstream.Rules, twin.Rules) {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	w := twin.Rules{Endpoints: n("endpoints", 1, 5), Tries: n("tries", 1, 8), Share: n("share", 0, 60), Spare: n("spare", 0, 3),
		Hoard: n("hoard", 3, 6), Eject: n("eject", 1, 4), Out: 2e9, OutMost: 9e9, Least: n("least", 1, 6), Part: n("part", 1, 100),
		Rest: 1e9, RestMost: 5e9, Floor: n("floor", 1, 4), Trials: n("trials", 1, 4), Fall: n("fall", 1, 3), Rise: n("rise", 1, 3)}
	return upstream.Rules{Endpoints: uint16(1<<w.Endpoints - 1), Tries: uint8(w.Tries), Share: uint32(w.Share), Spare: uint32(w.Spare),
		Hoard: uint32(w.Hoard), Eject: uint32(w.Eject), Out: time.Duration(w.Out), OutMost: time.Duration(w.OutMost), Least: uint32(w.Least),
		Part: uint32(w.Part), Rest: time.Duration(w.Rest), RestMost: time.Duration(w.RestMost), Floor: uint32(w.Floor),
		Trials: uint32(w.Trials), Fall: uint8(w.Fall), Rise: uint8(w.Rise)}, w
}

// A held request is known to both.
type held struct {
	ticket words.Ticket
	call   *twin.Call
}

// TestAgrees walks the machine and its twin through the same random traffic.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rows = 12
		rules, wants := drawn(t)
		seed := rapid.Uint64().Draw(t, "seed")
		m, w := upstream.New(rows, words.NewDice(seed), rules), twin.New(wants, words.NewDice(seed))
		now := words.Instant(rapid.Int64Range(0, 1e11).Draw(t, "now"))
		var all []held
		picked := func(t *rapid.T, got event.Picked, c *twin.Call, stop string) {
			if got.Stop.String() != stop || stop == "through" && int(got.Endpoint) != c.At {
				t.Fatalf("picked %+v, the twin says %s, %d", got, stop, c.At)
			}
			if open := got.Stop == event.StopBroken; open != (got.Wait > 0) || open && got.Circuit == event.Closed {
				t.Fatalf("picked %+v", got)
			}
			if got.Stop != event.StopStale && got.Circuit.String() != w.Circuit || stop == "through" && got.Out != w.Endpoints[c.At].Out {
				t.Fatalf("picked %+v, the twin says %s, %+v", got, w.Circuit, w.Endpoints[c.At])
			}
		}
		one := func(t *rapid.T) held {
			if len(all) == 0 {
				t.Skip("nobody is in")
			}
			return all[rapid.IntRange(max(0, len(all)-20), len(all)-1).Draw(t, "which")]
		}
		report := func(t *rapid.T, h held, ending event.Ending) {
			in := event.Tried{Ticket: h.ticket, Ending: ending, Spent: rapid.IntRange(0, 5).Draw(t, "spent") == 0, Said: rapid.IntRange(0, 5).Draw(t, "said") == 0,
				Patience: time.Duration(rapid.SampledFrom([]int64{0, 100e6, 100e6 + 1, 5e9}).Draw(t, "patience"))}
			got := m.Report(now, in)
			want, why := w.Report(int64(now), h.call, ending.String(), in.Spent, in.Said, int64(in.Patience))
			if got.Again != (want >= 0) || got.Again && int64(got.Wait) != want || got.Halt.String() != why {
				t.Fatalf("%v: %+v, the twin says %v %q", ending, got, want, why)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"pick": func(t *rapid.T) {
				in := event.Pick{Again: rapid.IntRange(0, 3).Draw(t, "once") > 0}
				if len(all)-w.In("gone", -1) >= rows {
					if got := m.Pick(now, in); got.Stop != event.StopFull {
						t.Fatalf("a row too many: %+v", got)
					}
					return
				}
				got := m.Pick(now, in)
				c, stop := w.Pick(int64(now), in.Again)
				all = append(all, held{got.Ticket, c})
				picked(t, got, c, stop)
			},
			"retry": func(t *rapid.T) {
				h := one(t)
				got := m.Retry(now, event.Retry{Ticket: h.ticket})
				if h.call.Is != "resting" {
					if got.Stop != event.StopStale {
						t.Fatalf("%s, and tried again: %+v", h.call.Is, got)
					}
					return
				}
				picked(t, got, h.call, w.Retry(int64(now), h.call))
			},
			"report": func(t *rapid.T) {
				report(t, one(t), event.Ending(rapid.IntRange(0, int(event.Endings)-1).Draw(t, "ending")))
			},
			"fail": func(t *rapid.T) { // a run of it, to open and to eject
				for _, h := range all {
					if h.call.Is == "trying" {
						report(t, h, event.Failed)
					}
				}
			},
			"answer": func(t *rapid.T) {
				for _, h := range all[max(0, len(all)-rapid.IntRange(1, 12).Draw(t, "last")):] {
					if h.call.Is == "trying" {
						report(t, h, event.Answered)
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
			"change": func(t *rapid.T) { // seldom: each forgets what was on its way to something
				if rapid.IntRange(0, 9).Draw(t, "now and then") == 0 {
					rules = change(t, now, &m, w)
				}
			},
			"probe": func(t *rapid.T) {
				at, well := rapid.IntRange(0, 5).Draw(t, "at"), rapid.Bool().Draw(t, "well")
				m.Probed(now, event.Probed{Endpoint: uint8(at), Well: well})
				w.Probed(int64(now), at, well)
			},
			"pass": func(t *rapid.T) {
				now += words.Instant(rapid.OneOf(rapid.Int64Range(0, 2e9), rapid.Int64Range(0, 3e10)).Draw(t, "ns"))
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
			"": func(t *rapid.T) { agrees(t, now, &m, w, rules) },
		})
	})
}

func agrees(t *rapid.T, now words.Instant, m *upstream.Upstreams, w *twin.Upstream, rules upstream.Rules) {
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	v := m.Look(0)
	if v.Circuit.String() != w.Circuit || int(v.Epoch) != w.Era || int(v.Opened) != w.Opened {
		t.Fatalf("%v in epoch %d, the twin says %s in %d", v.Circuit, v.Epoch, w.Circuit, w.Era)
	}
	proven := false
	for i := range w.Endpoints {
		e := &w.Endpoints[i]
		proven = proven || e.Proven && !e.Sick
		calls, out, sick := m.Endpoint(0, uint8(i))
		if int(calls) != w.Busy(i) || out != e.Out || sick != e.Sick || v.Which>>i&1 == 1 != sick {
			t.Fatalf("endpoint %d has %d calls, out %v, sick %v; the twin says %d, %+v", i, calls, out, sick, w.Busy(i), e)
		}
	}
	if v.Proven != proven {
		t.Fatalf("proven %v, the twin says %v", v.Proven, proven)
	}
	exact(t, now, m, rules)
}

// exact: before Due a Tick changes nothing, at Due it changes something.
func exact(t *rapid.T, now words.Instant, m *upstream.Upstreams, rules upstream.Rules) {
	s := upstream.New(1, words.NewDice(0), rules)
	m.CopyTo(&s)
	if s.Mix(0) != m.Mix(0) {
		t.Fatal("a copy is another")
	}
	due, any := s.Due()
	last := due - 1
	if !any {
		last = now.Plus(time.Hour)
	}
	was := s.Mix(0)
	if s.Tick(last); s.Mix(0) != was {
		t.Fatalf("due at %v (%v), and something happens by %v", due, any, last)
	}
	if any {
		if s.Tick(due); s.Mix(0) == was {
			t.Fatalf("due at %v, and nothing happens", due)
		}
	}
	if s.Tick(due); m.Mix(0) != was {
		t.Fatal("a copy is not of its own")
	}
}

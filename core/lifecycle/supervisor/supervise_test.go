package supervisor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/transcript"
	"macronode/core/event"
	"macronode/core/lifecycle/supervisor"
	"macronode/core/types"
	model "macronode/models/supervisor"
)

// TestTranscript plays services that end: after lets time pass, due goes to the instant of Due, or an hour ahead
// if there is none; due-down ends a service there.
func TestTranscript(t *testing.T) {
	var s supervisor.Supervisor
	var out event.Effects
	var now types.Instant
	transcript.Play(t, "testdata/children", func(w []string) string {
		var lines []string
		child := types.Service(0)
		for c := range types.NumServices {
			if w[len(w)-1] == c.String() {
				child = c
			}
		}
		out.Reset()
		switch w[0] {
		case "new":
			s, now = supervisor.New(types.NewRand(4)), types.Instant(time.Hour)
			return ""
		case "begin":
			s.Start(&out)
		case "up":
			s.Up(child)
		case "down":
			s.Down(now, child)
		case "stop":
			s.Stop(child, event.StopService, &out)
		case "kill":
			s.Stop(child, event.KillService, &out)
		case "after":
			d, err := time.ParseDuration(w[1])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
		case "due", "due-down":
			due, any := s.Due()
			if !any {
				due = now.Add(time.Hour)
			}
			lines = append(lines, fmt.Sprintf("%v later", time.Duration(due-now)))
			if now = due; w[0] == "due-down" {
				s.Down(now, child)
			}
		}
		s.Tick(now, &out)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		for _, op := range out.ServiceCommands {
			lines = append(lines, fmt.Sprintf("%v %v", op.Verb, op.Service))
		}
		if strings.HasSuffix(w[0], "down") {
			if due, any := s.Due(); any {
				lines = append(lines, fmt.Sprintf("backs off, due in %v", time.Duration(due-now)))
			}
		}
		if s.CrashLoop(now) {
			lines = append(lines, "troubled")
		}
		return strings.Join(lines, ", ")
	})
}

// TestMatchesModel makes random calls to the supervisor and to its model.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		s, m := supervisor.New(types.NewRand(seed)), model.New(int(types.NumServices), types.NewRand(seed))
		now := types.Instant(rapid.Int64Range(0, 1e12).Draw(t, "now"))
		var out event.Effects
		one := rapid.Map(rapid.IntRange(0, int(types.NumServices)-1), func(i int) types.Service { return types.Service(i) })
		tick := func(t *rapid.T) {
			out.Reset()
			s.Tick(now, &out)
			want := m.Tick(now)
			if len(out.ServiceCommands) != len(want) {
				t.Fatalf("tick is %v, the model has %v", out.ServiceCommands, want)
			}
			for i, op := range out.ServiceCommands {
				if op.Verb != event.StartService || int(op.Service) != want[i] {
					t.Fatalf("tick is %v, the model has %v", out.ServiceCommands, want)
				}
			}
		}
		out.Reset()
		s.Start(&out)
		m.Begin()
		t.Repeat(map[string]func(*rapid.T){
			"up": func(t *rapid.T) {
				c := one.Draw(t, "child")
				s.Up(c)
				m.Up(int(c))
			},
			"down": func(t *rapid.T) {
				c := one.Draw(t, "child")
				s.Down(now, c)
				m.Down(now, int(c))
			},
			"crash": func(t *rapid.T) { // some times over, to be troubled
				c := one.Draw(t, "child")
				up := rapid.Bool().Draw(t, "up")
				for range rapid.IntRange(1, 8).Draw(t, "times") {
					if s.Down(now, c); up {
						s.Up(c)
					}
					if m.Down(now, int(c)); up {
						m.Up(int(c))
					}
					if due, any := s.Due(); any {
						now = due
					}
					tick(t)
				}
			},
			"stop": func(t *rapid.T) {
				c := one.Draw(t, "child")
				if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
					return
				}
				out.Reset()
				s.Stop(c, event.StopService, &out)
				if stopped := m.Stop(int(c)); stopped != (len(out.ServiceCommands) == 1) {
					t.Fatalf("stop is %v, the model has %v", out.ServiceCommands, stopped)
				}
			},
			"pass": func(t *rapid.T) {
				now += types.Instant(rapid.OneOf(rapid.Int64Range(0, 6e9), rapid.Int64Range(0, 70e9)).Draw(t, "ns"))
			},
			"due": func(*rapid.T) {
				if due, any := s.Due(); any {
					now = due
				}
			},
			"": func(t *rapid.T) {
				tick(t)
				agrees(t, now, s, &m)
			},
		})
	})
}

func agrees(t *rapid.T, now types.Instant, s supervisor.Supervisor, m *model.Supervisor) {
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	troubled := false
	for c := range types.NumServices {
		k := &m.Children[c]
		troubled = troubled || m.Troubled(now, int(c))
		if s.IsUp(c) != (k.Is == "up") || s.IsDown(c) != (k.Is == "down") || s.Restarts(c) != uint64(len(k.Restarts)) {
			t.Fatalf("%v: up %v, down %v, restarts %d; the model has %+v", c, s.IsUp(c), s.IsDown(c), s.Restarts(c), k)
		}
		if k.Is == "resting" && (k.Until <= now || k.Until > now+5e9) { // what remains of at most Cap
			t.Fatalf("S2: %v backs off for %v", c, time.Duration(k.Until-now))
		}
	}
	if s.CrashLoop(now) != troubled {
		t.Fatalf("troubled %v, the model has %v", s.CrashLoop(now), troubled)
	}
	exact(t, now, s)
}

// exact: before Due a Tick changes nothing and no crash loop ends, and at Due it changes something. s is a copy.
func exact(t *rapid.T, now types.Instant, s supervisor.Supervisor) {
	var out event.Effects
	due, any := s.Due()
	last := due - 1
	if !any {
		last = now + types.Instant(time.Hour)
	}
	was, troubled := s.HashInto(0), s.CrashLoop(now)
	s.Tick(last, &out)
	if s.HashInto(0) != was || len(out.ServiceCommands) > 0 || s.CrashLoop(last) != troubled {
		t.Fatalf("due at %v (%v), and something happens by %v", due, any, last)
	}
	if any {
		if s.Tick(due, &out); s.HashInto(0) == was {
			t.Fatalf("due at %v, and nothing happens", due)
		}
	}
}

// TestBackoff: S2, and random pauses use the whole range.
func TestBackoff(t *testing.T) {
	const least, most = 100 * time.Millisecond, 500 * time.Millisecond
	for failures := range 8 {
		low, high := time.Hour, time.Duration(0)
		for seed := range uint64(2000) {
			s := supervisor.New(types.NewRand(seed))
			var out event.Effects
			s.Start(&out)
			var now types.Instant
			for range failures {
				s.Down(now, types.ServiceHTTP)
				now, _ = s.Due()
				s.Tick(now, &out)
			}
			now = now.Add(time.Minute) // not troubled
			s.Tick(now, &out)
			s.Down(now, types.ServiceHTTP)
			due, _ := s.Due()
			low, high = min(low, time.Duration(due-now)), max(high, time.Duration(due-now))
		}
		wantLow, wantHigh := min(5*time.Second, least<<failures), min(5*time.Second, most<<failures)
		slack := (wantHigh - wantLow) / 100
		if low < wantLow || low > wantLow+slack || high > wantHigh || high < wantHigh-slack {
			t.Errorf("after %d failures: backoffs of %v to %v, want %v to %v", failures, low, high, wantLow, wantHigh)
		}
	}
}

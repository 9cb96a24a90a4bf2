package supervise_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/story"
	"macronode/core/event"
	"macronode/core/supervise"
	"macronode/core/words"
	twin "macronode/models/supervise"
)

// TestStory plays children that end: after lets time go by, due goes to the instant
// that Due tells, or an hour on when it tells none; due-down ends a child there.
func TestStory(t *testing.T) {
	var s supervise.Supervisor
	var out event.Effects
	var now words.Instant
	story.Play(t, "testdata/children", func(w []string) string {
		var said []string
		child := words.Child(0)
		for c := range words.Children {
			if w[len(w)-1] == c.String() {
				child = c
			}
		}
		out.Reset()
		switch w[0] {
		case "new":
			s, now = supervise.New(words.NewDice(4)), words.Instant(time.Hour)
			return ""
		case "begin":
			s.Begin(&out)
		case "up":
			s.Up(child)
		case "down":
			s.Down(now, child)
		case "stop":
			s.Stop(child, event.StopChild, &out)
		case "kill":
			s.Stop(child, event.KillChild, &out)
		case "after":
			d, err := time.ParseDuration(w[1])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Plus(d)
		case "due", "due-down":
			due, any := s.Due()
			if !any {
				due = now.Plus(time.Hour)
			}
			said = append(said, fmt.Sprintf("%v later", time.Duration(due-now)))
			if now = due; w[0] == "due-down" {
				s.Down(now, child)
			}
		}
		s.Tick(now, &out)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		for _, op := range out.Childs {
			said = append(said, fmt.Sprintf("%v %v", op.What, op.Child))
		}
		if strings.HasSuffix(w[0], "down") {
			if due, any := s.Due(); any {
				said = append(said, fmt.Sprintf("rests, due in %v", time.Duration(due-now)))
			}
		}
		if s.Troubled(now) {
			said = append(said, "troubled")
		}
		return strings.Join(said, ", ")
	})
}

// TestAgrees walks the supervisor and its twin through the same random life.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		s, m := supervise.New(words.NewDice(seed)), twin.New(int(words.Children), words.NewDice(seed))
		now := words.Instant(rapid.Int64Range(0, 1e12).Draw(t, "now"))
		var out event.Effects
		one := rapid.Map(rapid.IntRange(0, int(words.Children)-1), func(i int) words.Child { return words.Child(i) })
		tick := func(t *rapid.T) {
			out.Reset()
			s.Tick(now, &out)
			want := m.Tick(now)
			if len(out.Childs) != len(want) {
				t.Fatalf("tick says %v, the twin %v", out.Childs, want)
			}
			for i, op := range out.Childs {
				if op.What != event.StartChild || int(op.Child) != want[i] {
					t.Fatalf("tick says %v, the twin %v", out.Childs, want)
				}
			}
		}
		out.Reset()
		s.Begin(&out)
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
				s.Stop(c, event.StopChild, &out)
				if told := m.Stop(int(c)); told != (len(out.Childs) == 1) {
					t.Fatalf("stop says %v, the twin %v", out.Childs, told)
				}
			},
			"pass": func(t *rapid.T) {
				now += words.Instant(rapid.OneOf(rapid.Int64Range(0, 6e9), rapid.Int64Range(0, 70e9)).Draw(t, "ns"))
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

func agrees(t *rapid.T, now words.Instant, s supervise.Supervisor, m *twin.Supervisor) {
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	troubled := false
	for c := range words.Children {
		k := &m.Children[c]
		troubled = troubled || m.Troubled(now, int(c))
		if s.IsUp(c) != (k.Is == "up") || s.IsDown(c) != (k.Is == "down") || s.Restarts(c) != uint64(len(k.Restarts)) {
			t.Fatalf("%v: up %v, down %v, restarts %d; the twin says %+v", c, s.IsUp(c), s.IsDown(c), s.Restarts(c), k)
		}
		if k.Is == "resting" && (k.Until <= now || k.Until > now+5e9) { // what remains of at most Cap
			t.Fatalf("S2: %v rests for %v", c, time.Duration(k.Until-now))
		}
	}
	if s.Troubled(now) != troubled {
		t.Fatalf("troubled %v, the twin says %v", s.Troubled(now), troubled)
	}
	exact(t, now, s)
}

// exact: before Due a Tick changes nothing and nobody's trouble ends, at Due it
// changes something. s is a copy.
func exact(t *rapid.T, now words.Instant, s supervise.Supervisor) {
	var out event.Effects
	due, any := s.Due()
	last := due - 1
	if !any {
		last = now + words.Instant(time.Hour)
	}
	was, troubled := s.Mix(0), s.Troubled(now)
	s.Tick(last, &out)
	if s.Mix(0) != was || len(out.Childs) > 0 || s.Troubled(last) != troubled {
		t.Fatalf("due at %v (%v), and something happens by %v", due, any, last)
	}
	if any {
		if s.Tick(due, &out); s.Mix(0) == was {
			t.Fatalf("due at %v, and nothing happens", due)
		}
	}
}

// TestRests: S2, and that chance uses all of the room it is given.
func TestRests(t *testing.T) {
	const least, most = 100 * time.Millisecond, 500 * time.Millisecond
	for failures := range 8 {
		low, high := time.Hour, time.Duration(0)
		for seed := range uint64(2000) {
			s := supervise.New(words.NewDice(seed))
			var out event.Effects
			s.Begin(&out)
			var now words.Instant
			for range failures {
				s.Down(now, words.ChildHTTP)
				now, _ = s.Due()
				s.Tick(now, &out)
			}
			now = now.Plus(time.Minute) // not troubled
			s.Tick(now, &out)
			s.Down(now, words.ChildHTTP)
			due, _ := s.Due()
			low, high = min(low, time.Duration(due-now)), max(high, time.Duration(due-now))
		}
		wantLow, wantHigh := min(5*time.Second, least<<failures), min(5*time.Second, most<<failures)
		slack := (wantHigh - wantLow) / 100
		if low < wantLow || low > wantLow+slack || high > wantHigh || high < wantHigh-slack {
			t.Errorf("after %d failures: rests of %v to %v, want %v to %v", failures, low, high, wantLow, wantHigh)
		}
	}
}

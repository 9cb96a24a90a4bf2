package drain_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/flip"
	"macronode/ci/story"
	"macronode/core/drain"
	"macronode/core/words"
	twin "macronode/models/drain"
)

// TestStory plays ends: busy and quiet let time go by, with work in and without.
func TestStory(t *testing.T) {
	var d drain.Drain
	var now words.Instant
	span := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	story.Play(t, "testdata/end", func(w []string) string {
		switch w[0] {
		case "new":
			now = 7
			d = drain.New(drain.Times{LameDuck: span(w[1]), Drain: span(w[2]), Abort: span(w[3])})
		case "begin":
			d.Begin(now)
		case "abort":
			d.Abort(now)
		case "after", "busy", "quiet":
			now = now.Plus(span(w[1]))
			d.Move(now, w[0] == "quiet")
		}
		if !d.Begun() {
			return "not begun"
		}
		said := d.Phase().String()
		if d.Closed() {
			said += ", closed"
		}
		if due, any := d.Due(); any {
			said += fmt.Sprintf(", until %v later", time.Duration(due-now))
		}
		return said
	})
}

// TestAgrees walks the machine and its timetable through the same random end.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 20))
		m := twin.Drain{LameDuck: length.Draw(t, "lame duck"), Drain: length.Draw(t, "drain"), Abort: length.Draw(t, "abort")}
		d := drain.New(drain.Times{LameDuck: time.Duration(m.LameDuck), Drain: time.Duration(m.Drain), Abort: time.Duration(m.Abort)})
		now, was := words.Instant(5), words.Starting
		pass := func(quiet bool) func(t *rapid.T) {
			return func(t *rapid.T) {
				now += words.Instant(rapid.Int64Range(0, 12).Draw(t, "ns"))
				d.Move(now, quiet)
				m.Move(int64(now), quiet)
				if due, any := d.Due(); any && due < now {
					t.Fatalf("D1: at %d, %v was to end at %d", now, d.Phase(), due)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin":      func(*rapid.T) { d.Begin(now); m.Begin(int64(now)) },
			"abort":      func(*rapid.T) { d.Abort(now); m.Give(int64(now)) },
			"busy":       pass(false),
			"busy again": pass(false),
			"quiet":      pass(true),
			"": func(t *rapid.T) {
				phase := m.Phase
				if phase == "" {
					phase = "starting"
				}
				if d.Phase().String() != phase || d.Begun() != (m.Phase != "") {
					t.Fatalf("%v, begun %v; the twin says %q", d.Phase(), d.Begun(), m.Phase)
				}
				if d.Phase() < was {
					t.Fatalf("D1: from %v back to %v", was, d.Phase())
				}
				if was = d.Phase(); d.Closed() != (phase == "draining" || phase == "aborting" || phase == "stopped") {
					t.Fatalf("D2: %v, closed %v", d.Phase(), d.Closed())
				}
				due, any := d.Due()
				if any != (m.Phase != "" && m.Phase != "stopped") || any && int64(due) != m.Until {
					t.Fatalf("due at %d, %v; the twin says %d", due, any, m.Until)
				}
				exact(t, d)
			},
		})
	})
}

// exact: while work is in, nothing happens before Due, and something at Due. d is a
// copy.
func exact(t *rapid.T, d drain.Drain) {
	due, any := d.Due()
	last := due - 1
	if !any {
		last = due.Plus(time.Hour)
	}
	was := d.Mix(0)
	if d.Move(last, false); d.Mix(0) != was {
		t.Fatalf("due at %d (%v), and it moved by %d", due, any, last)
	}
	if d.Move(due, false); any && d.Mix(0) == was {
		t.Fatalf("due at %d, and nothing happens", due)
	}
}

func TestHashForgetsNothing(t *testing.T) {
	d := drain.New(drain.Times{Drain: time.Second})
	d.Begin(1)
	flip.Every(t, &d, func() words.Hash64 { return d.Mix(0) }, "times: of its making")
}

package drain_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/lifecycle/drain"
	"macronode/core/types"
	model "macronode/models/drain"
)

// TestTranscript plays drains: busy and quiet let time pass, with and without requests in progress.
func TestTranscript(t *testing.T) {
	var d drain.Drain
	var now types.Instant
	span := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	transcript.Play(t, "testdata/end", func(w []string) string {
		switch w[0] {
		case "new":
			now = 7
			d = drain.New(drain.Times{LameDuck: span(w[1]), Drain: span(w[2]), Abort: span(w[3])})
		case "begin":
			d.Start(now)
		case "abort":
			d.Abort(now)
		case "after", "busy", "quiet":
			now = now.Add(span(w[1]))
			d.Advance(now, w[0] == "quiet")
		}
		if !d.Started() {
			return "not begun"
		}
		out := d.Phase().String()
		if d.Refusing() {
			out += ", closed"
		}
		if due, any := d.Due(); any {
			out += fmt.Sprintf(", until %v later", time.Duration(due-now))
		}
		return out
	})
}

// TestMatchesModel makes random calls to the machine and to its timetable.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 20))
		m := model.Drain{LameDuck: length.Draw(t, "lame duck"), Drain: length.Draw(t, "drain"), Abort: length.Draw(t, "abort")}
		d := drain.New(drain.Times{LameDuck: time.Duration(m.LameDuck), Drain: time.Duration(m.Drain), Abort: time.Duration(m.Abort)})
		now, was := types.Instant(5), types.Starting
		pass := func(quiet bool) func(t *rapid.T) {
			return func(t *rapid.T) {
				now += types.Instant(rapid.Int64Range(0, 12).Draw(t, "ns"))
				d.Advance(now, quiet)
				m.Move(int64(now), quiet)
				if due, any := d.Due(); any && due < now {
					t.Fatalf("D1: at %d, %v was to end at %d", now, d.Phase(), due)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin":      func(*rapid.T) { d.Start(now); m.Begin(int64(now)) },
			"abort":      func(*rapid.T) { d.Abort(now); m.Give(int64(now)) },
			"busy":       pass(false),
			"busy again": pass(false),
			"quiet":      pass(true),
			"": func(t *rapid.T) {
				phase := m.Phase
				if phase == "" {
					phase = "starting"
				}
				if d.Phase().String() != phase || d.Started() != (m.Phase != "") {
					t.Fatalf("%v, begun %v; the model has %q", d.Phase(), d.Started(), m.Phase)
				}
				if d.Phase() < was {
					t.Fatalf("D1: from %v back to %v", was, d.Phase())
				}
				if was = d.Phase(); d.Refusing() != (phase == "draining" || phase == "aborting" || phase == "stopped") {
					t.Fatalf("D2: %v, closed %v", d.Phase(), d.Refusing())
				}
				due, any := d.Due()
				if any != (m.Phase != "" && m.Phase != "stopped") || any && int64(due) != m.Until {
					t.Fatalf("due at %d, %v; the model has %d", due, any, m.Until)
				}
				exact(t, d)
			},
		})
	})
}

// exact: with requests in progress, nothing happens before Due, and something at Due. d is a copy.
func exact(t *rapid.T, d drain.Drain) {
	due, any := d.Due()
	last := due - 1
	if !any {
		last = due.Add(time.Hour)
	}
	was := d.HashInto(0)
	if d.Advance(last, false); d.HashInto(0) != was {
		t.Fatalf("due at %d (%v), and it moved by %d", due, any, last)
	}
	if d.Advance(due, false); any && d.HashInto(0) == was {
		t.Fatalf("due at %d, and nothing happens", due)
	}
}

func TestHashForgetsNothing(t *testing.T) {
	d := drain.New(drain.Times{Drain: time.Second})
	d.Start(1)
	hashcoverage.Every(t, &d, func() types.Hash64 { return d.HashInto(0) }, "times: of its making")
}

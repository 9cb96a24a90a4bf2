package clock_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/flip"
	"macronode/ci/story"
	"macronode/core/clock"
	"macronode/core/words"
	twin "macronode/models/clock"
)

// TestStory plays a machine and its clocks: wall moves what it claims, pass lets time
// go by, in one reading or in readings a step apart.
func TestStory(t *testing.T) {
	var c clock.Clock
	var now words.Now
	span := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	story.Play(t, "testdata/life", func(w []string) string {
		switch w[0] {
		case "start":
			at, err := time.Parse("2006-01-02T15:04:05", w[1])
			if err != nil {
				t.Fatal(err)
			}
			c, now = clock.Clock{}, words.Now{Wall: words.Time(at.UnixMilli())}
			c.Read(now)
		case "restart":
			c = clock.From(c.Time())
			now.Wall = c.Time() + words.Time(span(w[1]).Milliseconds())
			c.Read(now)
		case "wall":
			now.Wall += words.Time(span(w[1]).Milliseconds())
			return ""
		case "synced", "unsynced":
			now.Synced = w[0] == "synced"
			return ""
		case "accept":
			c.Accept()
		case "pass":
			d, step := span(w[1]), span(w[len(w)-1])
			for range max(1, d/max(1, step)) {
				now.Mono, now.Wall = now.Mono.Plus(step), now.Wall.Plus(step)
				c.Read(now)
			}
		}
		said := time.UnixMilli(int64(c.Time())).UTC().Format("2006-01-02 15:04:05.000")
		if off := c.Offset(); off != 0 {
			said += fmt.Sprintf(", offset %v", off)
		}
		if c.Leads() {
			said += ", leads"
		}
		if c.Doubted() {
			said += ", doubted"
		}
		return said
	})
}

// TestAgrees walks the clock and its twin through the life of the same machine.
func TestAgrees(t *testing.T) {
	jump := rapid.OneOf(rapid.SampledFrom([]int64{0, 0, 0, 1, 499, 500, 501, 1000, 1001, 9_999, 10_000, 10_001, 3_600_000,
		-1, -499, -500, -501, -1000, -1001, -10_000, -3_600_000}), rapid.Int64Range(-20_000, 20_000))
	gone := rapid.SampledFrom([]int64{0, 20, 40, 1_000, 1_000, 20_000, 59_980, 60_000, 60_020, 3_600_000})
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom([]int64{0, 1, 1_000_000}).Draw(t, "at")
		away := rapid.SampledFrom([]int64{0, 1, 500, 3_599_999, 3_600_000, 3_600_001, 7_200_000, -1, -999_999}).Draw(t, "away")
		m, c := twin.Clock{At: at}, clock.From(words.Time(at))
		r := twin.Reading{Mono: rapid.SampledFrom([]int64{0, 20, 600_000}).Draw(t, "mono"), Wall: max(0, at+away), Synced: rapid.Bool().Draw(t, "synced")}
		read := func(t *rapid.T) {
			want := m.Read(r)
			now := words.Now{Mono: words.Instant(r.Mono * 1e6), Wall: words.Time(r.Wall), Synced: r.Synced}
			if got := c.Read(now); int64(got) != want || c.Doubted() != m.Doubts {
				t.Fatalf("%+v: %d, doubted %v; the twin says %d, %v", r, got, c.Doubted(), want, m.Doubts)
			}
			if want := r.Wall < m.At; c.Leads() != want {
				t.Fatalf("%+v: leads %v, want %v", r, c.Leads(), want)
			}
			if want := r.Wall - m.At; c.Offset().Milliseconds() != want {
				t.Fatalf("%+v: offset %v, want %d ms", r, c.Offset(), want)
			}
		}
		read(t)
		pass := func(t *rapid.T) {
			d := gone.Draw(t, "gone")
			r.Mono, r.Wall = r.Mono+d, max(0, r.Wall+d)
			read(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass":  pass,
			"again": pass,
			"jump": func(t *rapid.T) {
				r.Wall = max(0, r.Wall+jump.Draw(t, "jump"))
				pass(t)
			},
			"minute": func(t *rapid.T) { // of steady readings
				for range 6 {
					r.Mono, r.Wall = r.Mono+10_000, r.Wall+10_000
					read(t)
				}
			},
			"sync":   func(*rapid.T) { r.Synced = !r.Synced },
			"accept": func(t *rapid.T) { c.Accept(); m.Accept(); pass(t) },
		})
	})
}

// TestInvariants: C1 and C2, whatever a machine claims.
func TestInvariants(t *testing.T) {
	wild := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2e9, 2e9), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}))
	rapid.Check(t, func(t *rapid.T) {
		c := clock.From(words.Time(rapid.OneOf(rapid.Int64Range(0, 1e12), wild).Draw(t, "at")))
		now := words.Now{Mono: words.Instant(wild.Draw(t, "mono")), Wall: words.Time(wild.Draw(t, "wall"))}
		was := c.Time()
		first := c.Read(now)
		if first < was || first < 0 {
			t.Fatalf("C1: first reads %d after %d", first, was)
		}
		last, mono := first, max(0, now.Mono)
		t.Repeat(map[string]func(*rapid.T){
			"small": func(t *rapid.T) {
				d := rapid.Int64Range(0, 5e9).Draw(t, "ns")
				now.Mono, now.Wall = now.Mono+words.Instant(d), now.Wall+words.Time(d/1e6)
			},
			"mono": func(t *rapid.T) { now.Mono = words.Instant(wild.Draw(t, "mono")) },
			"wall": func(t *rapid.T) { now.Wall = words.Time(wild.Draw(t, "wall")) },
			"sync": func(*rapid.T) { now.Synced = !now.Synced },
			"": func(t *rapid.T) {
				doubted := c.Doubted()
				at := c.Read(now)
				if at < last || at > clock.End {
					t.Fatalf("C1: %d after %d", at, last)
				}
				gone := min(int64(max(mono, now.Mono)-mono)/1e6, int64(clock.End-last)) // ms
				mono = max(mono, now.Mono)
				moved := int64(at - last)
				slow, fast := gone-gone/20-1, gone+gone/20+500+1
				if moved < slow || moved > fast && !(doubted && !c.Doubted()) {
					t.Fatalf("C2: moved %d ms in %d", moved, gone)
				}
				last = at
			},
		})
	})
}

// TestRates: C2 to the nanosecond, in turns that are short and not of a round length.
func TestRates(t *testing.T) {
	for name, c := range map[string]struct {
		offset   words.Time
		min, max time.Duration // of what a second brings, in turns of 1,237 ns
	}{
		"level":  {0, time.Second, time.Second},
		"ahead":  {-5000, 950 * time.Millisecond, 951 * time.Millisecond},
		"behind": {5000, 1049 * time.Millisecond, 1050 * time.Millisecond},
	} {
		k, now := clock.Clock{}, words.Now{Wall: 1_000_000}
		k.Read(now)
		began := now.Wall
		turns := int(time.Second / 1237)
		for i := range turns {
			now.Mono = now.Mono.Plus(1237)
			now.Wall = began + c.offset + words.Time(1237*(i+1)/1e6)
			k.Read(now)
		}
		got := time.Duration(k.Time()-began) * time.Millisecond
		if got < c.min-time.Millisecond || got > c.max+time.Millisecond {
			t.Errorf("%s: a second brings %v", name, got)
		}
	}
}

func TestHashForgetsNothing(t *testing.T) {
	var c clock.Clock
	flip.Every(t, &c, func() words.Hash64 { return c.Mix(0) })
}

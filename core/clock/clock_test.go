package clock_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/clock"
	"macronode/core/types"
	model "macronode/models/clock"
)

// TestTranscript plays a machine and its clocks. wall moves the wall clock; pass advances time
// in one reading, or in readings that are a step apart.
func TestTranscript(t *testing.T) {
	var c clock.Clock
	var now types.Now
	span := func(s string) time.Duration {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	transcript.Play(t, "testdata/life", func(w []string) string {
		switch w[0] {
		case "start":
			at, err := time.Parse("2006-01-02T15:04:05", w[1])
			if err != nil {
				t.Fatal(err)
			}
			c, now = clock.Clock{}, types.Now{Wall: types.Time(at.UnixMilli())}
			c.Read(now)
		case "restart":
			c = clock.From(c.Time())
			now.Wall = c.Time() + types.Time(span(w[1]).Milliseconds())
			c.Read(now)
		case "wall":
			now.Wall += types.Time(span(w[1]).Milliseconds())
			return ""
		case "synced", "unsynced":
			now.Synced = w[0] == "synced"
			return ""
		case "accept":
			c.Accept()
		case "pass":
			d, step := span(w[1]), span(w[len(w)-1])
			for range max(1, d/max(1, step)) {
				now.Mono, now.Wall = now.Mono.Add(step), now.Wall.Add(step)
				c.Read(now)
			}
		}
		line := time.UnixMilli(int64(c.Time())).UTC().Format("2006-01-02 15:04:05.000")
		if off := c.Offset(); off != 0 {
			line += fmt.Sprintf(", offset %v", off)
		}
		if c.Ahead() {
			line += ", leads"
		}
		if c.Untrusted() {
			line += ", doubted"
		}
		return line
	})
}

// TestMatchesModel compares the clock with its reference model under random readings.
func TestMatchesModel(t *testing.T) {
	jump := rapid.OneOf(rapid.SampledFrom([]int64{0, 0, 0, 1, 499, 500, 501, 1000, 1001, 9_999, 10_000, 10_001, 3_600_000,
		-1, -499, -500, -501, -1000, -1001, -10_000, -3_600_000}), rapid.Int64Range(-20_000, 20_000))
	gone := rapid.SampledFrom([]int64{0, 20, 40, 1_000, 1_000, 20_000, 59_980, 60_000, 60_020, 3_600_000})
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom([]int64{0, 1, 1_000_000}).Draw(t, "at")
		away := rapid.SampledFrom([]int64{0, 1, 500, 3_599_999, 3_600_000, 3_600_001, 7_200_000, -1, -999_999}).Draw(t, "away")
		m, c := model.Clock{At: at}, clock.From(types.Time(at))
		r := model.Reading{Mono: rapid.SampledFrom([]int64{0, 20, 600_000}).Draw(t, "mono"), Wall: max(0, at+away), Synced: rapid.Bool().Draw(t, "synced")}
		read := func(t *rapid.T) {
			want := m.Read(r)
			now := types.Now{Mono: types.Instant(r.Mono * 1e6), Wall: types.Time(r.Wall), Synced: r.Synced}
			if got := c.Read(now); int64(got) != want || c.Untrusted() != m.Doubts {
				t.Fatalf("%+v: %d, doubted %v; the model has %d, %v", r, got, c.Untrusted(), want, m.Doubts)
			}
			if want := r.Wall < m.At; c.Ahead() != want {
				t.Fatalf("%+v: leads %v, want %v", r, c.Ahead(), want)
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

// TestInvariantsHoldForAnyReading checks C1 and C2 under arbitrary clocks.
func TestInvariantsHoldForAnyReading(t *testing.T) {
	wild := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2e9, 2e9), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}))
	rapid.Check(t, func(t *rapid.T) {
		c := clock.From(types.Time(rapid.OneOf(rapid.Int64Range(0, 1e12), wild).Draw(t, "at")))
		now := types.Now{Mono: types.Instant(wild.Draw(t, "mono")), Wall: types.Time(wild.Draw(t, "wall"))}
		was := c.Time()
		first := c.Read(now)
		if first < was || first < 0 {
			t.Fatalf("C1: first reads %d after %d", first, was)
		}
		last, mono := first, max(0, now.Mono)
		t.Repeat(map[string]func(*rapid.T){
			"small": func(t *rapid.T) {
				d := rapid.Int64Range(0, 5e9).Draw(t, "ns")
				now.Mono, now.Wall = now.Mono+types.Instant(d), now.Wall+types.Time(d/1e6)
			},
			"mono": func(t *rapid.T) { now.Mono = types.Instant(wild.Draw(t, "mono")) },
			"wall": func(t *rapid.T) { now.Wall = types.Time(wild.Draw(t, "wall")) },
			"sync": func(*rapid.T) { now.Synced = !now.Synced },
			"": func(t *rapid.T) {
				doubted := c.Untrusted()
				at := c.Read(now)
				if at < last || at > clock.MaxTime {
					t.Fatalf("C1: %d after %d", at, last)
				}
				gone := min(int64(max(mono, now.Mono)-mono)/1e6, int64(clock.MaxTime-last)) // ms
				mono = max(mono, now.Mono)
				moved := int64(at - last)
				slow, fast := gone-gone/20-1, gone+gone/20+500+1
				if moved < slow || moved > fast && !(doubted && !c.Untrusted()) {
					t.Fatalf("C2: moved %d ms in %d", moved, gone)
				}
				last = at
			},
		})
	})
}

// TestSlewRateIsExact checks C2 to the nanosecond, with short readings of an odd length.
func TestSlewRateIsExact(t *testing.T) {
	for name, c := range map[string]struct {
		offset   types.Time
		min, max time.Duration // progress in a second, in readings of 1,237 ns
	}{
		"level":  {0, time.Second, time.Second},
		"ahead":  {-5000, 950 * time.Millisecond, 951 * time.Millisecond},
		"behind": {5000, 1049 * time.Millisecond, 1050 * time.Millisecond},
	} {
		k, now := clock.Clock{}, types.Now{Wall: 1_000_000}
		k.Read(now)
		began := now.Wall
		turns := int(time.Second / 1237)
		for i := range turns {
			now.Mono = now.Mono.Add(1237)
			now.Wall = began + c.offset + types.Time(1237*(i+1)/1e6)
			k.Read(now)
		}
		got := time.Duration(k.Time()-began) * time.Millisecond
		if got < c.min-time.Millisecond || got > c.max+time.Millisecond {
			t.Errorf("%s: the clock advances by %v in a second", name, got)
		}
	}
}

func TestHashCoversEveryField(t *testing.T) {
	var c clock.Clock
	hashcoverage.Every(t, &c, func() types.Hash64 { return c.HashInto(0) })
}

// TestNotBefore: up to the instant that NotBefore gives, a clock without steps does not read the time, but for the millisecond of its
// wall clock. One that is read there each time gets there soon, whatever its rate.
func TestNotBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := clock.Clock{}, types.Now{Wall: 1_000_000, Synced: true}
		k.Read(now)
		offset := types.Time(rapid.SampledFrom([]int64{0, -5000, 5000}).Draw(t, "offset"))
		began, to := now.Wall, now.Wall+types.Time(rapid.Int64Range(0, 1_000_000_000).Draw(t, "ms"))
		reading := func(at types.Instant) types.Now {
			return types.Now{Mono: at, Wall: began + offset + types.Time(at/1e6), Synced: true}
		}
		k.Read(reading(1))
		reads, at := 0, types.Instant(1)
		for ; k.Time() < to; reads++ {
			due := k.NotBefore(to)
			if due <= at {
				t.Fatalf("not before %d, and it is %d", due, at)
			}
			if early := k; offset <= 0 && due-1e6 > at && early.Read(reading(due-1e6)) >= to {
				t.Fatalf("it reads %d before %d", to, due)
			}
			at = due
			k.Read(reading(at))
		}
		if due := k.NotBefore(to); reads > 20 || due > at {
			t.Errorf("%d readings; at %d, not before %d", reads, at, due)
		}
	})
}

// TestJournalBeginsAtPossibleTime: from the year of the first version to the end of the century.
func TestJournalBeginsAtPossibleTime(t *testing.T) {
	first, last := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]bool{time.Unix(0, 0): false, first.Add(-time.Millisecond): false, first: true, last: true, last.Add(time.Millisecond): false} {
		if got := clock.MayBegin(types.Time(at.UnixMilli())); got != want {
			t.Errorf("%v: %v, want %v", at, got, want)
		}
	}
}

package accounting_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/state"
	"macronode/core/types"
	reference "macronode/models/accounting"
)

// pass lets time go by. Then everything that is due is sealed, unless the clock is untrusted.
func (s *system) pass(*rapid.T) {
	d := time.Second + time.Duration(rapid.SampledFrom([]int{0, 1, 999, 1000, 30_000, 60_000, 400_000}).Draw(s.T, "time"))*time.Millisecond
	s.now.Mono += types.Instant(d)
	s.now.Wall += types.Time(d / time.Millisecond)
	s.tick()
}

// boundary lets time go by to the end of a window and its grace, or to a millisecond before or after.
func (s *system) boundary(*rapid.T) {
	length := types.Time(window.Milliseconds())
	to := s.status.At
	to += length - to%length + types.Time(grace.Milliseconds()) + types.Time(rapid.IntRange(-1, 1).Draw(s.T, "by"))
	d := max(to-s.status.At, types.Time(time.Second/time.Millisecond))
	s.now.Mono += types.Instant(d) * types.Instant(time.Millisecond)
	s.now.Wall += d
	s.tick()
}

// tick ticks until there is nothing left to do.
func (s *system) tick() {
	for frames := -1; frames < len(s.frames); {
		frames = len(s.frames)
		s.step(event.Tick{})
	}
	copied := *s.model
	due := len(copied.Seal(int64(s.status.At), 1000))
	switch untrusted := s.status.DegradedBy.Has(types.ClockUntrusted); {
	case untrusted && due > 0:
		s.seen["usage is due while the clock is untrusted"]++
	case due > 0:
		s.Fatalf("%d slices are due at %d and are not sealed", due, s.status.At)
	}
}

// jump changes the machine's clock, a few times in a row and without a tick between them.
func (s *system) jump(*rapid.T) {
	by := rapid.SampledFrom([]int{-86_400_000, -61_000, -500, 400, 500, 5000, 61_000, 7_200_000}).Draw(s.T, "jump")
	s.now.Wall = max(1, s.now.Wall+types.Time(by))
	s.now.Synced = rapid.IntRange(0, 3).Draw(s.T, "synced") > 0
	s.seen[fmt.Sprint("jump back ", by < 0)]++
	if rapid.Bool().Draw(s.T, "tick") {
		s.now.Mono += types.Instant(time.Second)
		s.tick()
	}
}

// trust lets an operator accept the machine's clock.
func (s *system) trust(*rapid.T) {
	s.step(event.Signal{Kind: event.AcceptClock})
	s.now.Mono += types.Instant(time.Second)
	s.tick()
}

// replay makes the model of the changes of the frames.
func (s *system) replay() {
	_, m := limits(false)
	s.model, s.reported = &reference.Book{Limits: m}, map[refKey]accounting.Event{}
	for _, c := range s.changes {
		if c.tenant == 0 {
			s.model.Seal(int64(c.at), 1000)
		} else {
			s.model.Record(int64(c.at), c.tenant, meantAll(c.given))
			s.remember(c.tenant, c.given)
		}
	}
}

// crash loses a part of what was not durable, and recovers from a snapshot and the frames behind it.
func (s *system) crash(*rapid.T) {
	left := rapid.IntRange(s.synced, len(s.frames)).Draw(s.T, "frames left")
	cut := rapid.IntRange(0, left).Draw(s.T, "snapshot after")
	s.seen["frames are lost"] += len(s.frames) - left
	for _, c := range s.calls { //nolint:maporder // the order of retries means nothing
		s.unknown = append(s.unknown, c)
	}
	slices.SortFunc(s.unknown, func(a, b *call) int { return bytes.Compare([]byte(fmt.Sprint(a.given)), []byte(fmt.Sprint(b.given))) })
	s.frames, s.unsynced, s.synced = s.frames[:left], 0, left
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.lsn > left })
	s.replay()
	for k := range s.acked { //nolint:maporder // the rule is the same for each
		if _, known := s.reported[k]; !known {
			s.Fatalf("event %x was acknowledged and is lost", k.name)
		}
	}
	if s.index = s.table.clone(); s.table.mark > left || rapid.IntRange(0, 3).Draw(s.T, "index lost") == 0 {
		s.index, s.table = refIndex{refs: map[refKey]command.PriorOutcome{}}, refIndex{refs: map[refKey]command.PriorOutcome{}}
	}
	old, recovered := state.New(nodeLimits(), 3), state.New(nodeLimits(), 4)
	for i, body := range s.frames {
		if i == cut && i > 0 {
			old.Dump(func(row []byte) {
				if err := recovered.Load(row); err != nil {
					s.Fatal(err)
				}
			})
		}
		if err := old.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	for _, body := range s.frames[recovered.LSN:] {
		if err := recovered.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	var folded, loaded state.RowSum
	old.Dump(folded.Add)
	if recovered.Dump(loaded.Add); folded.Root() != loaded.Root() {
		s.Fatalf("the rows after frame %d depend on the snapshot of frame %d", recovered.LSN, cut)
	}
	if recovered.Hash() != old.Hash() {
		s.Fatal("recovery made another state")
	}
	s.view = old
	s.compare(nil)
	if away := rapid.SampledFrom([]int{0, 1000, 400_000, -400_000, 7_200_000}).Draw(s.T, "away"); away != 0 {
		s.now.Wall = max(1, s.now.Wall+types.Time(away))
	}
	s.start(recovered)
}

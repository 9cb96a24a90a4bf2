package loop

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

type inert struct{}

func (inert) Step(types.Now, event.Event, *event.Effects)          {}
func (inert) Due() (types.Instant, bool)                           { return 0, false }
func (inert) Status(*event.Status)                                 {}
func (inert) Now() types.Now                                       { return types.Now{} }
func (inert) Write([]byte, []event.Frame) ([]record.Sealed, error) { return nil, nil }
func (inert) Sync() (types.LSN, error)                             { return 0, nil }

// TestBatchWaitsForOthersWithinLimit: waiting requests that add nothing cannot delay the batch
// for ever, and a large batch does not wait.
func TestBatchWaitsForOthersWithinLimit(t *testing.T) {
	k := NewDispatcher(ClassLimits{1, 4, 1}, ClassLimits{}, 1)
	l := New(inert{}, inert{}, inert{}, k, Ports{Flush: func(int, int, time.Duration) {}}, 8)
	k.rings[types.ClassAuthed] <- &event.Request{} // a request waits whenever the loop checks
	if l.yieldForMore(0) {
		t.Fatal("waits although there is nothing to write")
	}
	for range 2 {
		l.next.Frames = []event.Frame{{LSN: 1}}
		turns := 0
		for l.yieldForMore(0) {
			turns++
		}
		if turns != maxWaitTurns {
			t.Fatalf("waited for %d turns, want %d", turns, maxWaitTurns)
		}
		l.flush()
		if len(l.next.Frames) > 0 || l.waited > 0 {
			t.Fatal("not handed over")
		}
		l.fromSealer <- <-l.toSealer // the sealer is idle again
	}
	l.next.Frames = make([]event.Frame, 4)
	if l.yieldForMore(0) {
		t.Fatal("half a turn's worth waits for more")
	}
	<-l.fromSealer
	l.next.Frames = l.next.Frames[:1]
	if l.yieldForMore(0) {
		t.Fatal("yields while the sealer is busy")
	}
}

// steppingClock is a clock that goes on with each reading.
type steppingClock struct {
	now  types.Instant
	step time.Duration
}

func (c *steppingClock) Now() types.Now {
	c.now = c.now.Add(c.step)
	return types.Now{Mono: c.now}
}

// TestFloodDelaysNoBatch: a batch waits neither for requests without a key, nor for longer than
// maxWait, however long a yield takes.
func TestFloodDelaysNoBatch(t *testing.T) {
	for _, c := range []struct {
		name string
		of   types.Class
		step time.Duration // that a yield takes
		want int           // turns
	}{
		{"requests without a key", types.ClassAnon, 0, 0},
		{"requests with a key", types.ClassAuthed, 0, maxWaitTurns},
		{"requests of the operator", types.ClassInternal, 0, maxWaitTurns},
		{"yields of half the time", types.ClassAuthed, maxWait / 2, 2},
		{"long yields", types.ClassAuthed, maxWait + 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, clock := NewDispatcher(ClassLimits{1, 1, 1}, ClassLimits{}, 1), &steppingClock{step: c.step}
			l := New(inert{}, clock, inert{}, k, Ports{}, 8)
			k.rings[c.of] <- &event.Request{}
			for range 2 {
				l.next.Frames = []event.Frame{{LSN: 1}}
				turns := 0
				for began := clock.now; l.yieldForMore(began); {
					turns++
				}
				if turns != c.want {
					t.Errorf("waited for %d turns, want %d", turns, c.want)
				}
				l.flush()
				l.fromSealer <- <-l.toSealer
			}
		})
	}
}

// TestSlotReportsEveryCancellation: not only the first one of a slot.
func TestSlotReportsEveryCancellation(t *testing.T) {
	k := NewDispatcher(ClassLimits{1, 1, 1}, ClassLimits{}, 1)
	s := &k.slots[1]
	for range 3 {
		ticket := s.acquire(1)
		k.queueCancel(s, ticket)
		if len(k.cancelled) != 1 {
			t.Fatal("the cancellation is not reported")
		}
		if got := k.cancelEvent(<-k.cancelled); got != (event.Cancel{Ticket: ticket}) {
			t.Fatalf("%v", got)
		}
	}
}

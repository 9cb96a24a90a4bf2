package loop

import (
	"testing"
	"time"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

type nobody struct{}

func (nobody) Step(types.Now, event.Event, *event.Effects)          {}
func (nobody) Due() (types.Instant, bool)                           { return 0, false }
func (nobody) Status(*event.Status)                                 {}
func (nobody) Now() types.Now                                       { return types.Now{} }
func (nobody) Write([]byte, []event.Frame) ([]record.Sealed, error) { return nil, nil }
func (nobody) Sync() (types.LSN, error)                             { return 0, nil }

// TestABatchWaitsForOthersButNotForEver: a crowd that brings it nothing cannot keep it
// from the disk, and a large one waits for nobody.
func TestABatchWaitsForOthersButNotForEver(t *testing.T) {
	k := NewDesk(Door{1, 4, 1}, Door{}, 1)
	l := New(nobody{}, nobody{}, nobody{}, k, Ports{Flush: func(int, int, time.Duration) {}}, 8)
	k.rings[types.ClassAuthed] <- &event.Request{} // at the door, whenever the loop looks
	if l.comes() {
		t.Fatal("waits with nothing to write")
	}
	for range 2 {
		l.next.Frames = []event.Frame{{LSN: 1}}
		turns := 0
		for l.comes() {
			turns++
		}
		if turns != patient {
			t.Fatalf("waited for %d turns, want %d", turns, patient)
		}
		l.flush()
		if len(l.next.Frames) > 0 || l.waited > 0 {
			t.Fatal("not handed over")
		}
		l.free <- <-l.begin // the sealer is idle again
	}
	l.next.Frames = make([]event.Frame, 4)
	if l.comes() {
		t.Fatal("half a turn's worth waits for more")
	}
	<-l.free
	l.next.Frames = l.next.Frames[:1]
	if l.comes() {
		t.Fatal("lets others go first while the sealer is busy")
	}
}

// TestASlotTellsOfEveryLeaving: not only of the first in its life.
func TestASlotTellsOfEveryLeaving(t *testing.T) {
	k := NewDesk(Door{1, 1, 1}, Door{}, 1)
	s := &k.slots[1]
	for range 3 {
		ticket := s.take(1)
		k.mark(s, ticket)
		if len(k.gone) != 1 {
			t.Fatal("nobody is told")
		}
		if got := k.canceled(<-k.gone); got != (event.Cancel{Ticket: ticket}) {
			t.Fatalf("%v", got)
		}
	}
}

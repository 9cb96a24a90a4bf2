package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A diary is a node, a clock, a journal and a follower that write down what
// happens to them. The node frames every request and replies when it is folded.
type diary struct {
	mu    sync.Mutex
	said  []string
	slow  time.Duration // a sync takes
	wrong error         // a sync says
	sick  error         // the follower says
	lsn   types.LSN
	wrote types.LSN
	held  []event.Reply
	stop  bool
	due   types.Instant
	ticks int

	dawdles time.Duration // over every second request; then a tick is due
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

func (d *diary) at(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Index(d.said, what)
}

func (d *diary) Now() types.Now { return types.Now{Mono: types.Instant(time.Now().UnixNano())} }

func (d *diary) Step(now types.Now, in event.Event, out *event.Effects) {
	switch in := in.(type) {
	case *event.Request:
		d.lsn++
		off := uint32(len(out.Arena))
		out.Arena = append(out.Arena, byte(d.lsn))
		out.Frames = append(out.Frames, event.Frame{LSN: d.lsn, Off: off, Len: 1})
		d.held = append(d.held, event.Reply{Ticket: in.Ticket, After: d.lsn})
		if d.dawdles > 0 && d.lsn%2 == 0 {
			time.Sleep(d.dawdles)
			d.due = now.Mono
		}
	case event.Durable:
		d.note("durable %v", in.Upto)
	case event.Applied:
		for len(d.held) > 0 && d.held[0].After <= in.Upto {
			out.Replies = append(out.Replies, d.held[0])
			d.held = d.held[1:]
		}
	case event.FlushFailed:
		d.note("refused from %v: %v", in.From, in.Fault)
		for _, r := range d.held {
			out.Replies = append(out.Replies, event.Reply{Ticket: r.Ticket, Problem: event.OutcomeUnknown})
		}
		d.held = nil
	case event.Cancel:
		d.note("cancel")
	case event.Signal:
		d.stop = true
	case event.Tick:
		if d.due > 0 && now.Mono >= d.due {
			d.note("tick")
			d.ticks++
			d.due = 0
		}
	}
}

func (d *diary) Due() (types.Instant, bool) { return d.due, d.due > 0 }

func (d *diary) Status(s *event.Status) {
	s.LSN = d.lsn
	if d.stop {
		s.Phase = types.Stopped
	}
}

func (d *diary) Write(arena []byte, frames []event.Frame) (s []record.Sealed, _ error) {
	for _, f := range frames {
		types.Assert(arena[f.Off] == byte(f.LSN), "another frame's bytes")
		s = append(s, record.Sealed{LSN: f.LSN})
	}
	d.wrote = frames[len(frames)-1].LSN
	d.note("write %v", d.wrote)
	return s, nil
}

func (d *diary) Sync() (types.LSN, error) {
	time.Sleep(d.slow)
	d.note("synced %v", d.wrote)
	return d.wrote, d.wrong
}

func (d *diary) fold(s []record.Sealed) error {
	d.note("fold %v", s[len(s)-1].LSN)
	return d.sick
}

// run starts a loop around d; end stops it and returns what Run said.
func run(t *testing.T, d *diary, door loop.Door) (l *loop.Loop, k *loop.Desk, end func() error) {
	k = loop.NewDesk(door, loop.Door{2, 4, 2}, 1)
	l = loop.New(d, d, d, k, loop.Ports{Fold: d.fold, Child: func(event.ServiceCommand) {},
		Fault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
	return l, k, func() error {
		l.Say(t.Context(), event.Signal{Kind: event.Drain})
		return <-done
	}
}

// TestOrder: nothing is folded before its sync, no reply leaves before its fold, and
// what comes during a sync is one batch.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{slow: time.Second}
		_, k, end := run(t, d, loop.Door{2, 8, 2})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
				if !ok || r.Problem != event.None {
					t.Errorf("%+v %v", r, ok)
				}
				d.note("told %v", r.After)
			})
			synctest.Wait()
		}
		wg.Wait()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for _, batch := range []string{"@1", "@4"} { // 2, 3 and 4 came while 1 was in sync
			w, s, f, told := d.at("write "+batch), d.at("synced "+batch), d.at("fold "+batch), d.at("told "+batch)
			if w < 0 || s < w || f < s || told < f {
				t.Fatalf("batch %s: %q", batch, d.said)
			}
		}
		if d.at("write @2") >= 0 || d.at("write @3") >= 0 {
			t.Fatalf("batches that were not grown: %q", d.said)
		}
	})
}

// TestDoor: a class that is full refuses at once, and takes nothing from another.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{slow: time.Minute}
		_, k, end := run(t, d, loop.Door{1, 2, 1})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { k.Submit(t.Context(), types.ClassAuthed, &event.Request{}) })
		}
		synctest.Wait()
		before := time.Now()
		if _, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{}); ok || time.Since(before) > 0 {
			t.Fatal("a third was let in, or waited")
		}
		if k.In(types.ClassAuthed) != 2 || k.In(types.ClassInternal) != 0 {
			t.Fatalf("in: %d authed, %d internal", k.In(types.ClassAuthed), k.In(types.ClassInternal))
		}
		if r, ok := k.Submit(t.Context(), types.ClassInternal, &event.Request{}); !ok || r.Problem != event.None {
			t.Fatalf("internal: %+v %v", r, ok)
		}
		wg.Wait()
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeave: who leaves is told that it is unknown, the node hears of it, and the
// reply that comes later is not given to the next user of the slot.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{slow: time.Minute}
		_, k, end := run(t, d, loop.Door{1, 1, 1})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		first, ok := k.Submit(ctx, types.ClassAuthed, &event.Request{})
		if !ok || first.Problem != event.OutcomeUnknown {
			t.Fatalf("%+v %v", first, ok)
		}
		second, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
		if !ok || second.Ticket == first.Ticket || second.Ticket.Slot() != first.Ticket.Slot() || second.After != 2 {
			t.Fatalf("first %+v, second %+v %v", first, second, ok)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if d.at("cancel") < 0 {
			t.Fatalf("the node never heard: %q", d.said)
		}
	})
}

// TestRefused: a failed sync is an event, the loop goes on, nothing is folded.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{wrong: errors.New("the disk is gone")}
		_, k, end := run(t, d, loop.Door{1, 4, 1})
		r, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
		if !ok || r.Problem != event.OutcomeUnknown {
			t.Fatalf("%+v %v", r, ok)
		}
		if err := end(); err != nil || d.at("refused from @1: sync failed") < 0 || d.at("fold @1") >= 0 {
			t.Fatalf("%v: %q", err, d.said)
		}
	})
}

// TestFollowerDies: without it answers would lie, so the loop ends and says why.
func TestFollowerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{sick: errors.New("a frame out of order")}
		k := loop.NewDesk(loop.Door{1, 4, 1}, loop.Door{}, 1)
		l := loop.New(d, d, d, k, loop.Ports{Fold: d.fold, Child: func(event.ServiceCommand) {},
			Fault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
		ctx, leave := context.WithCancel(t.Context())
		go func() { k.Submit(ctx, types.ClassAuthed, &event.Request{}) }()
		if err := l.Run(t.Context(), event.Recovered{}); !errors.Is(err, d.sick) {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
	})
}

// TestDue: the loop sleeps until the node wants a tick, and no longer.
func TestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &diary{due: types.Instant(began.Add(2 * time.Hour).UnixNano())}
		_, _, end := run(t, d, loop.Door{1, 1, 1})
		time.Sleep(2*time.Hour + time.Second)
		if err := end(); err != nil || d.ticks != 1 {
			t.Fatalf("%v, %d ticks", err, d.ticks)
		}
	})
}

// TestATickComesBehindWhatTheDiskSaid: where a tick is due and the disk has spoken meanwhile, the node hears
// the disk first: it was in time.
func TestATickComesBehindWhatTheDiskSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{slow: time.Second, dawdles: 3 * time.Second}
		_, k, end := run(t, d, loop.Door{2, 8, 2})
		for round := range 40 { // chance says what the loop wakes for
			d.mu.Lock()
			d.said = nil
			d.mu.Unlock()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { k.Submit(t.Context(), types.ClassAuthed, &event.Request{}) })
				synctest.Wait()
			}
			wg.Wait()
			durable, tick := d.at(fmt.Sprintf("durable %v", types.LSN(2*round+1))), d.at("tick")
			if durable < 0 || tick < durable {
				t.Errorf("round %d: %q", round, d.said)
			}
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
}

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

// A recorder is a node, a clock, a journal and a follower that log their calls. The node makes a frame for every
// request and replies when it is folded.
type recorder struct {
	mu       sync.Mutex
	reported []string
	syncTime time.Duration // duration of a sync
	syncErr  error         // error of a sync
	foldErr  error         // error of the follower
	lsn      types.LSN
	wrote    types.LSN
	held     []event.Reply
	stop     bool
	due      types.Instant
	ticks    int

	extraTime time.Duration // extra time of every second request; then a tick is due
}

func (d *recorder) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported = append(d.reported, fmt.Sprintf(format, args...))
}

func (d *recorder) at(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Index(d.reported, what)
}

func (d *recorder) Now() types.Now { return types.Now{Mono: types.Instant(time.Now().UnixNano())} }

func (d *recorder) Step(now types.Now, in event.Event, out *event.Effects) {
	switch in := in.(type) {
	case *event.Request:
		d.lsn++
		off := uint32(len(out.Arena))
		out.Arena = append(out.Arena, byte(d.lsn))
		out.Frames = append(out.Frames, event.Frame{LSN: d.lsn, Off: off, Len: 1})
		d.held = append(d.held, event.Reply{Ticket: in.Ticket, After: d.lsn})
		if d.extraTime > 0 && d.lsn%2 == 0 {
			time.Sleep(d.extraTime)
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

func (d *recorder) Due() (types.Instant, bool) { return d.due, d.due > 0 }

func (d *recorder) Status(s *event.Status) {
	s.LSN = d.lsn
	if d.stop {
		s.Phase = types.Stopped
	}
}

func (d *recorder) Write(arena []byte, frames []event.Frame) (s []record.Sealed, _ error) {
	for _, f := range frames {
		types.Assert(arena[f.Off] == byte(f.LSN), "another frame's bytes")
		s = append(s, record.Sealed{LSN: f.LSN})
	}
	d.wrote = frames[len(frames)-1].LSN
	d.note("write %v", d.wrote)
	return s, nil
}

func (d *recorder) Sync() (types.LSN, error) {
	time.Sleep(d.syncTime)
	d.note("synced %v", d.wrote)
	return d.wrote, d.syncErr
}

func (d *recorder) fold(s []record.Sealed) error {
	d.note("fold %v", s[len(s)-1].LSN)
	return d.foldErr
}

// run starts a loop around d; end stops it and returns the result of Run.
func run(t *testing.T, d *recorder, door loop.ClassLimits) (l *loop.Loop, k *loop.Dispatcher, end func() error) {
	k = loop.NewDispatcher(door, loop.ClassLimits{2, 4, 2}, 1)
	l = loop.New(d, d, d, k, loop.Ports{Fold: d.fold, ServiceCommand: func(event.ServiceCommand) {},
		ClassifyFault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
	return l, k, func() error {
		l.Send(t.Context(), event.Signal{Kind: event.Drain})
		return <-done
	}
}

// TestReplyFollowsSyncAndFold: a frame is folded after its sync, a reply leaves after its fold,
// and events during a sync form one batch.
func TestReplyFollowsSyncAndFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{syncTime: time.Second}
		_, k, end := run(t, d, loop.ClassLimits{2, 8, 2})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
				if !ok || r.Problem != event.None {
					t.Errorf("%+v %v", r, ok)
				}
				d.note("reply %v", r.After)
			})
			synctest.Wait()
		}
		wg.Wait()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for _, batch := range []string{"@1", "@4"} { // 2, 3 and 4 arrived during the sync of 1
			w, s, f, replied := d.at("write "+batch), d.at("synced "+batch), d.at("fold "+batch), d.at("reply "+batch)
			if w < 0 || s < w || f < s || replied < f {
				t.Fatalf("batch %s: %q", batch, d.reported)
			}
		}
		if d.at("write @2") >= 0 || d.at("write @3") >= 0 {
			t.Fatalf("batches that were not grown: %q", d.reported)
		}
	})
}

// TestFullClassRejectsAtOnce: a full class rejects at once, without effect on another class.
func TestFullClassRejectsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{syncTime: time.Minute}
		_, k, end := run(t, d, loop.ClassLimits{1, 2, 1})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { k.Submit(t.Context(), types.ClassAuthed, &event.Request{}) })
		}
		synctest.Wait()
		before := time.Now()
		if _, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{}); ok || time.Since(before) > 0 {
			t.Fatal("a third was let in, or waited")
		}
		if k.InFlight(types.ClassAuthed) != 2 || k.InFlight(types.ClassInternal) != 0 {
			t.Fatalf("in: %d authed, %d internal", k.InFlight(types.ClassAuthed), k.InFlight(types.ClassInternal))
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

// TestCancelledRequestIsUnknown: a cancelled request returns an unknown outcome, the node is
// informed, and a later reply does not reach the next user of the slot.
func TestCancelledRequestIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{syncTime: time.Minute}
		_, k, end := run(t, d, loop.ClassLimits{1, 1, 1})
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
			t.Fatalf("the node never heard: %q", d.reported)
		}
	})
}

// TestFailedSyncIsAnEvent: the loop goes on, and nothing is folded.
func TestFailedSyncIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{syncErr: errors.New("the disk is gone")}
		_, k, end := run(t, d, loop.ClassLimits{1, 4, 1})
		r, ok := k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
		if !ok || r.Problem != event.OutcomeUnknown {
			t.Fatalf("%+v %v", r, ok)
		}
		if err := end(); err != nil || d.at("refused from @1: sync failed") < 0 || d.at("fold @1") >= 0 {
			t.Fatalf("%v: %q", err, d.reported)
		}
	})
}

// TestFailedFollowerEndsLoop: the loop ends with the error, because answers would be wrong.
func TestFailedFollowerEndsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{foldErr: errors.New("a frame out of order")}
		k := loop.NewDispatcher(loop.ClassLimits{1, 4, 1}, loop.ClassLimits{}, 1)
		l := loop.New(d, d, d, k, loop.Ports{Fold: d.fold, ServiceCommand: func(event.ServiceCommand) {},
			ClassifyFault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
		ctx, leave := context.WithCancel(t.Context())
		go func() { k.Submit(ctx, types.ClassAuthed, &event.Request{}) }()
		if err := l.Run(t.Context(), event.Recovered{}); !errors.Is(err, d.foldErr) {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
	})
}

// TestLoopSleepsUntilDue: the loop sleeps exactly until the next tick is due.
func TestLoopSleepsUntilDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &recorder{due: types.Instant(began.Add(2 * time.Hour).UnixNano())}
		_, _, end := run(t, d, loop.ClassLimits{1, 1, 1})
		time.Sleep(2*time.Hour + time.Second)
		if err := end(); err != nil || d.ticks != 1 {
			t.Fatalf("%v, %d ticks", err, d.ticks)
		}
	})
}

// TestTickFollowsDiskEvents: if a tick is due and a disk event is ready, the disk event comes
// first: it may have been in time.
func TestTickFollowsDiskEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{syncTime: time.Second, extraTime: 3 * time.Second}
		_, k, end := run(t, d, loop.ClassLimits{2, 8, 2})
		for round := range 40 { // the loop wakes for either
			d.mu.Lock()
			d.reported = nil
			d.mu.Unlock()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { k.Submit(t.Context(), types.ClassAuthed, &event.Request{}) })
				synctest.Wait()
			}
			wg.Wait()
			durable, tick := d.at(fmt.Sprintf("durable %v", types.LSN(2*round+1))), d.at("tick")
			if durable < 0 || tick < durable {
				t.Errorf("round %d: %q", round, d.reported)
			}
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWaitingFoldsAreCounted: durable batches that wait for the read model are counted, and the count returns to 0.
func TestWaitingFoldsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, hold := new(recorder), make(chan struct{})
		k := loop.NewDispatcher(loop.ClassLimits{2, 8, 2}, loop.ClassLimits{2, 4, 2}, 1)
		l := loop.New(d, d, d, k, loop.Ports{Fold: func(s []record.Sealed) error { <-hold; return d.fold(s) }, ServiceCommand: func(event.ServiceCommand) {},
			Flush: func(int, int, time.Duration) {}}, 64)
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
		for n := range 4 { // the first batch is being folded
			go k.Submit(t.Context(), types.ClassAuthed, &event.Request{})
			synctest.Wait()
			if got, limit := l.Folds(); got != n || limit != 4 {
				t.Errorf("after %d batches: %d of %d wait", n+1, got, limit)
			}
		}
		close(hold)
		synctest.Wait()
		if got, _ := l.Folds(); got != 0 {
			t.Errorf("in the end: %d wait", got)
		}
		l.Send(t.Context(), event.Signal{Kind: event.Drain})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

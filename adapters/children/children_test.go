package children

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"macronode/core/event"
	"macronode/core/supervise"
	"macronode/core/words"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a set with one child, what was told of it and what was logged.
type stage struct {
	*Set
	mu   sync.Mutex
	told []event.Event
	log  bytes.Buffer
}

func newStage(run Run) *stage {
	s := new(stage)
	s.Set = New(slog.New(slog.NewTextHandler(&s.log, nil)), func(e event.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, e)
	})
	if run != nil {
		s.Add(words.ChildHTTP, run)
	}
	return s
}

func (s *stage) ask(what event.ChildVerb) { s.Do(event.ChildOp{Child: words.ChildHTTP, What: what}) }

// tells fails unless the child has ended and told exactly want.
func (s *stage) tells(t *testing.T, want ...event.Event) {
	t.Helper()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.told, want) {
		t.Fatalf("told %v, not %v\n%s", s.told, want, &s.log)
	}
}

func (s *stage) counts(t *testing.T, want Counts) {
	t.Helper()
	if got := s.Counts(words.ChildHTTP); got != want {
		t.Fatalf("%+v, not %+v\n%s", got, want, &s.log)
	}
}

func TestStopLetsAChildFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(ctx context.Context, up func()) error {
			up()
			up() // the second is not told
			<-ctx.Done()
			if Hard(ctx).Err() != nil {
				t.Error("killed where it was to be stopped")
			}
			return ctx.Err()
		})
		s.ask(event.StartChild)
		synctest.Wait()
		if err := s.Wait(ended(t)); err == nil || err.Error() != "wait for child http: context canceled" {
			t.Fatal(err)
		}
		s.ask(event.StopChild)
		s.tells(t, event.ChildUp{Child: words.ChildHTTP}, event.ChildDown{Child: words.ChildHTTP})
		s.counts(t, Counts{Started: 1, Stopped: 1})
	})
}

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestKillStopsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(ctx context.Context, _ func()) error { <-ctx.Done(); return Hard(ctx).Err() })
		s.ask(event.StartChild)
		s.ask(event.KillChild)
		s.tells(t, event.ChildDown{Child: words.ChildHTTP})
		s.counts(t, Counts{Started: 1, Killed: 1})
	})
}

func TestKillEndsWhatAStopDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(ctx context.Context, _ func()) error {
			<-Hard(ctx).Done()
			if ctx.Err() == nil {
				t.Error("killed, and not stopped")
			}
			return nil
		})
		s.ask(event.StartChild)
		s.ask(event.StopChild)
		synctest.Wait()
		s.counts(t, Counts{Started: 1})
		s.ask(event.KillChild)
		s.tells(t, event.ChildDown{Child: words.ChildHTTP})
		s.counts(t, Counts{Started: 1, Killed: 1})
		s.ask(event.KillChild) // nobody is there any more
		s.tells(t, event.ChildDown{Child: words.ChildHTTP})
	})
}

// Another's context ends, and the child says so: that is no stop (suture, issue 77).
// TestWaitsForWhomItIsAsked: and for no other.
func TestWaitsForWhomItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slog.New(slog.DiscardHandler), func(event.Event) {})
		for _, c := range []words.Child{words.ChildHTTP, words.ChildAdmin} {
			s.Add(c, func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil })
			s.Do(event.ChildOp{Child: c, What: event.StartChild})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Do(event.ChildOp{Child: words.ChildHTTP, What: event.StopChild})
		if err := s.Wait(ctx, words.ChildHTTP); err != nil {
			t.Errorf("for who has ended: %v", err)
		}
		if err := s.Wait(ctx, words.ChildAdmin); err == nil {
			t.Error("for who goes on")
		}
		s.Do(event.ChildOp{Child: words.ChildAdmin, What: event.StopChild})
		if err := s.Wait(t.Context()); err != nil {
			t.Errorf("for all: %v", err)
		}
	})
}

func TestWhoeverWasNotAskedHasDied(t *testing.T) {
	for _, c := range []struct {
		why string // as logged
		run Run
	}{
		{`"context canceled"`, func(context.Context, func()) error { return context.Canceled }},
		{`"port gone"`, func(context.Context, func()) error { return errors.New("port gone") }},
		{`"ended without being asked to"`, func(context.Context, func()) error { return nil }},
		{`"ended its goroutine"`, func(context.Context, func()) error { runtime.Goexit(); return nil }},
		{`"nobody added it"`, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := newStage(c.run)
			s.ask(event.StartChild)
			s.tells(t, event.ChildDown{Child: words.ChildHTTP})
			s.counts(t, Counts{Started: 1, Died: 1})
			if !strings.Contains(s.log.String(), `level=ERROR msg="child died" child=http err=`+c.why) {
				t.Fatalf("logged %s", &s.log)
			}
		})
	}
}

func TestAPanicEndsAtTheEdge(t *testing.T) {
	s := newStage(func(context.Context, func()) error { panic("off by one") })
	s.ask(event.StartChild)
	s.tells(t, event.ChildDown{Child: words.ChildHTTP})
	s.counts(t, Counts{Started: 1, Died: 1, Panicked: 1})
	for _, want := range []string{"off by one", "TestAPanicEndsAtTheEdge", "children_test.go"} {
		if !strings.Contains(s.log.String(), want) {
			t.Fatalf("%q is not in %s", want, &s.log)
		}
	}
}

func TestASecondStartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil })
		s.ask(event.StartChild)
		s.ask(event.StartChild)
		s.ask(event.StopChild)
		s.tells(t, event.ChildDown{Child: words.ChildHTTP})
		s.counts(t, Counts{Started: 1, Stopped: 1})
	})
}

// The supervisor of core and a child that dies until its seventh run: each death is
// told, each start asked for, and the many restarts are noticed.
func TestTheSupervisorBringsAChildBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.Event, 64)
		set := New(slog.New(slog.DiscardHandler), func(e event.Event) { events <- e })
		runs := 0
		serve := func(ctx context.Context, up func()) error { up(); <-ctx.Done(); return nil }
		set.Add(words.ChildAdmin, serve)
		set.Add(words.ChildSampler, serve)
		set.Add(words.ChildHTTP, func(ctx context.Context, up func()) error {
			if runs++; runs < 7 {
				panic("again")
			}
			return serve(ctx, up)
		})

		super, out, began := supervise.New(words.NewDice(1)), new(event.Effects), time.Now()
		now := func() words.Instant { return words.Instant(time.Since(began)) + 1 }
		super.Begin(out)
		for !super.IsUp(words.ChildHTTP) {
			for _, op := range out.Childs {
				set.Do(op)
			}
			out.Reset()
			due, resting := super.Due()
			timer := time.NewTimer(time.Hour)
			if resting {
				timer.Reset(time.Duration(due - now()))
			}
			select {
			case e := <-events:
				switch e := e.(type) {
				case event.ChildUp:
					super.Up(e.Child)
				case event.ChildDown:
					super.Down(now(), e.Child)
				}
			case <-timer.C:
			}
			timer.Stop()
			super.Tick(now(), out)
		}
		if got := set.Counts(words.ChildHTTP); got != (Counts{Started: 7, Died: 6, Panicked: 6}) || !super.Troubled(now()) {
			t.Fatalf("%+v, troubled %v", got, super.Troubled(now()))
		}
		for c := range words.Children {
			super.Stop(c, event.StopChild, out)
		}
		for _, op := range out.Childs {
			set.Do(op)
		}
		if err := set.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

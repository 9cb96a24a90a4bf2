package services

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
	"macronode/core/lifecycle/supervisor"
	"macronode/core/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a set with one service, its events and its log.
type fixture struct {
	*Set
	mu       sync.Mutex
	reported []event.Event
	log      bytes.Buffer
}

func newFixture(run Run) *fixture {
	s := new(fixture)
	s.Set = New(slog.New(slog.NewTextHandler(&s.log, nil)), func(e event.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reported = append(s.reported, e)
	})
	if run != nil {
		s.Add(types.ServiceHTTP, run)
	}
	return s
}

func (s *fixture) ask(what event.ServiceVerb) {
	s.Do(event.ServiceCommand{Service: types.ServiceHTTP, Verb: what})
}

// expect checks that the service has ended and reported exactly want.
func (s *fixture) expect(t *testing.T, want ...event.Event) {
	t.Helper()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.reported, want) {
		t.Fatalf("reported %v, not %v\n%s", s.reported, want, &s.log)
	}
}

func (s *fixture) counts(t *testing.T, want Counts) {
	t.Helper()
	if got := s.Counts(types.ServiceHTTP); got != want {
		t.Fatalf("%+v, not %+v\n%s", got, want, &s.log)
	}
}

func TestStopLetsServiceFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(func(ctx context.Context, up func()) error {
			up()
			up() // the second call is ignored
			<-ctx.Done()
			if Hard(ctx).Err() != nil {
				t.Error("killed where it was to be stopped")
			}
			return ctx.Err()
		})
		s.ask(event.StartService)
		synctest.Wait()
		if err := s.Wait(ended(t)); err == nil || err.Error() != "wait for child http: context canceled" {
			t.Fatal(err)
		}
		s.ask(event.StopService)
		s.expect(t, event.ServiceUp{Service: types.ServiceHTTP}, event.ServiceDown{Service: types.ServiceHTTP})
		s.counts(t, Counts{Started: 1, Stopped: 1})
	})
}

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestKillEndsContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(func(ctx context.Context, _ func()) error { <-ctx.Done(); return Hard(ctx).Err() })
		s.ask(event.StartService)
		s.ask(event.KillService)
		s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
		s.counts(t, Counts{Started: 1, Killed: 1})
	})
}

func TestKillEndsServiceThatIgnoresStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(func(ctx context.Context, _ func()) error {
			<-Hard(ctx).Done()
			if ctx.Err() == nil {
				t.Error("killed, and not stopped")
			}
			return nil
		})
		s.ask(event.StartService)
		s.ask(event.StopService)
		synctest.Wait()
		s.counts(t, Counts{Started: 1})
		s.ask(event.KillService)
		s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
		s.counts(t, Counts{Started: 1, Killed: 1})
		s.ask(event.KillService) // already ended
		s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
	})
}

// TestWaitReturnsForNamedServices: and does not wait for others.
func TestWaitReturnsForNamedServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(slog.New(slog.DiscardHandler), func(event.Event) {})
		for _, c := range []types.Service{types.ServiceHTTP, types.ServiceAdmin} {
			s.Add(c, func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil })
			s.Do(event.ServiceCommand{Service: c, Verb: event.StartService})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Do(event.ServiceCommand{Service: types.ServiceHTTP, Verb: event.StopService})
		if err := s.Wait(ctx, types.ServiceHTTP); err != nil {
			t.Errorf("for an ended service: %v", err)
		}
		if err := s.Wait(ctx, types.ServiceAdmin); err == nil {
			t.Error("for a running service")
		}
		s.Do(event.ServiceCommand{Service: types.ServiceAdmin, Verb: event.StopService})
		if err := s.Wait(t.Context()); err != nil {
			t.Errorf("for all: %v", err)
		}
	})
}

func TestEndWithoutCommandIsDeath(t *testing.T) {
	for _, c := range []struct {
		why string // as logged
		run Run
	}{
		{`"context canceled"`, func(context.Context, func()) error { return context.Canceled }},
		{`"port gone"`, func(context.Context, func()) error { return errors.New("port gone") }},
		{`"ended without a stop command"`, func(context.Context, func()) error { return nil }},
		{`"ended its goroutine"`, func(context.Context, func()) error { runtime.Goexit(); return nil }},
		{`"the service has no implementation"`, nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := newFixture(c.run)
			s.ask(event.StartService)
			s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
			s.counts(t, Counts{Started: 1, Died: 1})
			if !strings.Contains(s.log.String(), `level=ERROR msg="service failed" service=http err=`+c.why) {
				t.Fatalf("logged %s", &s.log)
			}
		})
	}
}

func TestPanicBecomesError(t *testing.T) {
	s := newFixture(func(context.Context, func()) error { panic("off by one") })
	s.ask(event.StartService)
	s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
	s.counts(t, Counts{Started: 1, Died: 1, Panicked: 1})
	for _, want := range []string{"off by one", "TestPanicBecomesError", "services_test.go"} {
		if !strings.Contains(s.log.String(), want) {
			t.Fatalf("%q is not in %s", want, &s.log)
		}
	}
}

func TestSecondStartIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil })
		s.ask(event.StartService)
		s.ask(event.StartService)
		s.ask(event.StopService)
		s.expect(t, event.ServiceDown{Service: types.ServiceHTTP})
		s.counts(t, Counts{Started: 1, Stopped: 1})
	})
}

// TestSupervisorRestartsService: a service dies until its seventh run. Each death is reported,
// each start is commanded, and the crash loop is noticed.
func TestSupervisorRestartsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.Event, 64)
		set := New(slog.New(slog.DiscardHandler), func(e event.Event) { events <- e })
		runs := 0
		serve := func(ctx context.Context, up func()) error { up(); <-ctx.Done(); return nil }
		set.Add(types.ServiceAdmin, serve)
		set.Add(types.ServiceSampler, serve)
		set.Add(types.ServiceHTTP, func(ctx context.Context, up func()) error {
			if runs++; runs < 7 {
				panic("again")
			}
			return serve(ctx, up)
		})

		super, out, began := supervisor.New(types.NewRand(1)), new(event.Effects), time.Now()
		now := func() types.Instant { return types.Instant(time.Since(began)) + 1 }
		super.Start(out)
		for !super.IsUp(types.ServiceHTTP) {
			for _, op := range out.ServiceCommands {
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
				case event.ServiceUp:
					super.Up(e.Service)
				case event.ServiceDown:
					super.Down(now(), e.Service)
				}
			case <-timer.C:
			}
			timer.Stop()
			super.Tick(now(), out)
		}
		if got := set.Counts(types.ServiceHTTP); got != (Counts{Started: 7, Died: 6, Panicked: 6}) || !super.CrashLoop(now()) {
			t.Fatalf("%+v, troubled %v", got, super.CrashLoop(now()))
		}
		for c := range types.NumServices {
			super.Stop(c, event.StopService, out)
		}
		for _, op := range out.ServiceCommands {
			set.Do(op)
		}
		if err := set.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

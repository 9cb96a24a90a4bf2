package server

import (
	"context"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
)

// The signals are real and sent to this process. A signal before Run is not lost.
func TestSignals(t *testing.T) {
	s := CatchSignals()
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	events, again, dump := make(chan event.Event), make(chan bool, 1), testkit.NewOutput("TestSignals")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	send(syscall.SIGTERM)
	go func() {
		ended <- s.Run(ctx, slog.New(slog.DiscardHandler), dump, func(e event.Event) { events <- e }, func() { again <- true })
	}()
	if e := <-events; e != (event.Signal{Kind: event.Drain}) {
		t.Fatal(e)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		send(sig)
		if e := <-events; e != (event.Signal{Kind: event.Abort}) {
			t.Fatal(e)
		}
	}
	send(syscall.SIGHUP)
	<-again
	send(syscall.SIGQUIT)
	<-dump.Done
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	send(syscall.SIGTERM) // the process is about to exit: it does not end by the signal
	time.Sleep(10 * time.Millisecond)
}

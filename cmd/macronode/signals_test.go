package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"macronode/core/event"
)

// written waits until what it is waiting for has been written to it.
type written struct {
	mu   sync.Mutex
	all  bytes.Buffer
	want string
	done chan struct{}
}

func expect(want string) *written { return &written{want: want, done: make(chan struct{})} }

// await returns a channel that is closed when want has been written. It panics with what was
// written instead if that takes a minute: a wrong text must not hang the test.
func (w *written) await(want string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.want, w.done = want, make(chan struct{})
	if strings.Contains(w.all.String(), want) {
		close(w.done)
		return w.done
	}
	done := w.done
	timer := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("%q was not written within a minute:\n%s", want, w)) })
	go func() {
		<-done
		timer.Stop()
	}()
	return done
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.all.String(), w.want)
	n, err := w.all.Write(p)
	if !before && strings.Contains(w.all.String(), w.want) {
		close(w.done)
	}
	return n, err
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// The signals are real, sent to this process; what was sent before Run is not lost.
func TestWhatSignalsMean(t *testing.T) {
	s := catchSignals()
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	said, again, dump := make(chan event.Event), make(chan bool, 1), expect("TestWhatSignalsMean")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	send(syscall.SIGTERM)
	go func() {
		ended <- s.Run(ctx, slog.New(slog.DiscardHandler), dump, func(e event.Event) { said <- e }, func() { again <- true })
	}()
	if e := <-said; e != (event.Signal{Kind: event.Drain}) {
		t.Fatal(e)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		send(sig)
		if e := <-said; e != (event.Signal{Kind: event.Abort}) {
			t.Fatal(e)
		}
	}
	send(syscall.SIGHUP)
	<-again
	send(syscall.SIGQUIT)
	<-dump.done
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

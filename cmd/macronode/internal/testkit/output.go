package testkit

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Output collects what a program writes. Done is closed when it contains the awaited text.
type Output struct {
	mu   sync.Mutex
	all  bytes.Buffer
	want string
	Done chan struct{}
}

// NewOutput returns an Output that awaits a text.
func NewOutput(want string) *Output { return &Output{want: want, Done: make(chan struct{})} }

// Await returns a channel that is closed when want has been written. It panics with what was
// written instead if that takes a minute: a wrong text must not hang the test.
func (w *Output) Await(want string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.want, w.Done = want, make(chan struct{})
	if strings.Contains(w.all.String(), want) {
		close(w.Done)
		return w.Done
	}
	done := w.Done
	timer := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("%q was not written within a minute:\n%s", want, w)) })
	go func() {
		<-done
		timer.Stop()
	}()
	return done
}

func (w *Output) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.all.String(), w.want)
	n, err := w.all.Write(p)
	if !before && strings.Contains(w.all.String(), w.want) {
		close(w.Done)
	}
	return n, err
}

func (w *Output) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

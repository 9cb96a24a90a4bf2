// Package metering records the requests that the node has served as usage.
//
//	request ends ──► Count ──► accounting.Meter ──each interval──► Flush ──► RecordMetered ──► journal
//	                                  ▲─────────── rejected ────────────┘
//
// A crash loses what was counted since the last flush. What is rejected for now is recorded later. If the outcome of
// a command is unknown, its usage is not recorded again: it is never counted twice.
package metering

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"macronode/adapters/hostclock"
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
)

// MaxRows is the number of rows between two flushes: one for each tenant, window, service, method and route. The requests
// of one more are lost.
const MaxRows = 1 << 14

// MaxFlushing is the number of commands that are recorded at the same time: each has the usage of one tenant.
const MaxFlushing = 8

// An Outcome is what becomes of a request that was counted.
type Outcome string

// The outcomes.
const (
	Recorded Outcome = "recorded" // durable
	Lost     Outcome = "lost"     // there was no room, or the node rejects it for ever
	Unknown  Outcome = "unknown"  // recorded or not
)

// Config is what a Recorder needs.
type Config struct {
	Window   time.Duration // length of a window of the node
	Interval time.Duration // between two flushes
	// Execute gives the node a command. It returns false if the node has no slot.
	Execute func(ctx context.Context, c command.Command) (event.Reply, bool)
	Ended   func(o Outcome, requests uint64) // counts requests with their outcome
	Log     *slog.Logger
}

// A Recorder counts requests and has the node record them. Count may be called concurrently.
type Recorder struct {
	Config
	mu      sync.Mutex
	meter   *accounting.Meter
	failing bool // the last flush lost usage, or may have
}

// New returns a recorder that has counted nothing.
func New(c Config) *Recorder {
	return &Recorder{Config: c, meter: accounting.NewMeter(c.Window, MaxRows)}
}

// Count counts a request that has ended.
func (m *Recorder) Count(r accounting.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.meter.Add(r) {
		m.Ended(Lost, 1)
	}
}

// Run records what was counted each interval until ctx ends. It ends after the flush that is in progress, which hard
// cancels.
func (m *Recorder) Run(ctx, hard context.Context) {
	for hostclock.Sleep(ctx, m.Interval) == nil {
		m.Flush(hard)
	}
}

// Flush records what was counted so far. If ctx ends, the outcome of the rest is unknown.
func (m *Recorder) Flush(ctx context.Context) {
	m.mu.Lock()
	all := m.meter.Take()
	m.mu.Unlock()
	var lost, unknown atomic.Uint64
	var g errgroup.Group
	g.SetLimit(MaxFlushing)
	for _, u := range all {
		g.Go(func() error {
			switch o, requests := m.record(ctx, u); o {
			case Lost:
				lost.Add(requests)
			case Unknown:
				unknown.Add(requests)
			case Recorded:
			}
			return nil
		})
	}
	_ = g.Wait()
	m.report(lost.Load(), unknown.Load())
}

// record records the usage of a tenant, or counts it again. It returns the outcome of so many of its requests.
func (m *Recorder) record(ctx context.Context, u *accounting.MeteredUsage) (o Outcome, requests uint64) {
	r, ok := m.Execute(ctx, &u.Command)
	o, requests = Recorded, u.Requests
	switch {
	case ok && r.Problem == event.None:
	case ok && r.Problem == event.OutcomeUnknown:
		o = Unknown
	case ok && (r.Problem == event.EventTooOld || r.Problem == event.UsageOverflow || r.Problem == event.BadRequest):
		o = Lost
	default: // later
		m.mu.Lock()
		o, requests = Lost, m.meter.Return(u)
		m.mu.Unlock()
	}
	if requests > 0 {
		m.Ended(o, requests)
	}
	return o, requests
}

// report logs a loss, once until a flush loses nothing.
func (m *Recorder) report(lost, unknown uint64) {
	if lost+unknown == 0 {
		m.failing = false
		return
	}
	if !m.failing {
		m.failing = true
		m.Log.Warn("metered usage is lost, or may be", "lost", lost, "unknown", unknown)
	}
}

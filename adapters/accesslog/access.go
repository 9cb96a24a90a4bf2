// Package accesslog writes one log line for each request. A request never waits for its line.
//
//	Note ──► within the limit per second? ──► bounded queue ──Run──► log
//	                └── no: left out, counted      └── full: lost, counted
//
// Each line has the number of lines that were left out or lost since the line before it.
package accesslog

import (
	"context"
	"log/slog"
	"math/bits"
	"sync"
	"time"
)

// The limits of a log.
const (
	Room = 1024 // queued lines; as many again may be in the process of being written
	Each = 500  // requests per second that all get a line, separately for successful and failed ones; beyond it, lines are sampled
)

// Counts has the number of lines by outcome since the start. Queued lines are not included.
type Counts struct {
	Written uint64
	LeftOut uint64 // left out by sampling
	Lost    uint64 // the queue was full
}

// A line is the log line of one request.
type line struct {
	at      time.Time
	missing uint64 // lines left out or lost since the previous line
	attrs   []slog.Attr
}

// Log queues lines and writes them while Run is active. It is safe for concurrent use. While it is
// off, it accepts no lines.
type Log struct {
	to   slog.Handler
	some chan struct{} // signals that a line is queued

	mu      sync.Mutex // guards all fields below; nothing blocks while it is held
	on      bool
	queue   []line
	second  int64
	seen    [2]uint64 // requests of this second: successful, failed
	missing uint64
	counts  Counts
}

// New returns a log that is off. Lines are passed to the handler regardless of its level.
func New(to slog.Handler) *Log {
	return &Log{to: to, some: make(chan struct{}, 1), queue: make([]line, 0, Room)}
}

// Turn switches the log on or off.
func (l *Log) Turn(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = on
}

// Note queues the line of a request that has just ended. failed states that the node or an upstream caused a
// failure. Note never blocks. It calls fields only if the line passes sampling.
func (l *Log) Note(failed bool, fields func() []slog.Attr) {
	now := time.Now()
	if !l.takes(now, failed) {
		return
	}
	attrs := fields()
	l.mu.Lock()
	room := len(l.queue) < Room
	if room {
		l.queue = append(l.queue, line{now, l.missing, attrs})
		l.missing = 0
	} else {
		l.missing++
		l.counts.Lost++
	}
	l.mu.Unlock()
	if room {
		select {
		case l.some <- struct{}{}:
		default:
		}
	}
}

// takes reports whether a request passes sampling. In each second the first Each requests pass, then
// one of two, then one of four, and so on. Each step covers as many requests as all steps before it.
func (l *Log) takes(now time.Time, failed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return false
	}
	if s := now.Unix(); s != l.second {
		l.second, l.seen = s, [2]uint64{}
	}
	kind := 0
	if failed {
		kind = 1
	}
	n := l.seen[kind]
	l.seen[kind]++
	if n&(1<<bits.Len64(n/Each)-1) == 0 {
		return true
	}
	l.missing++
	l.counts.LeftOut++
	return false
}

// Run writes lines until ctx ends. Then it writes the queued lines and returns.
func (l *Log) Run(ctx context.Context) error {
	spare := make([]line, 0, Room)
	for {
		select {
		case <-l.some:
			spare = l.write(spare)
		case <-ctx.Done():
			l.write(spare)
			return nil
		}
	}
}

// write writes all queued lines. spare becomes the queue for new lines; the old queue is returned.
func (l *Log) write(spare []line) []line {
	l.mu.Lock()
	all := l.queue
	l.queue = spare[:0]
	l.mu.Unlock()
	for i := range all {
		r := slog.NewRecord(all[i].at, slog.LevelInfo, "request", 0)
		r.AddAttrs(all[i].attrs...)
		if n := all[i].missing; n > 0 {
			r.AddAttrs(slog.Uint64("left_out", n))
		}
		_ = l.to.Handle(context.Background(), r) // a failure to write the log cannot be logged
		all[i] = line{}
	}
	l.mu.Lock()
	l.counts.Written += uint64(len(all))
	l.mu.Unlock()
	return all
}

// Counts returns the number of lines by outcome.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Waiting returns the number of queued lines, and the maximum.
func (l *Log) Waiting() (depth, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), Room
}

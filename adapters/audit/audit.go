// Package audit records each use of an API key for a change, and each rejection: the key, the
// operation, the time and the decision id. The file contains no secret and no body.
//
//	Note ──► bounded queue ──Run──► audit.log ──full──► audit.log.1 ──► … ──► removed
//	  ├── full: lost, counted, and recorded in the file at their position: {"lost":n}
//	  └── many rejections of a tenant: omitted, counted, and recorded in its next one: "omitted":n
//
// The file is for investigations. The durable record of every change is the journal, whose
// records have caller and outcome. Therefore no request waits for this file. It is synced when
// it is full and at shutdown, not with every line.
package audit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/rejection"
)

// Limits has the limits of a log.
type Limits struct {
	Queue int           // queued lines; as many again may be in the process of being written
	Size  int64         // maximum bytes of one file
	Keep  int           // rotated files to keep, at least one
	Every time.Duration // maximum time that a line is queued while the disk accepts writes

	Rejected rejection.Rate // lines of rejected requests of a tenant; a burst of 0: no limit
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{Queue: 4096, Size: 64 << 20, Keep: 8, Every: time.Second, Rejected: rejection.Rate{Burst: 1000, Every: time.Second}}
}

// Counts has the number of lines by outcome since the start. Queued lines are not included.
type Counts struct {
	Written uint64
	Lost    uint64 // dropped, not in any file
	Omitted uint64 // left out: their tenant had too many rejected requests
	Failed  uint64 // failed operations on the file
}

// Log queues lines and writes them while Run is active. Note, Counts and Waiting are safe for
// concurrent use.
type Log struct {
	limits Limits
	log    *slog.Logger
	some   chan struct{} // signals that a line is queued
	half   chan struct{} // signals that the queue is half full

	mu       sync.Mutex // guards the next four fields; nothing blocks while it is held
	queue    []Line
	over     uint64 // lines lost after the last queued one
	ended    bool
	rejected rejectedShares

	written, lost, omitted, failed atomic.Uint64

	pen     pen // this and all fields below are used only by Run
	batch   batch
	failing bool
}

// New returns a log in a directory. Run creates the file.
func New(dir string, limits Limits, log *slog.Logger) *Log {
	return &Log{limits: limits, log: log.With("file", name), some: make(chan struct{}, 1), half: make(chan struct{}, 1),
		queue: make([]Line, 0, limits.Queue), batch: batch{lines: make([]Line, 0, limits.Queue)},
		pen: pen{dir: dir, limits: limits, open: open}}
}

// Note queues a line with the current time. It never blocks. If the queue is full or Run has ended,
// the line is lost and counted. The line of a rejected request is omitted and counted if its tenant has too many.
func (l *Log) Note(line Line) {
	line.at = time.Now()
	line.cut()
	l.mu.Lock()
	if line.isLimited(l.limits.Rejected) && !l.rejected.of(line.Tenant).accept(&line, l.limits.Rejected) {
		l.mu.Unlock()
		l.omitted.Add(1)
		return
	}
	room := !l.ended && len(l.queue) < l.limits.Queue
	if room {
		l.queue = append(l.queue, line)
	} else {
		l.over++
	}
	n := len(l.queue)
	l.mu.Unlock()
	switch {
	case !room:
		l.lost.Add(1)
	case n == 1:
		poke(l.some)
	case n == l.limits.Queue/2:
		poke(l.half)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // an earlier signal is pending
	}
}

// Counts returns the number of lines by outcome.
func (l *Log) Counts() Counts {
	return Counts{Written: l.written.Load(), Lost: l.lost.Load(), Omitted: l.omitted.Load(), Failed: l.failed.Load()}
}

// Run writes lines until ctx ends, and then the queued ones. It is called once. A failed write is
// logged, counted and retried; Run does not return it as an error.
func (l *Log) Run(ctx context.Context) error {
	l.flush() // creates the file
	for l.wait(ctx) {
		l.flush()
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.flush()
	if n := uint64(l.batch.left() + len(l.queue)); n > 0 {
		l.lost.Add(n)
		l.log.Error("audit lines lost at shutdown: the disk does not accept them", "lines", n)
	}
	if err := l.pen.lay(); err != nil {
		l.fail(err)
	}
	return nil
}

// wait blocks until lines are due to be written. It returns false if ctx has ended.
func (l *Log) wait(ctx context.Context) bool {
	if l.batch.empty() {
		select {
		case <-l.some:
		case <-ctx.Done():
			return false
		}
	}
	due := time.NewTimer(l.limits.Every)
	defer due.Stop()
	select {
	case <-due.C:
	case <-l.half:
	case <-ctx.Done():
		return false
	}
	return true
}

// flush writes the lines of a failed write, and then the queue.
func (l *Log) flush() {
	if l.finish() {
		l.take()
		l.finish()
	}
}

// finish writes the batch. It returns false if a write fails.
func (l *Log) finish() bool {
	for {
		n, err := l.pen.write(l.batch.write(min(chunk, l.limits.Size)))
		l.written.Add(l.batch.wrote(n))
		if err != nil {
			l.fail(err)
			return false
		}
		if l.batch.empty() {
			break
		}
	}
	if l.failing {
		l.failing = false
		l.log.Warn("audit file writable again", "lost", l.lost.Load())
	}
	return true
}

// take moves the queue to the batch, which must be empty.
func (l *Log) take() {
	clear(l.batch.lines) // releases their strings
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch.lines, l.queue = l.queue, l.batch.lines[:0]
	l.batch.done, l.batch.over, l.over = 0, l.over, 0
}

// fail counts a failure, and logs the first one after a success.
func (l *Log) fail(err error) {
	l.failed.Add(1)
	if !l.failing {
		l.failing = true
		l.log.Error("audit file not writable: lines are queued, and dropped and counted when the queue is full", "err", err)
	}
}

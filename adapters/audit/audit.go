// Package audit writes down who used an API key to change something, or was refused:
// who, what, when, and the decision's id. No secret and no body is in it.
//
//	Note ──► queue, bounded ──Run──► audit.log ──full──► audit.log.1 ──► … ──► gone
//	  └── no room: lost, counted, and said in the file where they would stand: {"lost":n}
//
// It is for people who ask who did it. The durable truth of every change is the
// journal, whose records have caller and outcome: so no request waits for this file,
// and it is synced when it is full and when it ends, not with every line.
package audit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are how much a log takes.
type Limits struct {
	Queue int           // lines that wait; as many again may be on their way to the file
	Size  int64         // bytes of one file
	Keep  int           // older files that are kept, at least one
	Every time.Duration // a line waits no longer, while the disk takes it
}

// DefaultLimits are those of who wants nothing else.
func DefaultLimits() Limits {
	return Limits{Queue: 4096, Size: 64 << 20, Keep: 8, Every: time.Second}
}

// Counts are what became of lines so far. The rest is on its way.
type Counts struct {
	Written uint64
	Lost    uint64 // in no file, and never will be
	Failed  uint64 // tries that the disk refused
}

// Log takes lines from anyone, and writes them while it runs.
type Log struct {
	limits Limits
	log    *slog.Logger
	some   chan struct{} // there is a line
	half   chan struct{} // there is half a queue

	mu    sync.Mutex // of the next three; nobody waits for anything while it is held
	queue []Line
	over  uint64 // lines that were lost after those in the queue
	ended bool

	written, lost, failed atomic.Uint64

	pen     pen // from here on, Run's own
	batch   batch
	failing bool
}

// New is a log in a directory. Its file is made when it runs.
func New(dir string, limits Limits, log *slog.Logger) *Log {
	return &Log{limits: limits, log: log.With("file", name), some: make(chan struct{}, 1), half: make(chan struct{}, 1),
		queue: make([]Line, 0, limits.Queue), batch: batch{lines: make([]Line, 0, limits.Queue)},
		pen: pen{dir: dir, limits: limits, open: open}}
}

// Note takes a line, and the time. It never waits: where there is no room, or Run has
// ended, the line is lost and counted.
func (l *Log) Note(line Line) {
	line.at = time.Now()
	line.cut()
	l.mu.Lock()
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
	default: // it has not been heard yet
	}
}

// Counts are what became of lines so far.
func (l *Log) Counts() Counts {
	return Counts{Written: l.written.Load(), Lost: l.lost.Load(), Failed: l.failed.Load()}
}

// Run writes until ctx ends, and then what is left. It is called once. What the disk
// refuses is said to the operator, counted, and tried again: it is no error of Run.
func (l *Log) Run(ctx context.Context) error {
	l.flush() // so that the file is there
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

// wait is over when it is time to write something; false when ctx has ended.
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

// flush writes what the disk refused before, then the queue.
func (l *Log) flush() {
	if l.finish() {
		l.take()
		l.finish()
	}
}

// finish writes the batch; false when the disk refuses.
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

// take makes the queue the batch, which is empty.
func (l *Log) take() {
	clear(l.batch.lines) // their texts
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch.lines, l.queue = l.queue, l.batch.lines[:0]
	l.batch.done, l.batch.over, l.over = 0, l.over, 0
}

// fail says once that the disk refuses.
func (l *Log) fail(err error) {
	l.failed.Add(1)
	if !l.failing {
		l.failing = true
		l.log.Error("audit file not writable: lines are queued, and dropped and counted when the queue is full", "err", err)
	}
}

// Package accesslog writes a line for each request into the log, and has none wait for it.
//
//	Note ──► more than so many this second? ──► ring, bounded ──Run──► log
//	                └── left out, counted          └── full: lost, counted
//
// Whoever is not written is told of by number: the next line says how many are missing
// before it.
package accesslog

import (
	"context"
	"log/slog"
	"math/bits"
	"sync"
	"time"
)

// How much a log takes.
const (
	Room = 1024 // lines that wait; as many again may be on their way out
	Each = 500  // requests a second that went well, and as many that failed, of which each has its line; of more ever fewer have one
)

// Counts are what became of requests so far. The rest is on its way.
type Counts struct {
	Written uint64
	LeftOut uint64 // there were too many in a second
	Lost    uint64 // there was no room
}

// A line is what is said of one request.
type line struct {
	at      time.Time
	missing uint64 // before it, since the one before
	attrs   []slog.Attr
}

// Log takes lines from anyone, and writes them while it runs. While it is not on it takes
// none.
type Log struct {
	to   slog.Handler
	some chan struct{} // there is a line, or it ends

	mu      sync.Mutex // of all below; nobody waits for anything while it is held
	on      bool
	queue   []line
	second  int64
	seen    [2]uint64 // in this second: those that went well, those that failed
	missing uint64
	counts  Counts
}

// New is a log that is not on. Where lines go, they are written at any level.
func New(to slog.Handler) *Log {
	return &Log{to: to, some: make(chan struct{}, 1), queue: make([]line, 0, Room)}
}

// Turn has lines taken, or not, from now on.
func (l *Log) Turn(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = on
}

// Note takes the line of a request that has just ended; failed: by a fault of ours, or of
// what is behind us. It never waits. What says the line is asked if it will be written.
func (l *Log) Note(failed bool, says func() []slog.Attr) {
	now := time.Now()
	if !l.takes(now, failed) {
		return
	}
	attrs := says()
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

// takes reports that a request is one of those that are written. In a second the first
// Each are; from then on one of two, of four …, each for as many as came before.
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

// Run writes lines until ctx ends, and then those that are there.
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

// write writes what waits. Its room is spare for what comes meanwhile.
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
		_ = l.to.Handle(context.Background(), r) // where the log cannot be written, nobody can be told
		all[i] = line{}
	}
	l.mu.Lock()
	l.counts.Written += uint64(len(all))
	l.mu.Unlock()
	return all
}

// Counts are what became of requests.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Waiting is how many lines wait, and how many may.
func (l *Log) Waiting() (depth, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), Room
}

package adminapi

import (
	"log/slog"
	"sync"
	"time"
)

// rejectionPause is the least time between two log lines about requests that were rejected for one
// reason, which every caller of the listener can cause.
const rejectionPause = 10 * time.Second

// A rejectionLog logs rejected requests, a line for many of them: for the first one, and then for
// one that comes after the pause, with the number of those between.
type rejectionLog struct {
	text string // the line

	mu     sync.Mutex
	next   time.Time // no line before
	silent int       // requests since the last line
}

// note logs a rejected request, or counts it for the next line.
func (g *rejectionLog) note(now time.Time, log *slog.Logger, fields ...any) {
	g.mu.Lock()
	if now.Before(g.next) {
		g.silent++
		g.mu.Unlock()
		return
	}
	silent := g.silent
	g.next, g.silent = now.Add(rejectionPause), 0
	g.mu.Unlock()
	log.Warn(g.text, append(fields, "not_logged", silent)...)
}

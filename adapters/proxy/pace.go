package proxy

import (
	"sync"
	"time"
)

// bufferSize is the number of bytes that are read and written at once.
const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A pace is a time budget for a client that sends or reads a stream. Each byte adds to it,
// waiting uses it up, and grace is its maximum. A client may be slow for a while, but not slower
// than the rate in the long run, however long the stream is.
type pace struct {
	rate  int64 // bytes per second
	grace time.Duration
	left  time.Duration
	since time.Time
}

func (p *Proxy) newPace() pace {
	return pace{rate: p.config.MinBytesPerSecond, grace: p.config.Grace, left: p.config.Grace}
}

// begin starts a wait and returns its deadline.
func (p *pace) begin() time.Time {
	p.since = time.Now()
	return p.since.Add(p.left)
}

// end ends a wait in which n bytes were moved.
func (p *pace) end(n int) time.Time {
	now := time.Now()
	p.left = min(p.grace, p.left-now.Sub(p.since)+time.Duration(n)*time.Second/time.Duration(p.rate))
	return now
}

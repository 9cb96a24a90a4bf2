package proxy

import (
	"sync"
	"time"
)

// size of what is read and written at once.
const size = 32 << 10

var buffers = sync.Pool{New: func() any { return new([size]byte) }}

// A pace is the patience with a client that sends or takes a stream: each byte brings
// some, waiting uses it up, and there is never more than the grace. So a client may be
// slow for a while, and no slower than the rate for long, however long the stream.
type pace struct {
	rate  int64 // bytes a second
	grace time.Duration
	left  time.Duration
	since time.Time
}

func (p *Proxy) pace() pace {
	return pace{rate: p.config.Rate, grace: p.config.Grace, left: p.config.Grace}
}

// begin is when a wait that begins now must have ended.
func (p *pace) begin() time.Time {
	p.since = time.Now()
	return p.since.Add(p.left)
}

// end counts a wait that brought n bytes.
func (p *pace) end(n int) time.Time {
	now := time.Now()
	p.left = min(p.grace, p.left-now.Sub(p.since)+time.Duration(n)*time.Second/time.Duration(p.rate))
	return now
}

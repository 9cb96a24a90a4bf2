package httpserver

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// MaxIdleFrames is how many frames without progress a client of HTTP/2 may send at once, and
// IdleFramesPerSecond how many more each second. Then its connection is closed. Bodies and
// responses are progress: they pay for the frames around them.
const (
	MaxIdleFrames       = 1000
	IdleFramesPerSecond = 100
)

// What frames cost. A byte of a body pays 1 in either direction, so only frames with less
// than frameCost bytes cost something.
const (
	frameCost   = 64
	responsePay = 4 * frameCost // for a response header: of the request, and what a client sends behind it
	refusalCost = 8 * frameCost // for a request above a limit, beside those of its header and its reset
	maxCredit   = MaxIdleFrames * frameCost
)

// Frames of HTTP/2, RFC 9113.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePushPromise  = 0x5
	frameReset        = 0x3
	frameContinuation = 0x9

	flagEndStream = 0x1
	flagPadded    = 0x8
	frameHead     = 9
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

var errFlood = errors.New("httpserver: too many HTTP/2 frames without progress")

// A frameScan follows the frames in a stream of bytes.
type frameScan struct {
	head [frameHead + 1]byte // of the frame that is read, and the length of its padding
	have int
	skip int // bytes that are left of its payload
}

// A frame is the header of a frame.
type frame struct {
	kind    byte
	flags   byte
	stream  uint32
	payload int // bytes without padding
}

// endsStream reports whether its sender sends no more in its stream.
func (f frame) endsStream() bool {
	switch f.kind {
	case frameData, frameHeaders:
		return f.flags&flagEndStream != 0
	}
	return f.kind == frameReset
}

// follow reports each frame once its header is read.
func (s *frameScan) follow(b []byte, each func(frame)) {
	for len(b) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			s.skip -= n
			b = b[n:]
			continue
		}
		s.head[s.have] = b[0]
		s.have++
		b = b[1:]
		if s.have < frameHead {
			continue
		}
		kind, payload := s.head[3], int(binary.BigEndian.Uint32(s.head[:4])>>8)
		left := payload
		if kind == frameData && s.head[4]&flagPadded != 0 && payload > 0 {
			if s.have == frameHead {
				continue // its first byte is the length of the padding
			}
			left--
			payload = max(0, left-int(s.head[frameHead]))
		}
		s.have, s.skip = 0, left
		each(frame{kind, s.head[4], binary.BigEndian.Uint32(s.head[5:frameHead]) &^ (1 << 31), payload})
	}
}

// A frameGuard is a connection of HTTP/2 within TLS that ends when its client sends too many
// frames without progress. It reports when streams begin and end.
type frameGuard struct {
	*tls.Conn
	below   *conn
	flooded func()
	now     func() time.Time

	in     frameScan // of the reader, as what follows
	credit int64
	at     time.Time // until when the seconds are credited
	over   bool

	out    frameScan    // of the writer, which is one at a time, as what follows
	ended  []uint32     // streams that end with what is written
	earned atomic.Int64 // by what was written, until the reader takes it
	cut    atomic.Bool  // the reader is to end the connection: a malformed request above the limit of its peer was rejected
}

func newFrameGuard(c *tls.Conn, flooded func(), now func() time.Time) *frameGuard {
	return &frameGuard{Conn: c, below: below(c), flooded: flooded, now: now, credit: maxCredit, at: now()}
}

func (g *frameGuard) Read(b []byte) (int, error) {
	if g.over || g.cut.Load() {
		return 0, errFlood
	}
	n, err := g.Conn.Read(b)
	g.in.follow(b[:n], func(f frame) {
		g.credit -= costOf(f.kind, f.payload)
		switch {
		case f.kind == frameHeaders && !g.below.of.beginStream(g.below, f.stream):
			g.over = true
		case f.kind == frameReset:
			g.below.of.endStreams(g.below, f.stream)
		}
	})
	if g.credit < 0 {
		g.refill()
	}
	g.credit = min(g.credit+g.earned.Swap(0)-g.below.refused.Swap(0)*refusalCost, maxCredit)
	if g.over = g.over || g.credit < 0; g.over {
		callHook(g.flooded)
		return 0, errFlood
	}
	return n, err
}

// refill credits the time since it was last called.
func (g *frameGuard) refill() {
	now := g.now()
	const full = MaxIdleFrames * time.Second / IdleFramesPerSecond
	g.credit += int64(min(now.Sub(g.at), full)) * maxCredit / int64(full)
	g.at = now
}

func (g *frameGuard) Write(b []byte) (int, error) {
	paid := int64(0)
	g.out.follow(b, func(f frame) {
		paid += payOf(f.kind, f.payload)
		if f.endsStream() {
			g.ended = append(g.ended, f.stream)
		}
	})
	g.earned.Add(paid)
	n, err := g.Conn.Write(b)
	if len(g.ended) > 0 {
		for range g.below.of.answerStreams(g.below, g.ended...) {
			if !g.below.reject() {
				g.cut.Store(true) // no response to it says that the connection ends
			}
		}
		g.ended = g.ended[:0]
	}
	return n, err
}

// costOf is what a frame of the client costs; negative: it pays. Frames of control cost more
// the longer they are: each value of settings is work.
func costOf(kind byte, payload int) int64 {
	switch kind {
	case frameData:
		return int64(frameCost - payload)
	case frameHeaders, frameContinuation, framePushPromise: // their length has a limit of its own
		return frameCost
	}
	return int64(frameCost + payload)
}

// payOf is what a frame of the server pays. A reset costs: the client has sent what it must not.
func payOf(kind byte, payload int) int64 {
	switch kind {
	case frameData:
		return int64(payload)
	case frameHeaders:
		return responsePay
	case frameReset:
		return -frameCost
	}
	return 0
}

// UnencryptedNetConn returns the connection itself: net/http then serves HTTP/2 on it, as on a
// connection without TLS. Its ConnectionState still is that of TLS.
func (g *frameGuard) UnencryptedNetConn() net.Conn { return g }

// readPreface reads the client's preface, which net/http expects to be read.
func (g *frameGuard) readPreface(wait time.Duration) bool {
	var preface [len(clientPreface)]byte
	_ = g.SetReadDeadline(time.Now().Add(wait)) // an error shows when it is read
	_, err := io.ReadFull(g.Conn, preface[:])
	_ = g.SetReadDeadline(time.Time{})
	return err == nil && bytes.Equal(preface[:], []byte(clientPreface))
}

// guardedFrames accepts connections for a server whose connections of HTTP/2 have a frameGuard.
// net/http accepts no wrapped tls.Conn, but hands one over to its HTTP/2 server through
// TLSNextProto, which it fills before it accepts.
type guardedFrames struct {
	net.Listener
	of     *Server
	server *http.Server
	once   sync.Once
}

func (l *guardedFrames) Accept() (net.Conn, error) {
	l.once.Do(func() {
		serve := l.server.TLSNextProto["unencrypted_http2"]
		l.server.TLSNextProto["h2"] = func(s *http.Server, c *tls.Conn, h http.Handler) {
			if g := newFrameGuard(c, l.of.hooks.Flooded, l.of.now); g.readPreface(l.of.config.Header) {
				serve(s, tls.Client(g, nil), h)
			}
		}
	})
	return l.Listener.Accept()
}

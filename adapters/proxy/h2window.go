package proxy

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// closeTLSWithin limits how long the end of a TLS connection may be written.
const closeTLSWithin = 250 * time.Millisecond

// A windowConn is an HTTP/2 connection to an endpoint that counts both windows of the connection, because
// golang.org/x/net does not report them. It is above TLS.
type windowConn struct {
	net.Conn
	below   net.Conn     // below TLS
	window  atomic.Int64 // bytes of request bodies that the endpoint takes
	receive atomic.Int64 // bytes of responses that the endpoint may send
	in, out h2Frames     // of the reader and of the writer, which are one at a time each
}

// firstWindow is the window of a connection in each direction before its receiver opens it further
// (RFC 9113, 6.9.2).
const firstWindow = 1<<16 - 1

func newWindowConn(c, below net.Conn) *windowConn {
	w := &windowConn{Conn: c, below: below, out: h2Frames{skip: len(http2.ClientPreface)}}
	w.window.Store(firstWindow)
	w.receive.Store(firstWindow)
	return w
}

func (c *windowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.follow(p[:n], func(f h2Frame) {
		switch {
		case f.kind == http2.FrameWindowUpdate && f.stream == 0:
			c.window.Add(f.increment)
		case f.kind == http2.FrameData:
			c.receive.Add(-int64(f.length))
		}
	})
	return n, err
}

func (c *windowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.follow(p[:n], func(f h2Frame) {
		switch {
		case f.kind == http2.FrameWindowUpdate && f.stream == 0:
			c.receive.Add(f.increment)
		case f.kind == http2.FrameData:
			c.window.Add(-int64(f.length))
		}
	})
	return n, err
}

// Close closes the connection. An endpoint that does not read must not delay it.
func (c *windowConn) Close() error {
	if c.Conn == c.below {
		return c.Conn.Close()
	}
	force := time.AfterFunc(closeTLSWithin, func() { _ = c.below.Close() }) // its error changes nothing
	defer force.Stop()
	return c.Conn.Close()
}

// A h2Frame is the header of a frame.
type h2Frame struct {
	kind      http2.FrameType
	stream    uint32
	length    int   // bytes of its payload, which for data count against the window
	increment int64 // of a window
}

const (
	h2FrameHead  = 9
	h2WindowSize = 4 // bytes of an increment
)

// h2Frames follows the frames in a stream of bytes.
type h2Frames struct {
	head [h2FrameHead + h2WindowSize]byte // of the frame that is read, and the increment of a window
	have int
	skip int // bytes that are left of its payload
}

// follow reports each frame once its header was read, and the increment of a window.
func (s *h2Frames) follow(b []byte, each func(h2Frame)) {
	for len(b) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			s.skip -= n
			b = b[n:]
			continue
		}
		n := copy(s.head[s.have:s.wanted()], b)
		s.have += n
		b = b[n:]
		if s.have < s.wanted() {
			continue
		}
		f := h2Frame{kind: http2.FrameType(s.head[3]), stream: binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31), length: s.length()}
		if s.have > h2FrameHead {
			f.increment = int64(binary.BigEndian.Uint32(s.head[h2FrameHead:]) &^ (1 << 31))
		}
		s.skip = f.length - (s.have - h2FrameHead)
		s.have = 0
		each(f)
	}
}

// length returns the bytes of the payload of the frame that is read.
func (s *h2Frames) length() int { return int(binary.BigEndian.Uint32(s.head[:]) >> 8) }

// wanted returns how many bytes of the frame that is read must be stored.
func (s *h2Frames) wanted() int {
	if s.have >= h2FrameHead && http2.FrameType(s.head[3]) == http2.FrameWindowUpdate && s.length() == h2WindowSize {
		return h2FrameHead + h2WindowSize
	}
	return h2FrameHead
}

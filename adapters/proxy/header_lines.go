package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
)

// errLineEnds is about a header that net/http would read: it takes LF alone for the end of a line as
// well. If a service copies a value with LF into its header, what follows would be a field of its
// own. A service that ends all lines with LF is read.
var errLineEnds = errors.New("proxy: some lines of the response's header end with CRLF, and others with LF")

// headerLines follows the header of a response of HTTP/1.1, after those of interim responses.
type headerLines struct {
	first  [len("HTTP/1.1 101")]byte // the begin of the first line
	have   int                       // bytes of it
	length int                       // bytes of the current line
	last   byte                      // of the current line
	count  int                       // lines that have ended
	isLF   bool                      // the first one ended with LF
	isOver bool
}

// follow reads on. It returns errLineEnds if a line ends in another way than the first one.
func (h *headerLines) follow(b []byte) error {
	for len(b) > 0 && !h.isOver {
		n := bytes.IndexByte(b, '\n')
		part := b
		if n >= 0 {
			part = b[:n]
		}
		if h.count == 0 {
			h.have += copy(h.first[h.have:], part)
		}
		if h.length += len(part); len(part) > 0 {
			h.last = part[len(part)-1]
		}
		if n < 0 {
			return nil
		}
		b = b[n+1:]
		if err := h.endLine(); err != nil {
			return err
		}
	}
	return nil
}

// endLine ends the current line. After an empty one, the header is over, or that of an interim
// response.
func (h *headerLines) endLine() error {
	isLF := h.last != '\r'
	switch {
	case h.count == 0:
		h.isLF = isLF
	case h.isLF != isLF:
		return errLineEnds
	case h.length == 0 || !isLF && h.length == 1:
		code := string(h.first[len("HTTP/1.1 "):])
		*h = headerLines{isOver: code[0] != '1' || code == "101"}
		return nil
	}
	h.count, h.length, h.last = h.count+1, 0, 0
	return nil
}

// A headerConn is a connection to an endpoint whose Read fails at a header with errLineEnds. It is
// for http.Transport, which does not show what it reads.
type headerConn struct {
	net.Conn
	mu    sync.Mutex
	lines headerLines
}

// expect begins a request: what is read from now on begins with the header of its response.
func (c *headerConn) expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = headerLines{}
}

func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrong := c.lines.follow(p[:n]); wrong != nil {
		return 0, wrong
	}
	return n, err
}

// CloseWrite closes the sending side, if the connection supports it.
func (c *headerConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// withHeaderConn returns a dial function whose connections check headers.
func withHeaderConn(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &headerConn{Conn: conn}, nil
	}
}

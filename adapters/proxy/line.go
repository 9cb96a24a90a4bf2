package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"syscall"
	"time"
)

const (
	headerMost = 64 << 10 // bytes of the header of an answer
	earlyMost  = 5        // answers before the answer
	outMost    = 8 << 10  // bytes of a request whose room is kept
)

var (
	errHeader = errors.New("proxy: the header of an answer is too large")
	errEarly  = errors.New("proxy: too many answers before the answer")
	errName   = errors.New("proxy: a field of an answer has a name that is none")
)

// A line is a connection to an endpoint for requests without a body: whoever asks writes
// the request and reads the answer himself, so that nobody else has to be woken for it.
// What goes over one and what does not, send says.
type line struct {
	conn   net.Conn
	of     *lines
	in     *bufio.Reader // of this line's Read
	header http.Header   // of the request, empty but while that is written
	out    []byte        // the request, as it was written
	room   int64         // bytes of the header that may still come
	keeps  bool          // what comes is kept in said
	said   []byte        // a header that did not come at once
	since  time.Time     // when it was put aside
	used   bool          // it was kept: the endpoint may end it just when it is asked
	raw    syscall.RawConn
	look   func(fd uintptr) bool
	silent bool // what look saw
}

// Read reads no more than there is room for.
func (l *line) Read(p []byte) (int, error) {
	if l.room <= 0 {
		return 0, errHeader
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.room)])
	l.room -= int64(n)
	if l.keeps {
		l.said = append(l.said, p[:n]...)
	}
	return n, err
}

func (l *line) close() { _ = l.conn.Close() } // its error changes nothing

// quiet reports that the endpoint has neither ended a kept line nor said what nobody asked.
func (l *line) quiet() bool {
	return l.raw == nil || l.raw.Read(l.look) == nil && l.silent
}

// straight reports that a request may go over a line.
func (t *trip) straight(to *endpoint) bool {
	_, expects := t.r.Header["Expect"]
	known := t.lines[to.Host] != nil // one of a later configuration is not
	return known && t.body == nil && to.Scheme == "http" && !expects && (t.r.Method == http.MethodGet || t.r.Method == http.MethodHead)
}

// ask asks an endpoint over a line. One that was kept may end just then: its endpoint is
// asked once more over a new one, for a read may be repeated.
func (t *trip) ask(to *endpoint) (*http.Response, error) {
	of := t.lines[to.Host]
	l, err := of.take(t.ctx)
	if err != nil {
		return nil, err
	}
	res, begun, err := t.along(l, to)
	if err == nil || begun || !l.used || t.ctx.Err() != nil {
		return res, err
	}
	if l, err = of.open(t.ctx); err != nil {
		return nil, err
	}
	res, _, err = t.along(l, to)
	return res, err
}

// along asks over one line; begun: something of an answer came.
func (t *trip) along(l *line, to *endpoint) (res *http.Response, begun bool, err error) {
	stop := context.AfterFunc(t.ctx, l.close)
	l.out = t.written(l.out[:0], to, t.fill(l.header, t.r, t.left()))
	clear(l.header)
	l.room = headerMost
	_, err = l.conn.Write(l.out)
	if cap(l.out) > outMost {
		l.out = nil
	}
	if err == nil {
		_, err = l.in.Peek(1)
	}
	if begun = err == nil; begun {
		res, err = t.read(l)
	}
	if err != nil {
		stop()
		l.close()
		return nil, begun, err
	}
	l.room = 1<<63 - 1
	res.Body = &reply{ReadCloser: res.Body, line: l, stop: stop, last: res.Close || res.StatusCode < http.StatusOK}
	return res, true, nil
}

// read reads the header of the answer, and gives on what is said before it.
func (t *trip) read(l *line) (*http.Response, error) {
	for range earlyMost + 1 {
		res, err := l.answer(t.r)
		if err != nil || res.StatusCode/100 != 1 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
		l.room = headerMost
		if err := t.early(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
			return nil, err
		}
	}
	return nil, errEarly
}

// answer reads one header. net/http drops Connection where it says close, and with it which
// fields are of this connection alone: they are looked up in what was read.
func (l *line) answer(r *http.Request) (*http.Response, error) {
	raw, _ := l.in.Peek(l.in.Buffered()) // what is there is no error
	if l.keeps = !bytes.Contains(raw, []byte("\n\r\n")); l.keeps {
		l.said = append(l.said, raw...)
	}
	res, err := http.ReadResponse(l.in, r)
	if l.keeps {
		raw, l.keeps, l.said = l.said, false, nil
	}
	if err != nil {
		return nil, err
	}
	if res.Close && res.ProtoAtLeast(1, 1) {
		again := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw)))
		_, _ = again.ReadLine()
		if h, err := again.ReadMIMEHeader(); err == nil && len(h["Connection"]) > 0 {
			res.Header["Connection"] = h["Connection"]
		}
	}
	return res, spelled(res)
}

// spelled says of an answer whether its fields are what they seem: net/http takes a blank before
// a colon for a part of the name, and others do not.
func spelled(res *http.Response) error {
	for name := range res.Header {
		if strings.IndexByte(name, ' ') >= 0 {
			return errName
		}
	}
	return nil
}

// sendOn asks by http.Transport, with a trace of the caller's. The error is errUnsendable if
// the transport has refused the request before it looked for a connection.
func (p *Proxy) sendOn(ctx context.Context, out *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	connects := false // GetConn is called by RoundTrip itself
	trace.GetConn = func(string) { connects = true }
	res, err := p.transport.RoundTrip(out.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil && !connects && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", errUnsendable, err)
	}
	if err == nil {
		if err = spelled(res); err != nil {
			_ = res.Body.Close() // it is of no use
			return nil, err
		}
	}
	return res, err
}

// written is the request as it goes over the wire. Its header was taken apart by a server,
// which lets nothing through that would be two fields, or two requests.
func (t *trip) written(out []byte, to *endpoint, header http.Header) []byte {
	host := t.r.Host
	if set := t.config.Upstreams[t.route.Upstream].Host; set != "" {
		host = set
	}
	if host == "" {
		host = to.Host
	}
	out = append(append(out, t.r.Method...), ' ')
	out = append(append(out, t.route.target(to.URL, t.r.URL).RequestURI()...), " HTTP/1.1\r\nHost: "...)
	out = append(append(out, host...), "\r\n"...)
	for name, values := range header {
		if name == "Content-Length" || name == "User-Agent" && values[0] == "" {
			continue
		}
		for _, value := range values {
			out = append(append(out, name...), ": "...)
			out = append(append(out, value...), "\r\n"...)
		}
	}
	return append(out, "\r\n"...)
}

// A reply is the body of an answer: when it is whole, its line is kept.
type reply struct {
	io.ReadCloser
	line *line
	stop func() bool // false: the line was given up
	last bool        // its endpoint ends the line
	done bool
}

func (b *reply) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.done {
		b.done = true
		if b.stop() && !b.last && b.line.in.Buffered() == 0 {
			b.line.of.put(b.line)
		} else {
			b.line.close()
		}
	}
	return n, err
}

// Close ends the line of an answer that was not read whole. It is not the body's, which
// would wait for the rest.
func (b *reply) Close() error {
	if !b.done {
		b.done = true
		b.stop()
		b.line.close()
	}
	return nil
}

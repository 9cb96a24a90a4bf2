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
	maxHeaderBytes      = 64 << 10 // bytes of the header of a response
	maxInterimResponses = 5        // 1xx responses before the response
	maxKeptRequestBytes = 8 << 10  // capacity of a request buffer that is kept
)

var (
	errResponseHeaderTooLarge = errors.New("proxy: the header of the response is too large")
	errTooManyInterim         = errors.New("proxy: too many interim responses")
	errFieldName              = errors.New("proxy: invalid field name in the response")
)

// A h1conn is a connection to an endpoint for requests without a body. The request's goroutine
// writes the request and reads the response itself, which saves two goroutine switches. The
// method send decides which requests use it.
type h1conn struct {
	conn        net.Conn
	pool        *h1pool
	reader      *bufio.Reader // reads from the h1conn, not from conn
	header      http.Header   // of the request; empty except while it is written
	request     []byte        // the request as written
	headerRoom  int64         // bytes of the header that may still arrive
	isRecording bool          // bytes read are appended to recorded
	recorded    []byte        // a header that arrived in several reads
	idleSince   time.Time     // when it became idle
	isReused    bool          // it was idle before: the endpoint may close it while a request is sent
	raw         syscall.RawConn
	peek        func(fd uintptr) bool
	isSilent    bool // result of peek
}

// Read reads at most headerRoom bytes.
func (l *h1conn) Read(p []byte) (int, error) {
	if l.headerRoom <= 0 {
		return 0, errResponseHeaderTooLarge
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.headerRoom)])
	l.headerRoom -= int64(n)
	if l.isRecording {
		l.recorded = append(l.recorded, p[:n]...)
	}
	return n, err
}

func (l *h1conn) close() { _ = l.conn.Close() } // its error changes nothing

// isUsable reports whether the endpoint has neither closed an idle connection nor sent unexpected
// data.
func (l *h1conn) isUsable() bool {
	return l.raw == nil || l.raw.Read(l.peek) == nil && l.isSilent
}

// usesH1Pool reports whether a request may use the HTTP/1.1 pool of the endpoint.
func (t *exchange) usesH1Pool(to *endpoint) bool {
	_, expects := t.r.Header["Expect"]
	known := t.h1Pools[to.Host] != nil // an endpoint of a later configuration has no pool
	return known && t.body == nil && to.Scheme == "http" && !expects && (t.r.Method == http.MethodGet || t.r.Method == http.MethodHead)
}

// sendOverH1 sends the request over a pooled connection. If an idle connection ends before a
// response begins, the request, which is a read, is sent once more over a new connection.
func (t *exchange) sendOverH1(to *endpoint) (*http.Response, error) {
	of := t.h1Pools[to.Host]
	l, err := of.get(t.ctx)
	if err != nil {
		return nil, err
	}
	res, begun, err := t.roundTripH1(l, to)
	if err == nil || begun || !l.isReused || t.ctx.Err() != nil {
		return res, err
	}
	if l, err = of.dialNew(t.ctx); err != nil {
		return nil, err
	}
	res, _, err = t.roundTripH1(l, to)
	return res, err
}

// roundTripH1 sends the request over one connection. begun: a part of a response arrived.
func (t *exchange) roundTripH1(l *h1conn, to *endpoint) (res *http.Response, begun bool, err error) {
	stop := context.AfterFunc(t.ctx, l.close)
	l.request = t.appendRequest(l.request[:0], to, t.fillHeader(l.header, t.r, t.timeLeft()))
	clear(l.header)
	l.headerRoom = maxHeaderBytes
	_, err = l.conn.Write(l.request)
	if cap(l.request) > maxKeptRequestBytes {
		l.request = nil
	}
	if err == nil {
		t.upstream.noteSent()
		_, err = l.reader.Peek(1)
	}
	if begun = err == nil; begun {
		res, err = t.readResponse(l)
	}
	if err != nil {
		stop()
		l.close()
		return nil, begun, err
	}
	l.headerRoom = 1<<63 - 1
	res.Body = &h1Body{ReadCloser: res.Body, conn: l, stop: stop, closesConn: res.Close || res.StatusCode < http.StatusOK}
	return res, true, nil
}

// readResponse reads the header of the response, and forwards interim responses before it.
func (t *exchange) readResponse(l *h1conn) (*http.Response, error) {
	for n := 0; ; n++ {
		res, err := l.readHeader(t.r)
		if err != nil || res.StatusCode/100 != 1 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
		if n == maxInterimResponses {
			return nil, errTooManyInterim
		}
		l.headerRoom = maxHeaderBytes
		if err := t.forwardInterim(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
			return nil, err
		}
	}
}

// readHeader reads one header. If Connection contains close, net/http drops the field, and with
// it the names of hop-by-hop fields. They are read again from the recorded bytes.
func (l *h1conn) readHeader(r *http.Request) (*http.Response, error) {
	raw, _ := l.reader.Peek(l.reader.Buffered()) // the bytes are buffered, so there is no error
	if l.isRecording = !bytes.Contains(raw, []byte("\n\r\n")); l.isRecording {
		l.recorded = append(l.recorded, raw...)
	}
	res, err := http.ReadResponse(l.reader, r)
	if l.isRecording {
		raw, l.isRecording, l.recorded = l.recorded, false, nil
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
	if err := new(headerLines).follow(raw); err != nil {
		return nil, err
	}
	return res, checkFieldNames(res)
}

// checkFieldNames returns an error if a field name contains a blank. net/http takes a blank
// before a colon for a part of the name, and other parsers do not.
func checkFieldNames(res *http.Response) error {
	for name := range res.Header {
		if strings.IndexByte(name, ' ') >= 0 {
			return errFieldName
		}
	}
	return nil
}

// sendByTransport sends a request by http.Transport, with the caller's trace. It returns
// errUnsendable if the transport rejects the request before it looks for a connection.
func (p *Proxy) sendByTransport(ctx context.Context, out *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	connects := false // RoundTrip calls GetConn synchronously
	trace.GetConn = func(string) { connects = true }
	trace.GotConn = func(got httptrace.GotConnInfo) {
		if c, ok := got.Conn.(*headerConn); ok {
			c.expect()
		}
	}
	res, err := p.transport.RoundTrip(out.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil && !connects && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", errUnsendable, err)
	}
	if err == nil {
		if err = checkFieldNames(res); err != nil {
			_ = res.Body.Close() // it is not needed
			return nil, err
		}
	}
	return res, err
}

// appendRequest appends the request in wire format. The server has parsed its header, so no value
// contains a line break.
func (t *exchange) appendRequest(out []byte, to *endpoint, header http.Header) []byte {
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

// A h1Body is the body of a response. When it is complete, its connection returns to the pool.
type h1Body struct {
	io.ReadCloser
	conn       *h1conn
	stop       func() bool // false: the connection was closed by a cancellation
	closesConn bool        // the endpoint closes the connection after this response
	done       bool
}

func (b *h1Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.done {
		b.done = true
		if b.stop() && !b.closesConn && b.conn.reader.Buffered() == 0 {
			b.conn.pool.put(b.conn)
		} else {
			b.conn.close()
		}
	}
	return n, err
}

// Close closes the connection of a response that was not read to its end. It does not close the
// embedded body, which would wait for the rest.
func (b *h1Body) Close() error {
	if !b.done {
		b.done = true
		b.stop()
		b.conn.close()
	}
	return nil
}

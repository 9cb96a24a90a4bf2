package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/http2"

	"macronode/adapters/proxy"
)

// resetAfterDelivery closes a TCP connection such that the other end gets a reset, after all that was written. A reset
// discards what is not acknowledged: under load the system may have dropped a segment, which is then never sent again.
func resetAfterDelivery(t *testing.T, c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	for unacknowledged := int32(1); unacknowledged > 0 && err == nil; runtime.Gosched() {
		failed := raw.Control(func(fd uintptr) {
			if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&unacknowledged))); no != 0 {
				err = no
			}
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Error(err)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// TestEarlyAnswerBeforeReset: an endpoint answers completely before it has read the body, then
// resets the connection while the body is sent. The response is forwarded.
func TestEarlyAnswerBeforeReset(t *testing.T) {
	text := strings.Repeat("x", 20<<10) // more than one read
	first := servesRaw(t, func(c net.Conn, _ *bufio.Reader) {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		resetAfterDelivery(t, c)
	})
	other := play(t, nil, func(_ int, conn net.Conn, c *rawH2Conn) {
		if c.handshake(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}) {
			_ = c.WriteWindowUpdate(0, 1<<30)
			stream := c.next()
			c.head(stream, false, ":status", "413")
			c.data(stream, false, text[:16<<10])
			c.data(stream, true, text[16<<10:])
			resetAfterDelivery(t, conn)
		}
	})
	for protocol, to := range map[string]struct {
		url    string
		change func(*proxy.Config)
	}{"HTTP/1.1": {first, nil}, "HTTP/2": {other.url, useHTTP2}} {
		for n := range 20 {
			h, traces := newTracedGateway(t, to.change, to.url)                            // no request uses a connection that is being reset
			res, err := h.http.Do(h.request("POST", "/", io.LimitReader(zeros{}, 64<<20))) // more than the buffers hold
			if err == nil {                                                                // otherwise the client met a reset as well: the body was not read
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			if got := traceLine(&(<-traces).Upstreams[0]); got != "completed  413, " {
				t.Errorf("%s, %d: %q", protocol, n, got)
			}
		}
	}
}

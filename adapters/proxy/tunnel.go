package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"macronode/core/event"
)

// Tunnels is the registry of hijacked connections. The server does not track them, so a drain
// needs it.
type Tunnels struct {
	mu      sync.Mutex
	open    map[*tunnel]struct{}
	drained chan struct{} // closed when the last tunnel has ended after startDrain; nil: not draining
}

// A tunnel connects a client and an endpoint after an upgrade.
type tunnel struct {
	client      net.Conn
	upstream    io.ReadWriteCloser
	meter       Meter
	idleTimer   *time.Timer
	idleTimeout time.Duration
	endReason   atomic.Value // the FailureReason with which the proxy ended it
}

// end closes the tunnel for a reason of the proxy.
func (t *tunnel) end(why FailureReason) {
	t.endReason.CompareAndSwap(nil, why)
	t.close()
}

func (t *tunnel) close() {
	_ = t.client.Close() // unblocks both directions
	_ = t.upstream.Close()
}

// NewTunnels returns an empty registry.
func NewTunnels() *Tunnels { return &Tunnels{open: make(map[*tunnel]struct{})} }

// Drain rejects new tunnels and waits until the open ones have ended. When ctx ends, it closes
// the rest and returns their number.
func (s *Tunnels) Drain(ctx context.Context) (cut int) {
	select {
	case <-s.startDrain():
	case <-ctx.Done():
	}
	return s.closeAll()
}

// isDraining reports whether new tunnels are rejected.
func (s *Tunnels) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drained != nil
}

func (s *Tunnels) add(t *tunnel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained != nil {
		return false
	}
	s.open[t] = struct{}{}
	return true
}

func (s *Tunnels) remove(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
	s.checkDrained()
}

// startDrain rejects new tunnels. The returned channel is closed when none is open.
func (s *Tunnels) startDrain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	s.checkDrained()
	return s.drained
}

func (s *Tunnels) checkDrained() {
	if s.drained == nil || len(s.open) > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// closeAll closes all tunnels and waits until they have ended.
func (s *Tunnels) closeAll() (n int) {
	done := s.startDrain()
	s.mu.Lock()
	for t := range s.open {
		t.end(Shutdown)
		n++
	}
	s.mu.Unlock()
	<-done
	return n
}

// Open returns the number of open tunnels.
func (s *Tunnels) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// requestedUpgrade returns the protocol that a request asks for, or "" if the upgrade is ignored,
// which HTTP allows. Ignored are choices of several protocols, upgrades with a body, and those to
// HTTP/2, TLS and other forms of HTTP, which would bypass the gateway.
func (t *exchange) requestedUpgrade() string {
	values := t.r.Header["Upgrade"]
	if len(values) != 1 || t.body != nil || t.r.ProtoMajor != 1 || t.r.ProtoMinor != 1 || !containsToken(t.r.Header["Connection"], "upgrade") {
		return ""
	}
	if strings.ContainsFunc(values[0], func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }) {
		return ""
	}
	switch name, _, _ := strings.Cut(values[0], "/"); strings.ToLower(name) {
	case "h2c", "h2", "http", "tls":
		return ""
	}
	return values[0]
}

// serveUpgrade forwards a request for another protocol.
func (t *exchange) serveUpgrade(kind string) {
	if t.tunnels.isDraining() {
		t.fail(t.w, t.r, event.Unavailable, 0)
		return
	}
	t.serveAttempts(func(out *http.Request) {
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{kind}
	})
}

// joinTunnel connects both ends until one is closed.
func (t *exchange) joinTunnel(res *http.Response) {
	result, reason := event.AttemptAbandoned, ClientDisconnected
	defer func() { t.finish(result, reason) }()
	upstream, ok := res.Body.(io.ReadWriteCloser)
	protocol := t.requestedUpgrade()
	if !ok || protocol == "" || res.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(protocol, res.Header.Get("Upgrade")) {
		result, reason = event.AttemptTruncated, ProtocolError
		t.fail(t.w, t.r, event.BadGateway, 0)
		return
	}
	client, buffered, err := t.controller.Hijack()
	if err != nil {
		t.fail(t.w, t.r, event.Internal, 0)
		return
	}
	u := &tunnel{client: client, upstream: upstream, meter: t.meter, idleTimeout: t.config.TunnelIdleTimeout}
	defer u.close()
	if !t.tunnels.add(u) {
		reason = Shutdown
		return // the shutdown came first
	}
	defer t.tunnels.remove(u)
	t.timer.Stop()
	u.idleTimer = time.AfterFunc(u.idleTimeout, func() { u.end(IdleTimeout) })
	defer u.idleTimer.Stop()
	defer context.AfterFunc(t.ctx, func() { // the server does not close a hijacked connection
		if lost := t.lost(); lost != nil {
			u.end(lost.reason())
			return
		}
		u.end(Shutdown)
	})()
	_ = client.SetDeadline(time.Time{})
	if writeSwitchingProtocols(buffered.Writer, res, idsOf(t.w.Header())) != nil {
		return
	}
	result, reason = event.AttemptCompleted, NoFailure
	t.copyBothWays(u, t.trace, io.MultiReader(io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered())), client))
	if why, ended := u.endReason.Load().(FailureReason); ended {
		reason = why
	}
}

// writeSwitchingProtocols writes the 101 response, with the ids by which an operator finds the
// request.
func writeSwitchingProtocols(w *bufio.Writer, res *http.Response, of ids) error {
	h := make(http.Header, len(res.Header)+4)
	copyFields(h, res.Header, nil)
	of.put(h)
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, res.Header["Upgrade"]
	if _, err := w.WriteString("HTTP/1.1 101 Switching Protocols\r\n"); err != nil {
		return err
	}
	if err := h.Write(w); err != nil {
		return err
	}
	if _, err := w.WriteString("\r\n"); err != nil {
		return err
	}
	return w.Flush()
}

// copyBothWays copies in both directions. near begins with data that the server had buffered. The
// end of one direction is passed on, and the other may continue.
func (p *Proxy) copyBothWays(u *tunnel, c *Trace, client io.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.copyOneWay(u.client, u.upstream, &c.BytesDown, u.meter.CountSent)
	}()
	u.copyOneWay(u.upstream, client, &c.BytesUp, u.meter.Count)
	<-done
}

func (u *tunnel) copyOneWay(to io.Writer, from io.Reader, count *atomic.Uint64, metered func(int)) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		u.idleTimer.Reset(u.idleTimeout)
		for part := buf[:n]; len(part) > 0; {
			took, ok := u.takeQuota(len(part))
			if !ok {
				u.end(QuotaTimeout)
				return
			}
			metered(took)
			count.Add(uint64(took))
			if _, failed := to.Write(part[:took]); failed != nil {
				u.close()
				return
			}
			part = part[took:]
		}
		if err == nil {
			continue
		}
		half, ok := to.(interface{ CloseWrite() error })
		if err != io.EOF || !ok || half.CloseWrite() != nil {
			u.close()
		}
		return
	}
}

// takeQuota takes 1 to n bytes that may be forwarded. Waiting for them is not idleness. ok is false
// if they are rejected.
func (u *tunnel) takeQuota(n int) (took int, ok bool) {
	if u.meter.TryTake(n) {
		return n, true
	}
	u.idleTimer.Stop()
	took, why := u.meter.Take(n)
	if why != event.None {
		return 0, false
	}
	u.idleTimer.Reset(u.idleTimeout)
	return took, true
}

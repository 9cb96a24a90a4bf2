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

// Tunnels are the connections that have been taken from the server: an end of the node
// must know them, because no server does.
type Tunnels struct {
	mu   sync.Mutex
	open map[*tunnel]struct{}
	none chan struct{} // closed once there is none, and none comes; nil: not ending
}

// A tunnel is a connection that speaks another protocol now, and the endpoint's.
type tunnel struct {
	near  net.Conn
	far   io.ReadWriteCloser
	meter Meter
	idle  *time.Timer
	quiet time.Duration
	why   atomic.Value // the Symptom of which the proxy ended it
}

// end closes it for a reason of the proxy's own.
func (t *tunnel) end(why Symptom) {
	t.why.CompareAndSwap(nil, why)
	t.close()
}

func (t *tunnel) close() {
	_ = t.near.Close() // both: who waits for either sees its end
	_ = t.far.Close()
}

// NewTunnels has none.
func NewTunnels() *Tunnels { return &Tunnels{open: make(map[*tunnel]struct{})} }

// Drain takes no new tunnel, waits until those that are there are over, and cuts what is
// left when ctx ends: it returns how many that were.
func (s *Tunnels) Drain(ctx context.Context) (cut int) {
	select {
	case <-s.last():
	case <-ctx.Done():
	}
	return s.cut()
}

// ending reports that no tunnel is taken any more.
func (s *Tunnels) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.none != nil
}

func (s *Tunnels) add(t *tunnel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.none != nil {
		return false
	}
	s.open[t] = struct{}{}
	return true
}

func (s *Tunnels) remove(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
	s.settle()
}

// last takes no tunnel any more: what it returns is closed when there is none.
func (s *Tunnels) last() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.none == nil {
		s.none = make(chan struct{})
	}
	s.settle()
	return s.none
}

func (s *Tunnels) settle() {
	if s.none == nil || len(s.open) > 0 {
		return
	}
	select {
	case <-s.none:
	default:
		close(s.none)
	}
}

// cut ends all of them, and waits until they have.
func (s *Tunnels) cut() (n int) {
	done := s.last()
	s.mu.Lock()
	for t := range s.open {
		t.end(Drained)
		n++
	}
	s.mu.Unlock()
	<-done
	return n
}

// Open is how many there are.
func (s *Tunnels) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// upgrade is the protocol that a request asks for; empty: none that an upstream is asked for.
// A server may ignore the wish, and what stays HTTP is asked for as if there were none: so are
// wishes for a choice of protocols, for one behind a body, and for one that would pass by all
// that is decided about requests.
func (t *trip) upgrade() string {
	said := t.r.Header["Upgrade"]
	if len(said) != 1 || t.body != nil || t.r.ProtoMajor != 1 || t.r.ProtoMinor != 1 || !listed(t.r.Header["Connection"], "upgrade") {
		return ""
	}
	if strings.ContainsFunc(said[0], func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }) {
		return ""
	}
	switch name, _, _ := strings.Cut(said[0], "/"); strings.ToLower(name) {
	case "h2c", "h2", "http", "tls":
		return ""
	}
	return said[0]
}

// tunnel asks the upstream for another protocol.
func (t *trip) tunnel(kind string) {
	if t.tunnels.ending() {
		t.fail(t.w, t.r, event.Unavailable, 0)
		return
	}
	t.serve(func(out *http.Request) {
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{kind}
	})
}

// through joins both ends until one has nothing to say any more.
func (t *trip) through(res *http.Response) {
	ending, how := event.AttemptAbandoned, Gone
	defer func() { t.over(ending, how) }()
	far, ok := res.Body.(io.ReadWriteCloser)
	asked := t.upgrade()
	if !ok || asked == "" || res.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(asked, res.Header.Get("Upgrade")) {
		ending, how = event.AttemptTruncated, Malformed
		t.fail(t.w, t.r, event.BadGateway, 0)
		return
	}
	near, with, err := t.control.Hijack()
	if err != nil {
		t.fail(t.w, t.r, event.Internal, 0)
		return
	}
	u := &tunnel{near: near, far: far, meter: t.meter, quiet: t.config.Idle}
	defer u.close()
	if !t.tunnels.add(u) {
		how = Drained
		return // the end of the node came first
	}
	defer t.tunnels.remove(u)
	t.timer.Stop()
	u.idle = time.AfterFunc(u.quiet, func() { u.end(Idle) })
	defer u.idle.Stop()
	defer context.AfterFunc(t.ctx, func() { u.end(Drained) })() // its connection is not the server's: nothing else ends it
	_ = near.SetDeadline(time.Time{})
	if switched(with.Writer, res, idsOf(t.w.Header())) != nil {
		return
	}
	ending, how = event.AttemptCompleted, Fine
	t.join(u, t.course, io.MultiReader(io.LimitReader(with.Reader, int64(with.Reader.Buffered())), near))
	if why, ended := u.why.Load().(Symptom); ended {
		how = why
	}
}

// switched writes the answer that is the last of this protocol, with the ids by which an operator
// asks what became of it.
func switched(w *bufio.Writer, res *http.Response, of ids) error {
	h := make(http.Header, len(res.Header)+4)
	pass(h, res.Header, nil)
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

// join copies both ways, from near what came too early first. The end of one way is told to the other side, which may go on.
func (p *Proxy) join(u *tunnel, c *Course, near io.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.move(u.near, u.far, &c.Down)
	}()
	u.move(u.far, near, &c.Up)
	<-done
}

func (u *tunnel) move(to io.Writer, from io.Reader, count *atomic.Uint64) {
	buf := buffers.Get().(*[size]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		u.idle.Reset(u.quiet)
		if n > 0 {
			if !u.meter.May(n) {
				u.idle.Stop()
				if u.meter.Pass(n) != event.None {
					u.end(Held)
					return
				}
				u.idle.Reset(u.quiet)
			}
			u.meter.Took(n)
			count.Add(uint64(n))
			if _, failed := to.Write(buf[:n]); failed != nil {
				u.close()
				return
			}
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

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// MaxStreams is how many requests go over one trunk at once, unless its endpoint takes
// fewer; one more has another. TrunkBytes is what a trunk takes in memory, StreamBytes what
// a request on it takes beside.
const (
	MaxStreams  = 30
	TrunkBytes  = 48 << 10
	StreamBytes = 2*streamWindow + 64<<10 // what comes lies in chunks, which are not full
)

const (
	streamWindow = 128 << 10   // bytes of an answer that were not taken on
	believed     = time.Minute // that an endpoint chose HTTP/1.1: it is not asked again so long
	overMost     = 3           // trunks that end just before a request, which is sent over the next
)

// Why there is no trunk.
var (
	errFirst  = errors.New("proxy: the endpoint has chosen HTTP/1.1")
	errSecond = errors.New("proxy: the endpoint does not speak HTTP/2")
	errEnded  = errors.New("proxy: the endpoint ends a connection at once, or takes no request on it")
)

// trunks are those to one endpoint. It is connected to once at a time: who comes meanwhile
// waits for that, too.
type trunks struct {
	scheme  string
	address string
	greeter *greeter
	choice  bool          // it may choose HTTP/1.1
	doubt   time.Duration // that a trunk may be silent when a request over it is given up: what a new one takes at most
	all     *atomic.Int64 // kept connections, to all endpoints

	mu     sync.Mutex // nothing blocks under it
	open   []*trunk   // the oldest first
	making *making    // nil: it is not connected to
	hoping int        // requests that wait for that
	first  time.Time  // until when it is believed to speak HTTP/1.1
	sweep  *time.Timer
	over   bool // none is kept any more
}

// A making is a trunk that is to come.
type making struct {
	done  chan struct{} // closed when it is there, or is not to be had
	trunk *trunk
	err   error
}

// trunks are those to an endpoint; nil: it is asked by HTTP/1.1.
func (p *Proxy) trunks(to *endpoint) *trunks {
	if to.by == HTTP1 || to.by == Auto && to.Scheme == "http" {
		return nil
	}
	key := goal{to.Scheme, to.Host, to.by}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.second[key]
	if s == nil { // one of a later configuration is asked by that, too
		s = newTrunks(to, p.greeters[to.by], p.config.Dial, &p.kept)
		s.over = p.retired
		p.second[key] = s
	}
	return s
}

// A goal is where trunks lead.
type goal struct {
	scheme, host string
	by           Protocol
}

func newTrunks(to *endpoint, by *greeter, doubt time.Duration, all *atomic.Int64) *trunks {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	return &trunks{scheme: to.Scheme, address: net.JoinHostPort(to.Hostname(), port), greeter: by, choice: to.by == Auto, doubt: doubt, all: all}
}

// carry sends a request over a trunk. It is sent over another where nothing of it has left,
// and once more where it may be repeated and a trunk that was used before ends just then:
// that is no failure of its endpoint.
func (p *Proxy) carry(s *trunks, out *http.Request, e errand) (*http.Response, error) {
	var after time.Time
	for n := 0; ; n++ {
		t, err := p.take(out.Context(), s, after)
		if err != nil {
			return nil, err
		}
		e.leg.second()
		kept := t.kept.Load()
		res, sent, err := t.ask(out, e)
		code, _ := resetBy(err)
		over := t.ended.Load()
		switch {
		case err == nil:
			return res, nil
		case out.Context().Err() != nil:
			return nil, err
		case tooLarge(err): // the header, or the trailer behind a body
			return nil, errLarge
		case !sent && unsendable(err):
			return nil, fmt.Errorf("%w: %w", errUnsendable, err)
		case code == http2.ErrCodeHTTP11Required && s.choice:
			if s.believe(); e.again() {
				return nil, errFirst
			}
			return nil, err
		case !kept || n >= overMost:
		case !sent, after.IsZero() && (over || goesAway(err)) && e.again():
			after = time.Now()
			continue
		case goesAway(err) && !e.again():
			return nil, errAway
		}
		if code == http2.ErrCodeRefusedStream || goesAway(err) {
			return nil, errDeclined
		}
		return nil, err
	}
}

// take is a place on a trunk that was not there before a time.
func (p *Proxy) take(ctx context.Context, s *trunks, after time.Time) (*trunk, error) {
	for m := (*making)(nil); ; {
		t, next, err := p.place(s, after, m)
		if t != nil || err != nil {
			return t, err
		}
		m = next
		select {
		case <-m.done:
			err = m.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			s.despair()
			return nil, err
		}
	}
}

// place is a place on a trunk, or else the one that is to come. Whoever has waited for one
// that takes no request, though it has none, has waited in vain.
func (p *Proxy) place(s *trunks, after time.Time, waited *making) (*trunk, *making, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waited != nil {
		s.hoping--
	}
	if time.Now().Before(s.first) {
		return nil, nil, errFirst
	}
	for _, t := range s.open {
		if t.last || t.calls >= MaxStreams || t.born.Before(after) || t.ended.Load() || !t.conn.ReserveNewRequest() {
			continue
		}
		if t.calls++; t.calls == 1 {
			s.all.Add(-1)
		}
		return t, nil, nil
	}
	switch {
	case waited != nil && waited.trunk.calls == 0 && !waited.trunk.kept.Load() && waited.trunk.cut.IsZero():
		return nil, nil, errEnded
	case s.making == nil:
		s.making = &making{done: make(chan struct{})}
		go p.connect(s, s.making)
	}
	s.hoping++
	return nil, s.making, nil
}

// despair is of who does not wait any more.
func (s *trunks) despair() {
	s.mu.Lock()
	s.hoping--
	gone := s.unwanted()
	s.mu.Unlock()
	closed(gone)
}

// connect makes a trunk.
func (p *Proxy) connect(s *trunks, m *making) {
	conn, err := s.greet(context.Background())
	if err == nil && conn == nil {
		if err = errSecond; s.choice { // what comes next is asked by HTTP/1.1, over other connections
			err = errFirst
			s.believe()
		}
	}
	s.mu.Lock()
	if err == nil {
		m.trunk = &trunk{conn: conn, of: s, born: time.Now()}
		s.open = append(s.open, m.trunk)
		s.rest(m.trunk)
	}
	s.making, m.err = nil, err
	gone := s.unwanted()
	s.mu.Unlock()
	close(m.done)
	closed(gone)
}

// greet connects; nil: it is none of HTTP/2.
func (s *trunks) greet(ctx context.Context) (*second, error) {
	return s.greeter.greet(ctx, s.scheme, s.address)
}

// believe takes the endpoint at its word for a while: it wants HTTP/1.1.
func (s *trunks) believe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = time.Now().Add(believed)
}

// leave gives back a place. givenUp: the request had no answer when its time was over, or its
// client left; cut: or all of its answer was not read.
func (s *trunks) leave(t *trunk, givenUp, cut bool) {
	s.mu.Lock()
	if cut {
		t.cut = time.Now()
	}
	if givenUp {
		t.spoilt++
		t.last = t.last || t.spoilt >= spoilt || t.doubted(s.doubt)
	}
	var gone []*trunk
	if t.calls--; t.calls == 0 {
		s.rest(t)
		gone = s.unwanted()
	}
	s.mu.Unlock()
	closed(gone)
}

// rest keeps a trunk that has no request for the next one.
func (s *trunks) rest(t *trunk) {
	t.since = time.Now()
	s.all.Add(1)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(keptFor, s.tidy)
	}
}

// unwanted takes out those that have no request and will have none: they take no more, have
// ended, or nobody asked over them for long; or they are more than are kept. One that takes
// none because those that were given up have their places still is as good as any, for as long
// as a new one takes at most.
func (s *trunks) unwanted() (gone []*trunk) {
	kept := 0
	s.open = slices.DeleteFunc(s.open, func(t *trunk) bool {
		if t.calls > 0 {
			return false
		}
		kept++
		fits := kept <= keptEach && s.all.Load() <= Kept && !s.over && time.Since(t.since) < keptFor
		if !t.last && !t.ended.Load() && (t.conn.CanTakeNewRequest() || time.Since(t.cut) < s.doubt) && (fits || s.hoping > 0) {
			return false
		}
		s.all.Add(-1)
		gone = append(gone, t)
		return true
	})
	return gone
}

// closed closes them, which may take a moment.
func closed(gone []*trunk) {
	for _, t := range gone {
		_ = t.conn.Close() // its error changes nothing
	}
}

// tidy closes what nobody took for long, and comes again while any is left.
func (s *trunks) tidy() {
	s.mu.Lock()
	gone := s.unwanted()
	s.sweep = nil
	if len(s.open) > 0 {
		s.sweep = time.AfterFunc(keptFor, s.tidy)
	}
	s.mu.Unlock()
	closed(gone)
}

// end closes all that have no request, and the others behind their last.
func (s *trunks) end() {
	s.mu.Lock()
	s.over = true
	gone := s.unwanted()
	s.mu.Unlock()
	closed(gone)
}

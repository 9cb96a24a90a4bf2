package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// trunked is a proxy whose endpoint takes all that it is sent, and says nothing. Open is how
// many connections to it there are; it is connected to when let says so.
func trunked(t *testing.T) (p *Proxy, open *atomic.Int64, let chan struct{}) {
	open, let = new(atomic.Int64), make(chan struct{})
	dial := func(context.Context, string, string) (net.Conn, error) {
		<-let
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		open.Add(1)
		return &counted{Conn: near, open: open}, nil
	}
	c := Default()
	p = &Proxy{config: c, second: make(map[goal]*trunks)}
	p.greeters[HTTP2] = newGreeter(&c, dial, false)
	return p, open, let
}

// to are the trunks to one endpoint of many.
func (p *Proxy) to(name string) *trunks {
	return p.trunks(&endpoint{&url.URL{Scheme: "http", Host: name}, HTTP2})
}

// apart takes so many places, each on a trunk of its own.
func (p *Proxy) apart(t *testing.T, s *trunks, n int) (taken []*trunk) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond)
		one, err := p.take(t.Context(), s, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, one)
	}
	return taken
}

func left(taken []*trunk) {
	for _, one := range taken {
		one.of.leave(one, false, false)
	}
}

// TestKeptTrunks: a trunk has so many requests; no more trunks are kept than may be, of one
// endpoint and of all, none for long, and none when the proxy is retired.
func TestKeptTrunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := trunked(t)
		close(let)
		s := p.to("a")
		if s.address != "a:80" || p.to("a") != s || p.to("b") == s {
			t.Error(s.address)
		}
		var taken []*trunk
		for range 2*MaxStreams + 1 {
			one, err := p.take(t.Context(), s, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, one)
		}
		if open.Load() != 3 || taken[MaxStreams-1] != taken[0] || taken[MaxStreams] == taken[0] || p.kept.Load() != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), p.kept.Load())
		}
		left(taken)
		time.Sleep(keptFor / 2)
		one, err := p.take(t.Context(), s, time.Time{})
		if err != nil || one != taken[0] || p.kept.Load() != 2 {
			t.Errorf("%v, %d kept", err, p.kept.Load())
		}
		time.Sleep(keptFor)
		synctest.Wait()
		if open.Load() != 1 {
			t.Errorf("%d are open, and one is used", open.Load())
		}
		left([]*trunk{one})
		time.Sleep(2 * keptFor)
		synctest.Wait()
		if open.Load() != 0 || s.sweep != nil || p.kept.Load() != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), p.kept.Load())
		}
		for _, name := range [...]string{"a", "b", "c", "d", "e"} {
			left(p.apart(t, p.to(name), keptEach+10))
		}
		synctest.Wait()
		if open.Load() != Kept || p.kept.Load() != Kept || len(s.open) != keptEach {
			t.Errorf("%d are open, %d kept, %d of one", open.Load(), p.kept.Load(), len(s.open))
		}
		busy := p.apart(t, p.to("f"), 1)
		for _, s := range p.second {
			s.end()
		}
		synctest.Wait()
		if open.Load() != 1 {
			t.Errorf("%d are open behind the end, and one is used", open.Load())
		}
		left(busy)
		left(p.apart(t, s, 1)) // of who came before the end
		synctest.Wait()
		if open.Load() != 0 || p.kept.Load() != 0 {
			t.Errorf("%d are open behind the end, %d kept", open.Load(), p.kept.Load())
		}
	})
}

// TestAFullTrunk: one that takes none while those that were given up have their places still is
// kept so long as it may, and whoever has waited for it waits for another.
func TestAFullTrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := trunked(t)
		close(let)
		s := p.to("a")
		one := p.apart(t, s, 1)[0]
		for one.conn.ReserveNewRequest() { // as if so many had been given up
		}
		s.leave(one, true, true)
		s.hoping++
		_, next, err := p.place(s, time.Time{}, &making{trunk: one})
		if err != nil {
			t.Fatal(err)
		}
		<-next.done
		two, _, err := p.place(s, time.Time{}, next)
		if err != nil || two == one || open.Load() != 2 || s.hoping != 0 {
			t.Fatalf("%v, %d are open, %d wait", err, open.Load(), s.hoping)
		}
		time.Sleep(s.doubt)
		left([]*trunk{two})
		if synctest.Wait(); open.Load() != 1 || s.open[0] != two {
			t.Errorf("%d are open", open.Load())
		}
		s.end()
		synctest.Wait()
	})
}

// TestAFullTrunkIsKeptMidway: one whose only request is given up in the midst of its answer is
// kept, though its endpoint is slow to take word of that.
func TestAFullTrunkIsKeptMidway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, len(http2.ClientPreface)))
			f := http2.NewFramer(far, far)
			for begins := 4; begins > 0; begins-- { // its settings and its window; that it has ours, and its request
				if begins == 2 {
					_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
				}
				_, _ = f.ReadFrame()
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}) // 200
			_ = f.WriteData(1, false, []byte("some"))
			time.Sleep(time.Second)
			_, _ = io.Copy(io.Discard, far)
		}()
		p, _, _ := trunked(t)
		c := Default()
		p.greeters[HTTP2] = newGreeter(&c, func(context.Context, string, string) (net.Conn, error) { return near, nil }, false)
		s := p.to("a")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.carry(s, req, errand{leg: &Leg{Tries: make([]Try, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil || s.open[0].conn.CanTakeNewRequest() {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		one := s.open
		if len(one) != 1 || one[0].conn.CanTakeNewRequest() {
			t.Fatalf("%d trunks", len(one))
		}
		time.Sleep(2 * time.Second)
		if again, err := p.take(t.Context(), s, time.Time{}); err != nil || again != one[0] {
			t.Error(err)
		} else {
			left([]*trunk{again})
		}
		s.end()
		synctest.Wait()
	})
}

// TestWhoWaitsForATrunk: an endpoint is connected to once, for all who want it; who leaves
// meanwhile takes nothing away from them, and a connection that nobody wants any more is closed.
func TestWhoWaitsForATrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := trunked(t)
		s := p.to("a")
		leaves, leave := context.WithCancelCause(t.Context())
		gone, got := make(chan error, 1), make(chan *trunk, 3)
		go func() {
			_, err := p.take(leaves, s, time.Time{})
			gone <- err
		}()
		synctest.Wait()
		for range 3 {
			go func() {
				one, _ := p.take(t.Context(), s, time.Time{})
				got <- one
			}()
		}
		synctest.Wait()
		leave(errLate)
		if err := <-gone; !errors.Is(err, errLate) {
			t.Error(err)
		}
		s.end()
		let <- struct{}{}
		synctest.Wait()
		one, other, third := <-got, <-got, <-got
		if one != other || other != third || open.Load() != 1 || s.hoping != 0 {
			t.Errorf("%d are open, %d wait", open.Load(), s.hoping)
		}
		left([]*trunk{one, one, one})
		if open.Load() != 0 {
			t.Errorf("%d are open", open.Load())
		}
		leaves, leave = context.WithCancelCause(t.Context())
		go func() {
			_, err := p.take(leaves, s, time.Time{})
			gone <- err
		}()
		synctest.Wait()
		leave(errLate)
		if err := <-gone; !errors.Is(err, errLate) {
			t.Error(err)
		}
		let <- struct{}{}
		synctest.Wait()
		if open.Load() != 0 || p.kept.Load() != 0 {
			t.Errorf("%d are open that nobody wants", open.Load())
		}
	})
}

// TestAnEndpointThatTakesNothing: who reads nothing more of a connection loses it in time,
// with all that waits for him.
func TestAnEndpointThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := Default()
		p := &Proxy{config: c, second: make(map[goal]*trunks)}
		p.greeters[HTTP2] = newGreeter(&c, func(context.Context, string, string) (net.Conn, error) { return near, nil }, false)
		go func() { _, _ = far.Read(make([]byte, 1<<10)) }() // how it begins, in one
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		out, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.carry(p.to("a"), out, errand{leg: &Leg{Tries: make([]Try, 1)}, again: func() bool { return false }})
		if took := time.Since(began); symptom(err) != Unreachable || took != c.Grace || len(p.to("a").open) != 0 {
			t.Errorf("%v after %v, %d are kept", err, took, len(p.to("a").open))
		}
	})
}

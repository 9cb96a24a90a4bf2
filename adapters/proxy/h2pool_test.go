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

// newPoolTest returns a proxy whose endpoint reads everything and sends nothing. open counts its
// connections; each dial waits for let.
func newPoolTest(t *testing.T) (p *Proxy, open *atomic.Int64, let chan struct{}) {
	open, let = new(atomic.Int64), make(chan struct{})
	dial := func(context.Context, string, string) (net.Conn, error) {
		<-let
		near, peer := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		open.Add(1)
		return &countedConn{Conn: near, open: open}, nil
	}
	c := Default()
	p = &Proxy{config: c, h2Pools: make(map[poolKey]*h2pool)}
	p.idleConns.most = MaxIdleConns
	p.dialers[HTTP2] = newDialer(&c, dial, false)
	return p, open, let
}

// poolOf returns the pool of one of many endpoints.
func (p *Proxy) poolOf(name string) *h2pool {
	return p.h2PoolOf(&endpoint{&url.URL{Scheme: "http", Host: name}, HTTP2})
}

// reserveSeparately reserves n streams, each on a connection of its own.
func (p *Proxy) reserveSeparately(t *testing.T, s *h2pool, n int) (taken []*h2conn) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond)
		one, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, one)
	}
	return taken
}

func releaseAll(taken []*h2conn) {
	for _, one := range taken {
		one.pool.release(one, bodyToSend{}, false, false)
	}
}

// TestH2PoolLimits: the requests of a connection are limited, and so are idle connections, for
// one endpoint and for all, and their age. A retired proxy keeps none.
func TestH2PoolLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		if s.address != "a:80" || p.poolOf("a") != s || p.poolOf("b") == s {
			t.Error(s.address)
		}
		var taken []*h2conn
		for range 2*MaxStreams + 1 {
			one, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, one)
		}
		if open.Load() != 3 || taken[MaxStreams-1] != taken[0] || taken[MaxStreams] == taken[0] || p.idleConns.Load() != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), p.idleConns.Load())
		}
		releaseAll(taken)
		time.Sleep(idleConnTimeout / 2)
		one, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{})
		if err != nil || one != taken[0] || p.idleConns.Load() != 2 {
			t.Errorf("%v, %d kept", err, p.idleConns.Load())
		}
		time.Sleep(idleConnTimeout)
		synctest.Wait()
		if open.Load() != 1 {
			t.Errorf("%d are open, and one is used", open.Load())
		}
		releaseAll([]*h2conn{one})
		time.Sleep(2 * idleConnTimeout)
		synctest.Wait()
		if open.Load() != 0 || s.sweep != nil || p.idleConns.Load() != 0 {
			t.Errorf("%d are open, %d kept", open.Load(), p.idleConns.Load())
		}
		for _, name := range [...]string{"a", "b", "c", "d", "e"} {
			releaseAll(p.reserveSeparately(t, p.poolOf(name), maxIdlePerEndpoint+10))
		}
		synctest.Wait()
		if open.Load() != MaxIdleConns || p.idleConns.Load() != MaxIdleConns || len(s.conns) != maxIdlePerEndpoint {
			t.Errorf("%d are open, %d kept, %d of one", open.Load(), p.idleConns.Load(), len(s.conns))
		}
		busy := p.reserveSeparately(t, p.poolOf("f"), 1)
		for _, s := range p.h2Pools {
			s.retire()
		}
		synctest.Wait()
		if open.Load() != 1 {
			t.Errorf("%d are open behind the end, and one is used", open.Load())
		}
		releaseAll(busy)
		releaseAll(p.reserveSeparately(t, s, 1)) // reserved before the end
		synctest.Wait()
		if open.Load() != 0 || p.idleConns.Load() != 0 {
			t.Errorf("%d are open behind the end, %d kept", open.Load(), p.idleConns.Load())
		}
	})
}

// TestWaitForFullH2Conn: a connection that is full because of aborted requests is kept for the
// limited time, and a request that waited for it waits for another.
func TestWaitForFullH2Conn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		one := p.reserveSeparately(t, s, 1)[0]
		for one.conn.ReserveNewRequest() { // as if so many had been aborted
		}
		s.release(one, bodyToSend{}, true, true)
		s.waiters++
		_, next, err := p.reserveH2(s, bodyToSend{}, time.Time{}, &pendingConn{conn: one})
		if err != nil {
			t.Fatal(err)
		}
		<-next.done
		two, _, err := p.reserveH2(s, bodyToSend{}, time.Time{}, next)
		if err != nil || two == one || open.Load() != 2 || s.waiters != 0 {
			t.Fatalf("%v, %d are open, %d wait", err, open.Load(), s.waiters)
		}
		time.Sleep(s.maxSilence)
		releaseAll([]*h2conn{two})
		if synctest.Wait(); open.Load() != 1 || s.conns[0] != two {
			t.Errorf("%d are open", open.Load())
		}
		s.retire()
		synctest.Wait()
	})
}

// TestH2ConnIsKeptAfterAbortedResponse: a connection whose only request is aborted during its
// response is kept, although its endpoint confirms that slowly.
func TestH2ConnIsKeptAfterAbortedResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, peer := net.Pipe()
		go func() {
			_, _ = io.ReadFull(peer, make([]byte, len(http2.ClientPreface)))
			f := http2.NewFramer(peer, peer)
			for begins := 4; begins > 0; begins-- { // settings, window update, acknowledgement, request
				if begins == 2 {
					_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
				}
				_, _ = f.ReadFrame()
			}
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}) // 200
			_ = f.WriteData(1, false, []byte("some"))
			time.Sleep(time.Second)
			_, _ = io.Copy(io.Discard, peer)
		}()
		p, _, _ := newPoolTest(t)
		c := Default()
		p.dialers[HTTP2] = newDialer(&c, func(context.Context, string, string) (net.Conn, error) { return near, nil }, false)
		s := p.poolOf("a")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.roundTripH2(s, req, h2Request{upstream: &UpstreamTrace{Attempts: make([]Attempt, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 4)); err != nil || s.conns[0].conn.CanTakeNewRequest() {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		one := s.conns
		if len(one) != 1 || one[0].conn.CanTakeNewRequest() {
			t.Fatalf("%d connections", len(one))
		}
		time.Sleep(2 * time.Second)
		if again, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{}); err != nil || again != one[0] {
			t.Error(err)
		} else {
			releaseAll([]*h2conn{again})
		}
		s.retire()
		synctest.Wait()
	})
}

// TestRequestsShareOneDial: one dial at a time serves all waiting requests. A request that is
// cancelled meanwhile does not affect the others, and a connection that is not needed any more is
// closed.
func TestRequestsShareOneDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		s := p.poolOf("a")
		leaves, leave := context.WithCancelCause(t.Context())
		gone, got := make(chan error, 1), make(chan *h2conn, 3)
		go func() {
			_, err := p.acquireH2(leaves, s, bodyToSend{}, time.Time{})
			gone <- err
		}()
		synctest.Wait()
		for range 3 {
			go func() {
				one, _ := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{})
				got <- one
			}()
		}
		synctest.Wait()
		leave(errNoResponseInTime)
		if err := <-gone; !errors.Is(err, errNoResponseInTime) {
			t.Error(err)
		}
		s.retire()
		let <- struct{}{}
		synctest.Wait()
		one, other, third := <-got, <-got, <-got
		if one != other || other != third || open.Load() != 1 || s.waiters != 0 {
			t.Errorf("%d are open, %d wait", open.Load(), s.waiters)
		}
		releaseAll([]*h2conn{one, one, one})
		if open.Load() != 0 {
			t.Errorf("%d are open", open.Load())
		}
		leaves, leave = context.WithCancelCause(t.Context())
		go func() {
			_, err := p.acquireH2(leaves, s, bodyToSend{}, time.Time{})
			gone <- err
		}()
		synctest.Wait()
		leave(errNoResponseInTime)
		if err := <-gone; !errors.Is(err, errNoResponseInTime) {
			t.Error(err)
		}
		let <- struct{}{}
		synctest.Wait()
		if open.Load() != 0 || p.idleConns.Load() != 0 {
			t.Errorf("%d are open that nobody wants", open.Load())
		}
	})
}

// TestUnreadH2ConnIsClosed: a connection whose endpoint stops reading is closed in time, with all
// requests that wait for it.
func TestUnreadH2ConnIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, peer := net.Pipe()
		defer peer.Close()
		c := Default()
		p := &Proxy{config: c, h2Pools: make(map[poolKey]*h2pool)}
		p.idleConns.most = MaxIdleConns
		p.dialers[HTTP2] = newDialer(&c, func(context.Context, string, string) (net.Conn, error) { return near, nil }, false)
		go func() { _, _ = peer.Read(make([]byte, 1<<10)) }() // its preface, in one write
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		out, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.roundTripH2(p.poolOf("a"), out, h2Request{upstream: &UpstreamTrace{Attempts: make([]Attempt, 1)}, canRepeat: func() bool { return false }})
		if took := time.Since(began); failureReason(err) != ConnectTimeout || took != c.Grace || len(p.poolOf("a").conns) != 0 {
			t.Errorf("%v after %v, %d are kept", err, took, len(p.poolOf("a").conns))
		}
	})
}

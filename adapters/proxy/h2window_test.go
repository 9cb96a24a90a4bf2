package proxy

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"macronode/core/share"
	"macronode/core/types"
)

// fakeConn reads from one buffer and writes to another.
type fakeConn struct {
	net.Conn
	in, out bytes.Buffer
}

func (c *fakeConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *fakeConn) Write(p []byte) (int, error) { return c.out.Write(p) }

// TestWindowOfConnectionIsCounted: data takes from the windows with its padding, and updates of the connection open them, however the frames
// are cut into reads and writes. Other frames, also updates of a stream and malformed ones, change nothing.
func TestWindowOfConnectionIsCounted(t *testing.T) {
	sent := func(to io.Writer) {
		f := http2.NewFramer(to, nil)
		_, _ = io.WriteString(to, http2.ClientPreface)
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		_ = f.WriteWindowUpdate(0, 1<<20) // of the other direction
		_ = f.WriteWindowUpdate(1, 1<<21)
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("some"), EndHeaders: true})
		_ = f.WriteData(1, false, make([]byte, 10_000))
		_ = f.WriteDataPadded(3, true, make([]byte, 100), make([]byte, 200)) // one byte more for the length of the padding
		_ = f.WriteData(1, true, nil)
		_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
	}
	received := func(to io.Writer) {
		f := http2.NewFramer(to, nil)
		_ = f.WriteSettings()
		_ = f.WriteWindowUpdate(0, 7000)
		_ = f.WriteWindowUpdate(1, 1<<20)
		_ = f.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 5))
		_ = f.WriteData(1, true, make([]byte, 50)) // of the other direction
		_ = f.WriteWindowUpdate(0, 1<<31-1)
		_ = f.WriteWindowUpdate(0, 1)
	}
	for _, size := range []int{1, 2, 3, 5, 11, 1 << 20} {
		var out bytes.Buffer
		below := new(fakeConn)
		c := newWindowConn(below, below)
		sent(&out)
		for all := out.Bytes(); len(all) > 0; all = all[min(size, len(all)):] {
			_, _ = c.Write(all[:min(size, len(all))])
		}
		if got, want := c.window.Load(), int64(firstWindow-10_000-301); got != want || !bytes.Equal(below.out.Bytes(), out.Bytes()) {
			t.Errorf("in writes of %d bytes: %d, want %d", size, got, want)
		}
		received(&below.in)
		for part := make([]byte, size); ; {
			if _, err := c.Read(part); err != nil {
				break
			}
		}
		if got, want := c.window.Load(), int64(firstWindow-10_301+7001+1<<31-1); got != want {
			t.Errorf("in reads of %d bytes: %d, want %d", size, got, want)
		}
		if got, want := c.receive.Load(), int64(firstWindow+1<<20-50); got != want {
			t.Errorf("in parts of %d bytes, of responses: %d, want %d", size, got, want)
		}
	}
}

// slowConn is closed once the connection below is.
type slowConn struct{ net.Conn }

func (c slowConn) Close() error {
	_, err := c.Conn.Read(make([]byte, 1))
	return err
}

// TestSlowEndOfTLSIsLimited: an endpoint that does not take the end of TLS delays the end of a connection by no more than the limit.
func TestSlowEndOfTLSIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, peer := net.Pipe()
		defer peer.Close()
		began := time.Now()
		_ = newWindowConn(slowConn{near}, near).Close()
		if took := time.Since(began); took != closeTLSWithin {
			t.Error(took)
		}
	})
}

var (
	ann = types.Flow{Class: types.ClassAuthed, ID: 1}
	bob = types.Flow{Class: types.ClassAnon, ID: 2}
	cat = types.Flow{Class: types.ClassAnon, ID: 3}
)

// TestConnForBodyIsLeftToItsFlow: a connection that is opened for a long body is left to those of its flow that wait for it. Others use it for
// requests without a body, and once none of those is left.
func TestConnForBodyIsLeftToItsFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		long, small := bodyToSend{true, ann, share.UnknownLength}, bodyToSend{true, cat, 1000}
		other := bodyToSend{true, bob, 1 << 20}
		_, zero, err := p.reserveH2(s, long, time.Time{}, nil)
		if _, same, _ := p.reserveH2(s, other, time.Time{}, nil); err != nil || same != zero {
			t.Errorf("%v, or two connections are opened to an endpoint of which nothing is known", err)
		}
		s.stopWaiting(zero)
		synctest.Wait()
		base, _, err := p.reserveH2(s, bodyToSend{true, types.Flow{}, share.UnknownLength}, time.Time{}, zero)
		if err != nil {
			t.Fatal(err)
		}
		_, first, err := p.reserveH2(s, long, time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, second, _ := p.reserveH2(s, long, time.Time{}, nil); second != first {
			t.Error("two connections are opened for one flow")
		}
		synctest.Wait() // it is open, and nothing has looked at it
		_, third, _ := p.reserveH2(s, other, time.Time{}, nil)
		if third == first || third == nil {
			t.Error("a flow takes the connection of another one")
		}
		synctest.Wait()
		_, fourth, _ := p.reserveH2(s, small, time.Time{}, nil)
		if fourth == first || fourth == third {
			t.Error("a small body does not wait for a connection of all")
		}
		got, _, err := p.reserveH2(s, bodyToSend{}, time.Time{}, nil)
		if err != nil || got != base {
			t.Errorf("a request without a body waits: %v", err)
		}
		one, _, err := p.reserveH2(s, long, time.Time{}, first)
		if err != nil || one != first.conn {
			t.Errorf("%v, on another connection", err)
		}
		s.stopWaiting(first)
		synctest.Wait()
		two, _, err := p.reserveH2(s, other, time.Time{}, third)
		if err != nil || two != third.conn {
			t.Errorf("%v, on another connection", err)
		}
		three, _, err := p.reserveH2(s, small, time.Time{}, fourth)
		if err != nil || three != fourth.conn || open.Load() != 4 {
			t.Errorf("%v, %d are open", err, open.Load())
		}
		s.release(one, long, false, false)
		if again, _, err := p.reserveH2(s, other, time.Time{}, nil); err != nil || again != one {
			t.Errorf("%v, although its flow has left", err)
		} else {
			s.release(again, other, false, false)
		}
		s.release(two, other, false, false)
		s.release(three, small, false, false)
		s.release(got, bodyToSend{}, false, false)
		s.release(base, long, false, false)
		if s.waiters != 0 || len(s.pending) != 0 || p.idleConns.Load() != 4 {
			t.Errorf("%d wait, %d pending, %d idle", s.waiters, len(s.pending), p.idleConns.Load())
		}
		s.retire()
		synctest.Wait()
	})
}

// TestSmallBodiesShareH2Conns: small bodies of all flows share one connection as long as its window is open for all of them. One that does not fit gets
// another connection.
func TestSmallBodiesShareH2Conns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		const length = 7000
		for i := range uint64(10) {
			if _, err := p.acquireH2(t.Context(), s, bodyToSend{true, types.Flow{ID: i}, length}, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if want := 1 + int64(i)*length/(firstWindow-length); open.Load() != want {
				t.Fatalf("%d bodies over %d connections, want %d", i+1, open.Load(), want)
			}
		}
		s.retire()
		for _, c := range s.conns {
			_ = c.conn.Close()
		}
		synctest.Wait()
	})
}

// TestConnWithShutWindowIsReplaced: if the endpoint does not open the window again after the bodies have ended, the connection gets no
// further body that does not fit. It serves requests without one, and is closed after the last.
func TestConnWithShutWindowIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, open, let := newPoolTest(t)
		close(let)
		s := p.poolOf("a")
		long := bodyToSend{true, ann, share.UnknownLength}
		one, err := p.acquireH2(t.Context(), s, long, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		one.conn.wire.window.Store(share.MinWindow - 1)
		s.release(one, long, true, true)
		if open.Load() != 1 {
			t.Fatal("the endpoint gets no time to open the window")
		}
		two, err := p.acquireH2(t.Context(), s, bodyToSend{true, bob, share.UnknownLength}, time.Time{})
		if err != nil || two == one {
			t.Errorf("%v, on the same connection", err)
		}
		got, err := p.acquireH2(t.Context(), s, bodyToSend{}, time.Time{})
		if err != nil || got != one {
			t.Errorf("%v, on another connection", err)
		}
		time.Sleep(s.maxSilence)
		s.release(got, bodyToSend{}, false, false)
		if synctest.Wait(); open.Load() != 1 || len(s.conns) != 1 || s.conns[0] != two {
			t.Errorf("%d are open", open.Load())
		}
		s.release(two, long, false, false)
		s.retire()
		synctest.Wait()
	})
}

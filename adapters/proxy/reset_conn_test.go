package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
)

// newResetConnPair returns a connection to an endpoint that has sent "hello" and reset it, after
// a write has met the reset.
func newResetConnPair(t *testing.T, discards, ends bool) (c *resetConn, over <-chan error) {
	t.Helper()
	gone := make(chan struct{})
	address := RawEndpoint(t, nil, func(_ int, peer net.Conn) {
		defer close(gone)
		_, _ = io.ReadFull(peer, make([]byte, 1)) // otherwise connecting may fail
		_, _ = io.WriteString(peer, "hello")
		if ends {
			_ = peer.(*net.TCPConn).CloseWrite()
		}
		_ = peer.(*net.TCPConn).SetLinger(0)
		_ = peer.Close()
	})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c = newResetConn(conn, discards)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-gone
	wrote := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Write([]byte("x")); err != nil || c.lost.Load() {
				wrote <- err
				return
			}
		}
	}()
	for !c.lost.Load() { // loopback delivers the reset asynchronously
		if context.Cause(t.Context()) != nil {
			t.Fatal("no write met the reset")
		}
	}
	return c, wrote
}

// TestResetConnReadsWhatCame: after a write has met a reset, Read returns the received data and
// then the reset. An end that the endpoint sent before remains an end.
func TestResetConnReadsWhatCame(t *testing.T) {
	for _, discards := range []bool{false, true} {
		for _, ends := range []bool{false, true} {
			c, wrote := newResetConnPair(t, discards, ends)
			text, err := io.ReadAll(c)
			if string(text) != "hello" || errors.Is(err, syscall.ECONNRESET) == ends {
				t.Errorf("discards %v, ends %v: %q, %v", discards, ends, text, err)
			}
			_ = c.Close()
			if err := <-wrote; err != nil && discards {
				t.Errorf("a write that discards: %v", err)
			}
		}
	}
}

// scripted is a connection whose every write meets a reset.
type scripted struct{ net.Conn }

func (scripted) Write([]byte) (int, error) { return 0, syscall.ECONNRESET }
func (scripted) Close() error              { return nil }

// TestWriteAfterResetWaits: a write that meets a reset returns when the connection is closed, or
// succeeds if the reader of the connection writes as well.
func TestWriteAfterResetWaits(t *testing.T) {
	if n, err := newResetConn(scripted{}, true).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("discarding: %d, %v", n, err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, wrote := newResetConn(scripted{}, false), make(chan error, 1)
		go func() {
			_, err := c.Write([]byte("abc"))
			wrote <- err
		}()
		synctest.Wait()
		select {
		case err := <-wrote:
			t.Fatalf("a write returned before the connection was closed: %v", err)
		default:
		}
		_ = c.Close()
		if err := <-wrote; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a write returned %v", err)
		}
	})
}

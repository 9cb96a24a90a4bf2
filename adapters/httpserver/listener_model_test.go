package httpserver

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// nullConn is a connection without a peer.
type nullConn struct{ net.Conn }

func (nullConn) Close() error { return nil }

// connModel is a listener's connections, in the order in which they became idle or busy.
type connModel struct {
	most, share int
	keyedFirst  bool
	open        []*conn
	accepted    []*conn            // in this order
	busy, done  map[*conn]bool     // done: had a request
	shares      map[netip.Addr]int // of each peer when its last connection was let in
}

// makesRoom returns the connections that give way to a new one, and whether it is let in.
func (m *connModel) makesRoom(from netip.Addr) (gone []*conn, in bool) {
	own := func(c *conn) bool { return c.peer == from }
	count := func() (n int) {
		for _, c := range m.open {
			if own(c) {
				n++
			}
		}
		return n
	}
	oldest := func(of func(*conn) bool) bool { // those without a request yet give way first
		if i := slices.IndexFunc(m.accepted, func(c *conn) bool { return slices.Contains(m.open, c) && !c.isAuthenticated.Load() && of(c) }); m.keyedFirst && i >= 0 {
			gone = append(gone, m.accepted[i])
			m.open = slices.DeleteFunc(m.open, func(c *conn) bool { return c == m.accepted[i] })
			return true
		}
		at := slices.IndexFunc(m.open, func(c *conn) bool { return !m.busy[c] && !m.done[c] && of(c) })
		if at < 0 {
			at = slices.IndexFunc(m.open, func(c *conn) bool { return !m.busy[c] && !c.isAuthenticated.Load() && of(c) })
		}
		if at < 0 {
			at = slices.IndexFunc(m.open, func(c *conn) bool { return !m.busy[c] && of(c) })
		}
		if at < 0 {
			return false
		}
		gone = append(gone, m.open[at])
		m.open = slices.Delete(m.open, at, at+1)
		return true
	}
	switch {
	case from.IsValid() && m.share > 0 && count() >= m.share:
		in = oldest(own)
		if in && count() >= m.share {
			oldest(own)
		}
		return gone, in
	case len(m.open) < m.most:
		return nil, true
	}
	if oldest(func(*conn) bool { return true }) {
		return gone, true
	}
	has := map[netip.Addr]int{}
	for _, c := range m.open {
		if c.peer.IsValid() && m.shares[c.peer] > 0 {
			has[c.peer]++
		}
	}
	most := max(2, m.most/32)
	for _, n := range has {
		most = max(most, n)
	}
	at := slices.IndexFunc(m.accepted, func(c *conn) bool {
		return slices.Contains(m.open, c) && has[c.peer] == most && !c.isAuthenticated.Load()
	})
	if from.IsValid() && count() >= max(2, m.most/32) || at < 0 {
		return nil, false
	}
	m.open = slices.DeleteFunc(m.open, func(c *conn) bool { return c == m.accepted[at] })
	return append(gone, m.accepted[at]), true
}

// TestConnectionsAgreeWithModel compares the listener with a model: never more connections are open than allowed,
// in total and per peer. One that has not had a request yet is closed first, then the longest idle one,
// then one that had a valid API key. With KeyedFirst, the one accepted first of those without a key
// is closed first, busy or not. Each is counted once when it opens and once when it closes.
func TestConnectionsAgreeWithModel(t *testing.T) {
	saw := map[string]int{}
	shares := []int{1, 1, 1, 2, 3, 0} // mostly so few that a peer reaches them
	rapid.Check(t, func(t *rapid.T) {
		reported, byPeer, byAll, noPeer, noAll := 0, 0, 0, 0, 0
		m := &connModel{most: rapid.IntRange(1, 6).Draw(t, "most"), share: rapid.SampledFrom(shares).Draw(t, "share"), busy: map[*conn]bool{}, done: map[*conn]bool{}, shares: map[netip.Addr]int{}}
		m.keyedFirst = rapid.Bool().Draw(t, "keyed first")
		l := newListener(nil, m.most, 1)
		l.keyedFirst = m.keyedFirst
		l.hooks = Hooks{Open: func(by int) { reported += by }, PeerShare: func(netip.Addr) int { return m.share },
			Refused: func() { noAll++ }, PeerRefused: func() { noPeer++ }, IdleClosed: func(by ConnLimit) {
				if by == ConnLimitPeer {
					byPeer++
				} else {
					byAll++
				}
			}}
		var gone []*conn
		for range rapid.IntRange(20, 80).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 12).Draw(t, "what"); {
			case what < 6:
				c := &conn{Conn: nullConn{}, of: l, peer: rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}).Draw(t, "peer")}
				closed, in := m.makesRoom(c.peer)
				gone = append(gone, closed...)
				if got := l.add(c); got != in {
					t.Fatalf("let in %v, want %v", got, in)
				}
				for _, old := range closed {
					if _, open := l.open[old]; open {
						t.Fatal("the longest idle connection is open")
					}
				}
				if in {
					m.open, m.accepted, m.shares[c.peer] = append(m.open, c), append(m.accepted, c), m.share
					if rapid.Bool().Draw(t, "request at once") {
						m.busy[c], m.done[c] = true, true
						c.turns(http.StateActive)
					}
				}
			case what < 8 && len(m.open) > 0:
				i := rapid.IntRange(0, len(m.open)-1).Draw(t, "who")
				c := m.open[i]
				m.open, gone = slices.Delete(m.open, i, i+1), append(gone, c)
				_ = c.Close()
			case what < 11 && len(m.open) > 0:
				i := rapid.IntRange(0, len(m.open)-1).Draw(t, "who")
				c := m.open[i]
				is := http.StateActive
				if m.busy[c] {
					is = http.StateIdle
					if rapid.Bool().Draw(t, "had a key") {
						MarkAuthenticated(context.WithValue(context.Background(), connKey{}, c))
					}
					m.open = append(slices.Delete(m.open, i, i+1), c)
				}
				m.busy[c], m.done[c] = !m.busy[c], true
				c.turns(is)
			case what == 11:
				m.share = rapid.SampledFrom(shares).Draw(t, "share")
			case what == 12 && len(gone) > 0:
				_ = gone[0].Close() // again
				gone[0].turns(http.StateIdle)
			}
			if l.count() != len(m.open) || reported != len(m.open) {
				t.Fatalf("%d are open, counted as %d, told as %d", len(m.open), l.count(), reported)
			}
			for at, of := range l.peers {
				if n := len(l.connsWhere(func(c *conn) bool { return c.peer == at })); n != of.open || n == 0 {
					t.Fatalf("%v has %d connections, counted as %d", at, n, of.open)
				}
			}
		}
		saw["own"] += byPeer
		saw["of all"] += byAll
		saw["refused for the peer"] += noPeer
		saw["refused for all"] += noAll
		l.mu.Lock()
		l.hasEnded = true
		l.settle()
		l.mu.Unlock()
		for len(m.open) > 0 {
			select {
			case <-l.empty():
				t.Fatalf("none, and %d are open", len(m.open))
			default:
			}
			_ = m.open[0].Close()
			m.open = m.open[1:]
		}
		<-l.empty()
		if len(l.peers) > 0 || l.rest != newResting(ConnLimitTotal) {
			t.Fatal("a peer is known that has no connection")
		}
	})
	for _, what := range []string{"own", "of all", "refused for the peer", "refused for all"} {
		if saw[what] == 0 {
			t.Errorf("never saw %q", what)
		}
	}
}

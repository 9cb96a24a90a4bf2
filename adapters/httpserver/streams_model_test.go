package httpserver

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// requestModel is a request of HTTP/2: it counts while it has one of both.
type requestModel struct {
	of          *conn
	number      uint32
	open, works bool // its stream has not ended; its handler has not returned
}

// streamModel is the requests of a listener's connections.
type streamModel struct {
	most, perConn int
	keyedFirst    bool
	shares        map[netip.Addr]int // 0: no limit
	conns         []*conn            // that are open, in the order in which they were accepted
	requests      []*requestModel
}

// of returns how many requests a connection has.
func (m *streamModel) of(c *conn) int {
	open, works := 0, 0
	for _, r := range m.requests {
		if r.of == c && r.open {
			open++
		}
		if r.of == c && r.works {
			works++
		}
	}
	return max(min(open, m.perConn), works)
}

// counts returns how many requests each peer has, and how many of all are within the shares.
func (m *streamModel) counts() (each map[netip.Addr]int, within int) {
	each = map[netip.Addr]int{}
	seen := map[*conn]bool{}
	for _, r := range m.requests {
		if !seen[r.of] {
			seen[r.of] = true
			each[r.of.peer] += m.of(r.of)
		}
	}
	for at, n := range each {
		if share := m.share(at); share > 0 {
			n = min(n, share)
		}
		within += n
	}
	return each, within
}

func (m *streamModel) share(at netip.Addr) int {
	if m.shares[at] == 0 {
		return 0
	}
	return max(m.shares[at], m.perConn)
}

// close drops a connection: its streams have ended, and its handlers go on.
func (m *streamModel) close(c *conn) {
	m.conns = slices.DeleteFunc(m.conns, func(o *conn) bool { return o == c })
	for _, r := range m.requests {
		r.open = r.open && r.of != c
	}
}

// begins begins the handler of a request. It returns the connection that is closed for it, and
// whether it is served, and if not, the limit.
func (m *streamModel) begins(r *requestModel) (gone *conn, by ConnLimit, served bool) {
	r.works = true
	each, within := m.counts()
	share := m.share(r.of.peer)
	switch {
	case share > 0 && each[r.of.peer] > share:
		r.works = false
		return nil, ConnLimitPeer, false
	case within <= m.most:
		return nil, NumConnLimits, true
	}
	if m.keyedFirst {
		if i := slices.IndexFunc(m.conns, func(c *conn) bool { return !c.isAuthenticated.Load() && m.of(c) > 0 }); i >= 0 {
			gone = m.conns[i]
		}
	} else if many := max(2, m.most/32); !r.of.peer.IsValid() || each[r.of.peer] < many {
		top := 0
		for at, n := range each {
			if n >= many && m.shares[at] > 0 {
				top = max(top, n)
			}
		}
		for _, c := range m.conns { // the first of those with the most
			if top > 0 && m.shares[c.peer] > 0 && each[c.peer] == top && !c.isAuthenticated.Load() && m.of(c) > 0 && (gone == nil || m.of(c) > m.of(gone)) {
				gone = c
			}
		}
	}
	if gone == nil {
		r.works = false
		return nil, ConnLimitTotal, false
	}
	m.close(gone)
	return gone, ConnLimitTotal, true
}

// tidy forgets requests that count no more, except the numbers of streams.
func (m *streamModel) tidy() {
	m.requests = slices.DeleteFunc(m.requests, func(r *requestModel) bool { return !r.open && !r.works })
}

// TestStreamsAgreeWithModel compares the requests of HTTP/2 that a listener counts with a model: a
// request counts until its stream has ended and its handler has returned. One above the share of
// its peer is refused. If all have too many, one of a peer with few closes a connection of the peer
// with the most, and any other is refused.
func TestStreamsAgreeWithModel(t *testing.T) {
	saw := map[string]int{}
	peers := []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.4")}
	rapid.Check(t, func(t *rapid.T) {
		m := &streamModel{most: rapid.IntRange(2, 12).Draw(t, "most"), perConn: rapid.IntRange(1, 4).Draw(t, "of a connection"), keyedFirst: rapid.IntRange(0, 3).Draw(t, "keyed first") == 0, shares: map[netip.Addr]int{}}
		for _, at := range peers[1:] {
			m.shares[at] = rapid.SampledFrom([]int{1, 3, 5, 8, 0}).Draw(t, "share")
		}
		l := newListener(nil, m.most, m.perConn)
		l.keyedFirst = m.keyedFirst
		reported, closed, byPeer, byAll, last := 0, 0, 0, 0, uint32(0)
		l.hooks = Hooks{PeerShare: func(at netip.Addr) int { return m.shares[at] }, Stream: func(by int) { reported += by },
			Refused: func() { byAll++ }, PeerRefused: func() { byPeer++ }, IdleClosed: func(ConnLimit) { closed++ }}
		pick := func(of func(*requestModel) bool) *requestModel {
			some := slices.Clone(m.requests)
			if some = slices.DeleteFunc(some, func(r *requestModel) bool { return !of(r) }); len(some) == 0 {
				return nil
			}
			return rapid.SampledFrom(some).Draw(t, "request")
		}
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 19).Draw(t, "what"); {
			case what < 2 && len(m.conns) < m.most:
				c := &conn{Conn: nullConn{}, of: l, peer: rapid.SampledFrom(peers).Draw(t, "peer")}
				c.from = c.peer
				wasClosed, wasByPeer, wasByAll := closed, byPeer, byAll
				if l.add(c) {
					m.conns = append(m.conns, c)
				}
				for _, old := range slices.Clone(m.conns) { // which one gives way is of TestConnectionsAgreeWithModel
					if _, open := l.open[old]; !open {
						m.close(old)
					}
				}
				closed, byPeer, byAll = wasClosed, wasByPeer, wasByAll
			case what < 8 && len(m.conns) > 0:
				r := &requestModel{of: rapid.SampledFrom(m.conns).Draw(t, "connection"), open: true}
				last += 2
				r.number = last - 1
				l.beginStream(r.of, r.number)
				l.beginStream(r.of, r.number) // its trailers
				m.requests = append(m.requests, r)
			case what < 14:
				r := pick(func(r *requestModel) bool { return r.open && !r.works && slices.Contains(m.conns, r.of) })
				if r == nil {
					continue
				}
				wasClosed, wasByPeer, wasByAll := closed, byPeer, byAll
				gone, by, served := m.begins(r)
				if got := l.beginHandler(r.of); got != served {
					t.Fatalf("served %v, want %v", got, served)
				}
				if (closed > wasClosed) != (gone != nil) || (byPeer > wasByPeer) != (by == ConnLimitPeer) || (byAll > wasByAll) != (by == ConnLimitTotal && gone == nil) {
					t.Fatalf("closed %d, refused %d and %d; want %v for limit %d", closed-wasClosed, byPeer-wasByPeer, byAll-wasByAll, gone != nil, by)
				}
			case what < 16:
				if r := pick(func(r *requestModel) bool { return r.works }); r != nil {
					r.works = false
					l.endHandler(r.of)
				}
			case what < 18:
				if r := pick(func(r *requestModel) bool { return r.open }); r != nil {
					r.open = false
					l.endStreams(r.of, r.number, r.number)
				}
			case what == 18 && len(m.conns) > 0:
				MarkAuthenticated(context.WithValue(context.Background(), connKey{}, rapid.SampledFrom(m.conns).Draw(t, "connection")))
			case what == 19 && len(m.conns) > 0:
				c := rapid.SampledFrom(m.conns).Draw(t, "connection")
				m.close(c)
				_ = c.Close()
				if l.beginStream(c, last+100); l.beginHandler(c) {
					t.Fatal("a request on a closed connection is served")
				}
			}
			m.tidy()
			checkStreams(t, m, l, reported)
		}
		saw["closed"], saw["refused for the peer"], saw["refused for all"] = saw["closed"]+closed, saw["refused for the peer"]+byPeer, saw["refused for all"]+byAll
		for _, c := range slices.Clone(m.conns) {
			_ = c.Close()
		}
		for _, r := range m.requests {
			if r.works {
				l.endHandler(r.of)
			}
		}
		if l.streams != 0 || reported != 0 || len(l.peers)+len(l.large) > 0 {
			t.Fatalf("%d and %d are left, of %d peers", l.streams, reported, len(l.peers))
		}
	})
	for _, what := range []string{"closed", "refused for the peer", "refused for all"} {
		if saw[what] == 0 {
			t.Errorf("never saw %q", what)
		}
	}
}

// checkStreams compares the counts and the open connections.
func checkStreams(t *rapid.T, m *streamModel, l *listener, reported int) {
	each, within := m.counts()
	all := 0
	for _, n := range each {
		all += n
	}
	if l.streams != within || reported != all {
		t.Fatalf("%d requests, %d within the shares; want %d, %d", reported, l.streams, all, within)
	}
	for at, of := range l.peers {
		if _, large := l.large[of]; of.streams != each[at] || large != (of.streams >= l.many()) || of.open == 0 && of.streams == 0 {
			t.Fatalf("%v has %d, want %d; that are many: %v", at, of.streams, each[at], large)
		}
	}
	for _, c := range m.conns {
		if _, open := l.open[c]; !open {
			t.Fatal("a wrong connection was closed")
		}
	}
	if len(l.open) != len(m.conns) {
		t.Fatalf("%d connections, want %d", len(l.open), len(m.conns))
	}
}

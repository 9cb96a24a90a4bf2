package httpserver

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A ConnLimit is a limit of connections.
type ConnLimit uint8

// The limits.
const (
	ConnLimitTotal ConnLimit = iota // of the listener
	ConnLimitPeer                   // of one peer of it
	NumConnLimits
)

func (b ConnLimit) String() string {
	return [NumConnLimits]string{"max_conns", "max_conns_per_peer"}[b]
}

// peer is the state of one peer that has connections.
type peer struct {
	open    int
	streams int // HTTP/2 requests
	share   int // when the last connection was let in; 0: it has no limit
	rest    restingConns
}

// A rank orders the connections without a request at work: the first ones give way first.
type rank uint8

const (
	rankFresh rank = iota // never completed the header of a request
	rankIdle              // did, but no request had a valid API key
	rankKeyed             // had a request with a valid API key
	ranks
)

// restingConns has the connections without a request at work, of a listener or of one of its
// peers.
type restingConns [ranks]idleList

func newResting(kind ConnLimit) (r restingConns) {
	for i := range r {
		r[i].kind = kind
	}
	return r
}

// list returns the list for a connection.
func (r *restingConns) list(c *conn) *idleList { return &r[c.rank] }

// givesWay returns the connection to close for a new one, or nil: of the first rank that has one, the
// one that rests for longest. For headerGrace, a connection that was just accepted ranks behind idle
// ones, and before those with a key: otherwise each newcomer would close the one before it.
func (r *restingConns) givesWay(now time.Time) *conn {
	var accepted *conn
	for i := range r {
		if rank(i) == rankKeyed && accepted != nil {
			return accepted
		}
		if c := r[i].oldest(now); c != nil {
			if rank(i) == rankFresh && c.isNew(now) {
				accepted = c
				continue
			}
			return c
		}
	}
	return nil
}

// isNew reports whether a connection that has not completed a header was accepted within headerGrace.
func (c *conn) isNew(now time.Time) bool {
	began := c.headerBegan.Load()
	return !c.yields && !c.readEnded.Load() && began > 0 && now.Sub(time.Unix(0, began)) < headerGrace
}

// addressOf returns the address of the other side of a connection. It is not valid if there is
// none, as of a Unix socket.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// peerOf returns the peer in whose share an address is counted: itself if it is of IPv4, its
// network /64 if it is of IPv6.
func peerOf(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	network, err := a.Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return network.Addr()
}

// idleLinks is the place of a connection in an idleList.
type idleLinks struct {
	prev, next *conn
	in         bool
}

// idleList has idle connections, the longest idle one first. All of its methods take constant
// time. A connection is in one list of each kind.
type idleList struct {
	kind        ConnLimit
	first, last *conn
}

func (l *idleList) push(c *conn) {
	links := &c.links[l.kind]
	if links.in {
		return
	}
	*links = idleLinks{prev: l.last, in: true}
	if l.last == nil {
		l.first = c
	} else {
		l.last.links[l.kind].next = c
	}
	l.last = c
}

func (l *idleList) remove(c *conn) {
	links := &c.links[l.kind]
	if !links.in {
		return
	}
	if links.prev == nil {
		l.first = links.next
	} else {
		links.prev.links[l.kind].next = links.next
	}
	if links.next == nil {
		l.last = links.prev
	} else {
		links.next.links[l.kind].prev = links.prev
	}
	*links = idleLinks{}
}

const (
	idleLooks   = 16                     // connections that are looked at to find one that may be closed
	headerGrace = 250 * time.Millisecond // in which a header that has begun is not broken off
)

// oldest returns the first connection that may be closed, or nil.
func (l *idleList) oldest(now time.Time) *conn {
	c := l.first
	for range idleLooks {
		if c == nil || c.mayGiveWay(now) {
			return c
		}
		c = c.links[l.kind].next
	}
	return nil
}

// mayGiveWay reports whether nothing has been received on a resting connection since it came or since
// its last request, or whether a handshake or header that has begun is overdue.
func (c *conn) mayGiveWay(now time.Time) bool {
	if c.yields || c.readEnded.Load() || !c.hasHeaderPart.Load() && !unread(c.Conn) {
		return true
	}
	began := c.headerBegan.Load()
	return began > 0 && now.Sub(time.Unix(0, began)) >= headerGrace
}

// makeRoom closes resting connections if one more of a peer would be too many: those of the peer
// itself if it has its share, else one of all. A connection with a request at work is closed only for one
// of a peer that has not many: see crowded.
// It returns those to be closed, and the bound that refuses the new one. The caller holds l.mu.
func (l *listener) makeRoom(of *peer, share int) (closed [2]*conn, by ConnLimit, ok bool) {
	from := &l.rest
	switch {
	case of != nil && share > 0 && of.open >= share:
		from, by = &of.rest, ConnLimitPeer
	case len(l.open) < l.most:
		return closed, by, true
	}
	for i := range closed { // two, so that a share that became smaller is reached
		if i > 0 && (by == ConnLimitTotal || of.open < share) {
			break
		}
		if closed[i] = from.givesWay(l.now()); closed[i] != nil {
			l.forget(closed[i])
		}
	}
	if closed[0] == nil && by == ConnLimitTotal && (of == nil || of.open < l.many()) {
		if closed[0] = l.crowded(); closed[0] != nil {
			l.forget(closed[0])
		}
	}
	return closed, by, closed[0] != nil
}

// manyParts is how many parts the connections of a listener have, of which a peer that has many holds one or more.
const manyParts = 32

// many returns how many connections are many for one peer.
func (l *listener) many() int { return max(2, l.most/manyParts) }

// crowded returns the connection to close for one of a peer that has not many, if every connection has a request: of the peer that has the
// most, if those are many, the one accepted first of those that never had an authenticated request; nil: there is none. So a few
// peers cannot hold all connections with requests that last. Peers without a limit are spared. The caller holds l.mu.
func (l *listener) crowded() (first *conn) {
	most := l.many()
	for _, p := range l.peers {
		if p.share > 0 {
			most = max(most, p.open)
		}
	}
	for c := range l.open {
		p := l.peers[c.peer]
		if p == nil || p.share == 0 || p.open < most || c.isAuthenticated.Load() {
			continue
		}
		if first == nil || c.accepted < first.accepted {
			first = c
		}
	}
	return first
}

// enter counts a connection, which has not completed a header. The caller holds l.mu.
func (l *listener) enter(c *conn, share int) {
	l.open[c] = struct{}{}
	l.accepted++
	c.accepted = l.accepted
	c.rank, c.yields = rankFresh, l.keyedFirst
	if c.peer.IsValid() {
		of := l.peers[c.peer]
		if of == nil {
			of = &peer{rest: newResting(ConnLimitPeer)}
			l.peers[c.peer] = of
		}
		of.open++
		c.holder = of
		l.streams -= l.within(of)
		of.share = share
		l.streams += l.within(of)
		of.rest.list(c).push(c)
	}
	l.rest.list(c).push(c)
	l.tell(1)
}

// forget uncounts a connection, once. The caller holds l.mu.
func (l *listener) forget(c *conn) {
	if _, open := l.open[c]; !open {
		return
	}
	delete(l.open, c)
	l.rest.list(c).remove(c)
	if of := l.peers[c.peer]; of != nil {
		of.rest.list(c).remove(c)
		of.open--
		l.leaves(c.peer, of)
	}
	c.streams.open = nil
	l.recount(c)
	l.tell(-1)
}

// becomes notes whether a connection is idle from now on.
func (l *listener) becomes(c *conn, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open || c.yields {
		return
	}
	if !idle {
		l.works(c)
		return
	}
	of := l.peers[c.peer]
	if c.rank == rankIdle && c.isAuthenticated.Load() && !c.links[ConnLimitTotal].in {
		c.rank = rankKeyed
	}
	l.rest.list(c).push(c)
	if of != nil {
		of.rest.list(c).push(c)
	}
}

// works takes a connection with a request from the lists of those that may be closed. The caller
// holds l.mu.
func (l *listener) works(c *conn) {
	l.rest.list(c).remove(c)
	if of := l.peers[c.peer]; of != nil {
		of.rest.list(c).remove(c)
	}
	c.rank = rankIdle // its first header is complete
}

// keep notes that a connection has a request with a valid credential: it does not give way during
// a request any more.
func (l *listener) keep(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; open && c.yields {
		c.yields = false
		l.works(c)
	}
}

// crowdPause is the least time between two log lines about connections that were too many.
const crowdPause = 10 * time.Second

// crowdLog logs connections or HTTP/2 requests that were too many, a line for many of them.
type crowdLog struct {
	log     *slog.Logger
	text    string
	address string

	mu      sync.Mutex
	next    time.Time // no line before
	closed  int       // since the last line
	refused int
}

// note counts connections that were closed for something new, or the new one that was refused.
func (g *crowdLog) note(now time.Time, from netip.Addr, limit string, closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed += closed; closed == 0 {
		g.refused++
	}
	if g.log == nil || now.Before(g.next) {
		return
	}
	of := "unix"
	if from.IsValid() {
		of = from.String()
	}
	g.log.Warn(g.text, "address", g.address, "limit", limit, "peer", of, "idle_closed", g.closed, "refused", g.refused)
	g.next, g.closed, g.refused = now.Add(crowdPause), 0, 0
}

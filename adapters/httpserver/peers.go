package httpserver

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Bound is a limit of connections.
type Bound uint8

// The bounds.
const (
	BoundTotal Bound = iota // of the listener
	BoundPeer               // of one peer of it
	Bounds
)

func (b Bound) String() string { return [Bounds]string{"max_conns", "max_conns_per_peer"}[b] }

// peer is what a listener knows of one peer that has connections.
type peer struct {
	open int
	idle idleList
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
	kind        Bound
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

// idleLooks is how many idle connections are looked at to find one without a request on its way.
const idleLooks = 16

// oldest returns the connection that is idle for longest and on which no request has begun to
// come, or nil.
func (l *idleList) oldest() *conn {
	c := l.first
	for range idleLooks {
		if c == nil || !c.asks() {
			return c
		}
		c = c.links[l.kind].next
	}
	return nil
}

// makeRoom closes idle connections where one more of a peer would be too many: those of the
// peer itself if it has its share, else the longest idle one of all. It returns those to be
// closed, and the bound that refuses the new one. The caller holds l.mu.
func (l *listener) makeRoom(of *peer, share int) (closed [2]*conn, by Bound, ok bool) {
	from := &l.idle
	switch {
	case of != nil && share > 0 && of.open >= share:
		from, by = &of.idle, BoundPeer
	case len(l.open) < l.most:
		return closed, by, true
	}
	for i := range closed { // two, so that a share that became smaller is reached
		if i > 0 && (by == BoundTotal || of.open < share) {
			break
		}
		if closed[i] = from.oldest(); closed[i] != nil {
			l.forget(closed[i])
		}
	}
	return closed, by, closed[0] != nil
}

// enter counts a connection, which is idle. The caller holds l.mu.
func (l *listener) enter(c *conn) {
	l.open[c] = struct{}{}
	if c.peer.IsValid() {
		of := l.peers[c.peer]
		if of == nil {
			of = &peer{idle: idleList{kind: BoundPeer}}
			l.peers[c.peer] = of
		}
		of.open++
		of.idle.push(c)
	}
	l.idle.push(c)
	l.tell(1)
}

// forget uncounts a connection, once. The caller holds l.mu.
func (l *listener) forget(c *conn) {
	if _, open := l.open[c]; !open {
		return
	}
	delete(l.open, c)
	l.idle.remove(c)
	if of := l.peers[c.peer]; of != nil {
		of.idle.remove(c)
		if of.open--; of.open == 0 {
			delete(l.peers, c.peer)
		}
	}
	l.tell(-1)
}

// becomes notes whether a connection is idle from now on.
func (l *listener) becomes(c *conn, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	of := l.peers[c.peer]
	if !idle {
		l.idle.remove(c)
		if of != nil {
			of.idle.remove(c)
		}
		return
	}
	l.idle.push(c)
	if of != nil {
		of.idle.push(c)
	}
}

// crowdPause is the least time between two log lines about connections that were too many.
const crowdPause = 10 * time.Second

// crowdLog logs connections that were too many, a line for many of them.
type crowdLog struct {
	log     *slog.Logger
	address string

	mu      sync.Mutex
	next    time.Time // no line before
	closed  int       // since the last line
	refused int
}

// note counts idle connections that were closed for a new one, or the new one that was refused.
func (g *crowdLog) note(now time.Time, from netip.Addr, by Bound, closed int) {
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
	g.log.Warn("connection limit reached", "address", g.address, "limit", "listen."+by.String(), "peer", of, "idle_closed", g.closed, "refused", g.refused)
	g.next, g.closed, g.refused = now.Add(crowdPause), 0, 0
}

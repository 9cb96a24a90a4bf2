// Package rejection limits the rejected requests of each peer of a listener, and what else of a rejection is rated (Credit).
//
//	credit of a peer:  Burst ──a rejected request takes one──► half: new connections start with a delay
//	                     ▲                                  └──► none: a rejected request closes its connection
//	                     └────────── PerSecond ─────────────────
//
// A rejected request costs its client nothing, and the node an admission and a response. So the
// requests of a peer are not limited by what they cost the peer, but by this package. It limits the
// share of a peer and bars none: a request that is accepted takes no credit, on whatever connection,
// and a new connection starts within MaxDelay.
package rejection

import (
	"time"

	"macronode/core/types"
)

// The limits of one peer.
const (
	Burst     = 500 // rejected requests at once
	PerSecond = 100 // and how many more each second

	// StartsPerSecond is how many of its new connections start each second while the peer has less
	// than half of its credit. If more than MaxDelay admits are waiting, their starts are spread over
	// the second half of MaxDelay.
	StartsPerSecond = 200
	MaxDelay        = 2 * time.Second

	// MaxPaid is how many rejected requests of a connection take no credit, because as many were accepted
	// on it before: a client that is somewhat above a quota is not limited.
	MaxPaid = 100

	// MaxPeers is how many peers without full credit are remembered at least. If there are more, those
	// that were rejected last are.
	MaxPeers = 4096
)

const (
	refill = time.Second / PerSecond // the time in which a peer gets the credit for one request
	whole  = Burst * refill          // the time in which it gets all of it
	apart  = time.Second / StartsPerSecond
)

// Peers has the credit of each peer.
//
// Invariants:
//
//	R1  a peer that is not remembered has its whole credit, unless more than MaxPeers were rejected since
//	R2  at most 2*MaxPeers peers are remembered
//	R3  of a peer, at most Burst + t*PerSecond requests are within the limit in any time t
type Peers[K comparable] struct {
	recent, earlier map[K]peer
	since           types.Instant // when recent was empty
}

type peer struct {
	credit Credit
	start  types.Instant // when the connection that is delayed last starts
}

// New returns Peers that all have their whole credit.
func New[K comparable]() Peers[K] {
	return Peers[K]{recent: make(map[K]peer), earlier: make(map[K]peer)}
}

// Reject takes the credit for a rejected request of a peer. It returns false if there is none.
func (p *Peers[K]) Reject(now types.Instant, of K) (within bool) {
	is, _ := p.find(of)
	if !is.credit.Take(now, Rate{Burst, refill}) {
		return false
	}
	p.set(now, of, is)
	return true
}

// Delay returns how long a new connection of a peer waits before it starts: not at all while the
// peer has half of its credit.
func (p *Peers[K]) Delay(now types.Instant, of K) time.Duration {
	was, ok := p.find(of)
	if !ok || was.credit.whole <= now.Add(whole/2) {
		return 0
	}
	start := max(was.start, now).Add(apart)
	if start > now.Add(MaxDelay) {
		start = now.Add(MaxDelay/2 + apart)
	}
	p.set(now, of, peer{was.credit, start})
	return time.Duration(start - now)
}

func (p *Peers[K]) find(of K) (peer, bool) {
	if known, ok := p.recent[of]; ok {
		return known, true
	}
	known, ok := p.earlier[of]
	return known, ok
}

// set remembers a peer. What was not set for as long as a whole credit takes is forgotten: it says
// nothing any more.
func (p *Peers[K]) set(now types.Instant, of K, is peer) {
	if _, ok := p.recent[of]; now >= p.since.Add(whole) || !ok && len(p.recent) >= MaxPeers {
		clear(p.earlier)
		p.recent, p.earlier, p.since = p.earlier, p.recent, now
	}
	p.recent[of] = is
}

// Len is the number of peers that are remembered.
func (p *Peers[K]) Len() int { return len(p.recent) + len(p.earlier) }

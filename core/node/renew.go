package node

import (
	"errors"
	"fmt"
	"slices"

	"macronode/core/admit"
	"macronode/core/event"
	"macronode/core/quota"
	"macronode/core/upstream"
	"macronode/core/words"
)

// MaxRoutes is how many routes a gate may have.
const MaxRoutes = 1024

// Why a node does not take a gate. What quotas and upstreams want, their rooms say.
var (
	ErrPlaces  = errors.New("gate: permits and queues want more places than the node was started with")
	ErrReplies = errors.New("gate: more permits for money than replies that the node was started to hold")
	ErrCalls   = errors.New("gate: more permits for upstreams than calls that the node was started with")
	ErrRoutes  = errors.New("gate: more than 1024 routes")
	ErrLess    = errors.New("gate: less than nothing")
	ErrQuantum = errors.New("gate: the quantum is nothing, or 2^40 bytes or more")
)

// With is c with a gate instead of its own: what a node is made with, and what one that
// was made with c is behind a Renew.
func (c Config) With(g *event.Gate) Config {
	a := &c.Admit
	*a = admit.Limits{Places: a.Places, Facets: g.Facets, Quantum: g.Quantum, Weights: g.Weights, Least: a.Least,
		Wait: g.Wait, Grace: a.Grace, Routes: g.Routes}
	c.Quotas, c.Beyond, c.Pace, c.Gate = make([]quota.Rule, len(g.Quotas)), make([]upstream.Rules, len(g.Upstreams)), g.Pace, g.Version
	for i, r := range g.Quotas {
		c.Quotas[i] = quota.Rule(r)
	}
	for i, r := range g.Upstreams {
		c.Beyond[i] = upstream.Rules(r)
	}
	return c
}

// Applied is the gate that c has: the other way round.
func (c *Config) Applied() event.Gate {
	a := &c.Admit
	g := event.Gate{Version: c.Gate, Facets: a.Facets, Quantum: a.Quantum, Weights: a.Weights, Wait: a.Wait, Pace: c.Pace, Routes: a.Routes}
	for _, r := range c.Quotas {
		g.Quotas = append(g.Quotas, event.Quota(r))
	}
	for _, r := range c.Beyond {
		g.Upstreams = append(g.Upstreams, event.Upstream(r))
	}
	return g
}

// Takes says why a node that was made with c does not take a gate. It may be asked
// anywhere, and beforehand: what it says never changes, for no gate moves the places, the
// replies and the calls of a node.
func (c *Config) Takes(g *event.Gate) error {
	next := c.With(g)
	if err := errors.Join(quota.CheckRules(next.Quotas), upstream.CheckRules(next.Beyond)); err != nil {
		return err
	}
	places := 0
	for f := range g.Facets {
		of := &g.Facets[f]
		if least := min(of.Permits, of.Queue, of.Flow, slices.Min(of.Class[:]), of.FlowPermits, slices.Min(of.ClassPermits[:])); least < 0 {
			return fmt.Errorf("%w: %d for %v", ErrLess, least, words.Facet(f))
		}
		places += of.Permits + of.Queue
	}
	switch permits := [...]int{g.Facets[words.Money].Permits, g.Facets[words.Beyond].Permits + g.Facets[words.Streams].Permits}; {
	case places > c.Admit.Places:
		return fmt.Errorf("%w: %d, and it has %d", ErrPlaces, places, c.Admit.Places)
	case permits[0] > c.Held:
		return fmt.Errorf("%w: %d, and it holds %d", ErrReplies, permits[0], c.Held)
	case permits[1] > max(1, c.Calls):
		return fmt.Errorf("%w: %d, and it has %d", ErrCalls, permits[1], c.Calls)
	case g.Quantum == 0 || g.Quantum >= 1<<40:
		return ErrQuantum
	case min(g.Wait, g.Pace) < 0:
		return fmt.Errorf("%w: a wait of %v", ErrLess, min(g.Wait, g.Pace))
	case len(g.Routes) > MaxRoutes:
		return ErrRoutes
	}
	for i, most := range g.Routes {
		if most < 0 {
			return fmt.Errorf("%w: %d of route %d", ErrLess, most, i)
		}
	}
	return nil
}

// renew puts a gate in the place of the one that is. Who waits and may not any more is told
// so; who may go now goes.
func (n *Node) renew(now words.Instant, in *event.Renew, out *event.Effects) {
	if n.config.Takes(&in.Gate) != nil {
		return
	}
	n.config = n.config.With(&in.Gate)
	n.quota.Renew(now, n.config.Quotas, in.Gate.Fresh)
	n.admit.Renew(n.config.Admit)
	n.beyond.Renew(now, n.config.Beyond)
	n.ready.Ail(words.NoEndpoint, n.beyond.Down() != 0)
	n.ready.Await(there(n.config.Beyond))
	for {
		t, waited, ok := n.admit.Unserved(now)
		if !ok {
			break
		}
		n.quota.Undo(now, t.Slot())
		n.refuses(event.Verdict{Ticket: t, Why: event.NoWeight, Waited: waited}, out)
	}
	n.permit(now, out)
}

// there are the upstreams of which there are any endpoints: bit i is upstream i.
func there(all []upstream.Rules) (bits uint64) {
	for i := range all {
		if all[i].Endpoints > 0 {
			bits |= 1 << i
		}
	}
	return bits
}

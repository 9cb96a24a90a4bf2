package node

import (
	"errors"
	"fmt"
	"slices"

	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

// MaxRoutes is the maximum number of routes of a policy.
const MaxRoutes = 1024

// Why a policy is invalid. Packages quota and upstream report what is wrong with theirs.
var (
	ErrSlots    = errors.New("policy: permits and queues need more slots than the node was started with")
	ErrReplies  = errors.New("policy: more wallet permits than the replies that the node can hold since its start")
	ErrCalls    = errors.New("policy: more permits for upstreams than the calls that the node was started with")
	ErrRoutes   = errors.New("policy: more than 1024 routes")
	ErrNegative = errors.New("policy: a negative number")
	ErrQuantum  = errors.New("policy: the quantum must be more than 0 and less than 2^40 bytes")
)

// WithPolicy returns c with another policy, as ApplyPolicy leaves it.
func (c Config) WithPolicy(g *event.Policy) Config {
	a := &c.Admission
	*a = admission.Limits{Places: a.Places, Facets: g.Facets, Quantum: g.Quantum, Weights: g.Weights, Least: a.Least,
		Wait: g.MaxWait, GiveWay: g.GiveWayAfter, Grace: a.Grace, Routes: g.Routes}
	c.Quotas, c.Upstreams, c.MaxPacingDelay, c.PolicyVersion = make([]quota.Rule, len(g.Quotas)), make([]upstream.Rules, len(g.Upstreams)), g.MaxPacingDelay, g.Version
	for i, r := range g.Quotas {
		c.Quotas[i] = quota.Rule(r)
	}
	for i, r := range g.Upstreams {
		c.Upstreams[i] = upstream.Rules(r)
	}
	return c
}

// Policy returns the policy of c.
func (c *Config) Policy() event.Policy {
	a := &c.Admission
	g := event.Policy{Version: c.PolicyVersion, Facets: a.Facets, Quantum: a.Quantum, Weights: a.Weights, MaxWait: a.Wait, GiveWayAfter: a.GiveWay, MaxPacingDelay: c.MaxPacingDelay, Routes: slices.Clone(a.Routes)}
	for _, r := range c.Quotas {
		g.Quotas = append(g.Quotas, event.Quota(r))
	}
	for _, r := range c.Upstreams {
		g.Upstreams = append(g.Upstreams, event.Upstream(r))
	}
	return g
}

// CheckPolicy returns why a node with the configuration c does not accept a policy. The result does not
// depend on the state of the node, so it can be checked in advance.
func (c *Config) CheckPolicy(g *event.Policy) error {
	next := c.WithPolicy(g)
	if err := errors.Join(quota.CheckRules(next.Quotas), upstream.CheckRules(next.Upstreams)); err != nil {
		return err
	}
	places := 0
	for f := range g.Facets {
		of := &g.Facets[f]
		if least := min(of.Permits, of.Queue, of.PerFlow, slices.Min(of.PerClass[:]), of.FlowPermits, slices.Min(of.ClassPermits[:])); least < 0 {
			return fmt.Errorf("%w: %d for %v", ErrNegative, least, types.Facet(f))
		}
		places += of.Permits + of.Queue
	}
	switch permits := [...]int{g.Facets[types.FacetWallet].Permits, g.Facets[types.FacetProxy].Permits + g.Facets[types.Streams].Permits}; {
	case places > c.Admission.Places:
		return fmt.Errorf("%w: %d, and it has %d", ErrSlots, places, c.Admission.Places)
	case permits[0] > c.MaxHeldReplies:
		return fmt.Errorf("%w: %d, and it holds %d", ErrReplies, permits[0], c.MaxHeldReplies)
	case permits[1] > max(1, c.MaxUpstreamCalls):
		return fmt.Errorf("%w: %d, and it has %d", ErrCalls, permits[1], c.MaxUpstreamCalls)
	case g.Quantum == 0 || g.Quantum >= 1<<40:
		return ErrQuantum
	case min(g.MaxWait, g.MaxPacingDelay, g.GiveWayAfter) < 0:
		return fmt.Errorf("%w: a wait of %v", ErrNegative, min(g.MaxWait, g.MaxPacingDelay, g.GiveWayAfter))
	case len(g.Routes) > MaxRoutes:
		return ErrRoutes
	}
	for i, of := range g.Routes {
		if least := min(of.Requests, of.PerFlow); least < 0 {
			return fmt.Errorf("%w: %d of route %d", ErrNegative, least, i)
		}
	}
	return nil
}

// applyPolicy replaces the policy. Queued requests that are no longer permitted are rejected; those that
// may go now are admitted.
func (n *Node) applyPolicy(now types.Instant, in *event.ApplyPolicy, out *event.Effects) {
	if n.config.CheckPolicy(&in.Policy) != nil {
		return
	}
	n.config = n.config.WithPolicy(&in.Policy)
	n.quota.ApplyPolicy(now, n.config.Quotas, in.Policy.ResetQuotas)
	n.admission.Renew(n.config.Admission)
	n.upstreams.ApplyPolicy(now, n.config.Upstreams)
	n.readiness.SetDegraded(types.NoEndpoint, n.upstreams.Down() != 0)
	n.readiness.AwaitUpstreams(configuredUpstreams(n.config.Upstreams))
	for {
		t, waited, ok := n.admission.Unserved(now)
		if !ok {
			break
		}
		n.quota.Undo(now, t.Slot())
		n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectClassDisabled, Waited: waited}, out)
	}
	n.grantPermits(now, out)
}

// configuredUpstreams returns the upstreams that have endpoints: bit i is upstream i.
func configuredUpstreams(all []upstream.Rules) (bits uint64) {
	for i := range all {
		if all[i].Endpoints > 0 {
			bits |= 1 << i
		}
	}
	return bits
}

package settings

import (
	"encoding/hex"
	"fmt"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/loop"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// policyOf returns the policy of a configuration with the numbers is, which replaces the policy before: limits of
// admission, queues, quotas and upstreams.
func policyOf(c *config.Config, is Numbers, before *Reload) event.Policy {
	q := &c.Queue
	g := event.Policy{Version: before.Policy.Version + 1, Quotas: quotas(c, is), ResetQuotas: is.Rules.changedBits(before.Numbers.Rules),
		Quantum: uint64(q.Quantum), MaxWait: q.MaxWait, MaxPacingDelay: q.Pace, GiveWayAfter: c.Permits.GiveWay,
		Weights: [types.NumClasses]uint64{types.ClassInternal: uint64(q.Weights.Internal), types.ClassAuthed: uint64(q.Weights.Authed), types.ClassAnon: uint64(q.Weights.Anon)},
		Routes:  routeLimits(c, is), Upstreams: upstreams(c, is, before)}
	g.Quantum = quota.Turn(g.Quotas, g.Weights, g.Quantum, least, g.MaxWait)
	for f, of := range facetRooms(c) {
		g.Facets[f] = event.FacetLimits{Permits: of.permits, Queue: of.queue, PerFlow: max(1, of.queue*q.Flow/100),
			ClassPermits: classPermits(c, of.permits), FlowPermits: max(1, of.permits*c.Permits.Flow/100)}
		for class := range types.NumClasses {
			g.Facets[f].PerClass[class] = max(1, of.queue*q.Class/100)
		}
	}
	return g
}

// A facetRoom is how many requests of a facet may be in progress, and may wait.
type facetRoom struct{ permits, queue int }

func facetRooms(c *config.Config) [types.NumFacets]facetRoom {
	q, p := &c.Queue, &c.Permits
	return [types.NumFacets]facetRoom{types.FacetWallet: {p.Wallet, q.Wallet}, types.FacetQuery: {p.Query, q.Query}, types.FacetProxy: {p.Proxy, q.Proxy}, types.Streams: {p.Streams, q.Streams}, types.FacetStorage: {p.Storage, q.Storage}}
}

// classPermits returns how many of permits each class may have together with the lower classes.
func classPermits(c *config.Config, permits int) [types.NumClasses]int {
	authed := max(1, permits*(100-c.Permits.Internal)/100)
	return [types.NumClasses]int{types.ClassInternal: permits, types.ClassAuthed: authed, types.ClassAnon: min(authed, max(1, permits*c.Permits.Anon/100))}
}

// admissionLimits returns the limits of admission that a reload cannot change.
func admissionLimits(c *config.Config) admission.Limits {
	return admission.Limits{Least: least, Grace: time.Second, Places: admissionSlots(c).Total()}
}

const least = 4 << 10 // the least cost of a request for its flow, in bytes

// quotaLimits returns how many callers have counters of their own.
func quotaLimits(c *config.Config) quota.Limits {
	return quota.Limits{Peers: c.Rows.Peers, Keys: c.APIKeys, Tenants: c.Wallet.Limits.Tenants}
}

// quotas returns the quota rules by number.
func quotas(c *config.Config, is Numbers) []event.Quota {
	rules := make([]event.Quota, len(is.Rules.Names))
	for i := range c.Quotas {
		q := &c.Quotas[i]
		units, every := q.Rate()
		route := uint16(0)
		if at, ok := c.Route(q.Route); ok {
			route = uint16(httpapi.Endpoints() + is.route[at])
		}
		rules[is.rule[i]] = event.Quota{Scope: q.Scope, Route: route, Unit: q.Unit(), Rate: units, Every: every, Burst: q.Burst.Units,
			Classes: quota.ClassSetOf(q.Classes...), Shadow: q.Shadow}
	}
	return rules
}

// policies returns the quotas as clients see them.
func policies(c *config.Config, n Numbers) []httpapi.Policy {
	all := make([]httpapi.Policy, len(n.Rules.Names))
	for i := range c.Quotas {
		q := &c.Quotas[i]
		units, every := q.Rate()
		window := time.Duration(float64(every) / float64(max(units, 1)) * float64(q.Burst.Units))
		all[n.rule[i]] = httpapi.Policy{Name: quotaName(c, i+1), Quota: q.Burst.Units, Window: window, Bytes: q.Unit() == types.UnitBytes}
	}
	return all
}

// quotaName returns the name of a quota, or its number from 1.
func quotaName(c *config.Config, rule int) string {
	if name := c.Quotas[rule-1].Name; name != "" {
		return name
	}
	return fmt.Sprintf("quotas-%d", rule)
}

// admissionSlots returns the slots of each class: one for each permit and each place in a queue, so that no class
// or caller can take those of others.
func admissionSlots(c *config.Config) (slots loop.ClassLimits) {
	for _, of := range facetRooms(c) {
		for class := range slots {
			slots[class] += of.permits + of.queue
		}
	}
	return slots
}

// Version identifies a configuration by a hash of its contents.
func Version(c *config.Config) string {
	sum := digest.Sum([]byte(c.Effective()))
	return hex.EncodeToString(sum[:6])
}

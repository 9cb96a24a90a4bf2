package main

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/gateway/admission"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// gateOf is who may come in, who may wait, and where requests go on to: the gate of an edition
// whose numbers are is, behind another.
func gateOf(c *config.Config, is numbering, before *edition) event.Policy {
	q := &c.Queue
	g := event.Policy{Version: before.gate.Version + 1, Quotas: quotas(c, is), ResetQuotas: is.rules.fresh(before.numbers.rules),
		Quantum: uint64(q.Quantum), MaxWait: q.MaxWait, MaxPacingDelay: q.Pace,
		Weights: [types.NumClasses]uint64{types.ClassInternal: uint64(q.Weights.Internal), types.ClassAuthed: uint64(q.Weights.Authed), types.ClassAnon: uint64(q.Weights.Anon)},
		Routes:  routeLimits(c, is), Upstreams: upstreams(c, is, before)}
	g.Quantum = quota.Turn(g.Quotas, g.Weights, g.Quantum, least, g.MaxWait)
	for f, of := range rooms(c) {
		g.Facets[f] = event.FacetLimits{Permits: of.permits, Queue: of.queue, PerFlow: max(1, of.queue*q.Flow/100),
			ClassPermits: classPermits(c, of.permits), FlowPermits: max(1, of.permits*c.Permits.Flow/100)}
		for class := range types.NumClasses {
			g.Facets[f].PerClass[class] = max(1, of.queue*q.Class/100)
		}
	}
	return g
}

// A facetRoom is how many requests of a facet may be at work, and may wait.
type facetRoom struct{ permits, queue int }

func rooms(c *config.Config) [types.NumFacets]facetRoom {
	q, p := &c.Queue, &c.Permits
	return [types.NumFacets]facetRoom{types.FacetWallet: {p.Money, q.Money}, types.FacetQuery: {p.Lists, q.Lists}, types.FacetProxy: {p.Beyond, q.Beyond}, types.Streams: {p.Streams, q.Streams}, types.FacetStorage: {p.Storage, q.Storage}}
}

// classPermits returns how many of so many permits each class may have, together with the
// classes behind it.
func classPermits(c *config.Config, permits int) [types.NumClasses]int {
	authed := max(1, permits*(100-c.Permits.Internal)/100)
	return [types.NumClasses]int{types.ClassInternal: permits, types.ClassAuthed: authed, types.ClassAnon: min(authed, max(1, permits*c.Permits.Anon/100))}
}

// admitted is what of who may be in no change moves: all the places that there are.
func admitted(c *config.Config) admission.Limits {
	return admission.Limits{Least: least, Grace: time.Second, Places: passes(c).All()}
}

const least = 4 << 10 // bytes that a request costs its flow at least

// subjects is how many callers have counters of their own.
func subjects(c *config.Config) quota.Limits {
	return quota.Limits{Peers: c.Rows.Peers, Keys: c.APIKeys, Tenants: c.Wallet.Limits.Tenants}
}

// quotas are the rules of the configuration, by their numbers.
func quotas(c *config.Config, is numbering) []event.Quota {
	rules := make([]event.Quota, len(is.rules.names))
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

// policies are what callers are told of them.
func policies(c *config.Config, n numbering) []httpapi.Policy {
	all := make([]httpapi.Policy, len(n.rules.names))
	for i := range c.Quotas {
		q := &c.Quotas[i]
		units, every := q.Rate()
		window := time.Duration(float64(every) / float64(max(units, 1)) * float64(q.Burst.Units))
		all[n.rule[i]] = httpapi.Policy{Name: quotaName(c, i+1), Quota: q.Burst.Units, Window: window, Bytes: q.Unit() == types.UnitBytes}
	}
	return all
}

// quotaName is what a quota is called, from 1: its name, or its number.
func quotaName(c *config.Config, rule int) string {
	if name := c.Quotas[rule-1].Name; name != "" {
		return name
	}
	return fmt.Sprintf("quotas-%d", rule)
}

// passes returns the slots of each class: as many as there are permits and places in queues, so
// that no class and no caller can take those of others.
func passes(c *config.Config) (slots loop.Door) {
	for _, of := range rooms(c) {
		for class := range slots {
			slots[class] += of.permits + of.queue
		}
	}
	return slots
}

// versionOf names what a configuration says.
func versionOf(c *config.Config) string {
	sum := digest.Sum([]byte(c.Effective()))
	return hex.EncodeToString(sum[:6])
}

// keeps writes down what became of requests.
type keeps struct{ *life }

func (k keeps) Keep(d httpapi.Decision) {
	v := &d.Verdict
	out := decisions.Decision{ID: d.ID, Sent: d.Sent, At: time.UnixMilli(int64(d.At)).UTC(), Route: d.Route, Class: d.Class.String(), Facet: d.Facet.String(),
		Tenant: uint32(d.Tenant), Peer: d.Peer, Status: d.Status, Code: d.Code, Why: whyOf(&d), Left: v.Left,
		ResetMS: v.Reset.Milliseconds(), RetryMS: v.RetryAfter.Milliseconds(), Ahead: v.Ahead, WaitedUS: v.Waited.Microseconds(),
		Bytes: d.In + d.Out, Full: d.Full, Matched: d.Way, TookUS: d.Took.Microseconds(), Config: d.Under.Version, Method: d.Method, Path: d.Path,
		Cut: d.Cut, Because: d.Lacks, Unmet: namesOf(d.Unmet), Ailing: namesOf(d.Ailing), Told: d.Again}
	for i, q := range d.Under.Quotas {
		if int(v.Rule) == i+1 {
			out.Rule = q.Name
		}
		if v.Shadow>>i&1 == 1 {
			out.Shadow = append(out.Shadow, q.Name)
		}
	}
	k.countQuotas(&out)
	if d.Key != 0 {
		out.Key = fmt.Sprintf("%016x", uint64(d.Key))
	}
	if c, sent := d.Course.(*proxy.Course); sent {
		k.went(&out, c)
		k.count(c)
	}
	k.decisions.Keep(out)
	in, sent := d.In, d.Out
	if c, beyond := d.Course.(*proxy.Course); beyond {
		in, sent = max(in, c.Up.Load()), max(sent, c.Down.Load())
	}
	k.access.Note(d.Status >= http.StatusInternalServerError, func() []slog.Attr { return accessed(&out, in, sent) })
}

// countQuotas counts a request with the quota that refused it, and with those in shadow that
// would have.
func (k keeps) countQuotas(d *decisions.Decision) {
	if d.Why == event.RejectQuotaExceeded.String() {
		if q, ok := k.metrics.Quota(d.Rule); ok {
			q.Refused()
		}
	}
	for _, name := range d.Shadow {
		if q, ok := k.metrics.Quota(name); ok {
			q.Shadowed()
		}
	}
}

// whyOf is which bound refused a request; of one whose client did not wait for that, that it
// left.
func whyOf(d *httpapi.Decision) string {
	if d.Code == httpapi.Gone {
		return httpapi.Gone
	}
	return d.Verdict.Reason.String()
}

// decision is what is kept of a request.
func (l *life) decision(id string) (any, bool) { return l.decisions.Find(id) }

// showGate shows who waits at the gate, and who is in.
func (l *life) showGate() {
	g, limits := l.desk.Gate, l.edition.Load().gate.Facets
	l.show("admission_slots", func() (depth, limit int) {
		for c := range types.NumClasses {
			depth += g.In(c)
		}
		return depth, g.Size()
	})
	l.show("admission_updates", g.Settled)
	l.show("admission_queue_parts", func() (depth, limit int) { return int(l.ear.status().PacedParts), g.Size() })
	l.show("upstream_queries", l.desk.Asks.Asking)
	l.show("decompressors", l.inflaters.Depth)
	l.show("decisions", l.decisions.Kept)
	for f := range types.NumFacets {
		l.show("admission_queue_"+f.String(), func() (depth, limit int) {
			for _, n := range l.ear.status().Queued[f] {
				depth += int(n)
			}
			return depth, limits[f].Queue
		})
		l.metrics.Sample("semaphore_inflight", func() float64 { return float64(l.ear.status().Permits[f]) }, f.String())
		for c := range types.NumClasses {
			l.metrics.Sample("fq_queued", func() float64 { return float64(l.ear.status().Queued[f][c]) }, f.String(), c.String())
		}
	}
	for c := range types.NumClasses {
		l.metrics.Sample("fq_inflight", func() float64 { return float64(g.In(c)) }, c.String())
		l.metrics.Sample("fq_tokens", func() float64 { return float64(l.ear.status().Deficits[c]) }, c.String())
	}
	l.metrics.Sample("permits_revoked_total", func() float64 { return float64(l.ear.status().PermitsRevoked) })
}

// Package registry declares once everything in the shell that is bounded, shared or
// timed, and everything that is counted. It is data: it does nothing.
//
//	Queues, Wires, Pools ─┐                 ┌─► docs/registry.md
//	Locks, Timers, Limits ├─► one list each ┼─► the source: nothing is there undeclared
//	Metrics ──────────────┘                 └─► /debug/queues, /metrics of the running node
//
// Places in the source are written path.Type.field, path.Type.Method.local or path.name,
// with the path below the module. A test reads the source and wants every buffered
// channel, lock, pool, timer and deadline of adapters and cmd/macronode to be claimed here
// by its place, once, and every claim to be there.
package registry

import "slices"

// A Policy states what a full queue does with a new item.
type Policy string

// The policies.
const (
	Reject   Policy = "reject newest"                // the caller is rejected before any work
	Lose     Policy = "lose newest, counted"         // the item is dropped and counted
	Coalesce Policy = "coalesce"                     // an equal item is already queued
	Wait     Policy = "wait"                         // the sender waits
	Reread   Policy = "read from the journal later"  // the item is durable and read from the journal later
	Oldest   Policy = "drop oldest"                  // the oldest item is dropped
	Replace  Policy = "evict oldest, read on demand" // the oldest item is read from the segments when needed
)

// A Queue is something bounded that something waits in, or a number of permits that are
// given back. Each is shown by /debug/queues and by queue_depth, under its name.
type Queue struct {
	Name   string
	What   string   // waits, or is held
	Where  []string // of which the first is its place, and claimed where a scan sees it
	Limit  string   // a number, or the key of the configuration that it follows, with what is made of it
	Unit   string
	Policy Policy
	Tells  string // the metric that counts what the policy did; empty: it needs none
}

// A Wire is a buffered channel that nothing waits in: what is sent has a reserved place.
type Wire struct {
	Where string
	What  string
	Size  string // and why no more is ever sent
}

// A Pool keeps memory for reuse until the garbage collector frees it.
type Pool struct{ Where, What, Limit string }

// A Lock guards fields. While it is held nothing is waited for, but for what Blocks says.
type Lock struct {
	Name   string
	Where  string
	Guards string
	Inside []string // locks that may be held when this one is taken: the whole order there is
	Blocks string   // what may take long under it; empty: nothing
}

// A Timer is a timer, a ticker or a deadline.
type Timer struct {
	Where string
	What  string // happens then
	After string // the key of the configuration, or a constant
}

// A Limit is a ceiling that the configuration or a format sets.
type Limit struct {
	Key  string   // of the configuration, or types.MaxX
	What string   // is bounded, and what becomes of more
	By   []string // the code that holds it
	Test string   // path.TestName: sees it held
}

// A Label has the values that a metric may have under it: no other is possible. Nil are the
// names in the list of the configuration that is called so, of its upstreams or of its quotas.
type Label struct {
	Name   string
	Values []string
}

// A Type is what a metric is.
type Type string

// The types there are.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// A Metric is counted, or asked for at every scrape.
type Metric struct {
	Name    string
	Type    Type
	Help    string
	Labels  []Label
	Series  [][]string // the combinations that there are; nil: each value with each
	Sampled bool       // cmd gives it, series for series
	Buckets []float64  // of a histogram
}

// OfUpstreams reports that m has series for each upstream, OfQuotas that it has for each quota.
func (m *Metric) OfUpstreams() bool { return m.of("upstream") }
func (m *Metric) OfQuotas() bool    { return m.of("quota") }

func (m *Metric) of(name string) bool {
	return slices.ContainsFunc(m.Labels, func(l Label) bool { return l.Values == nil && l.Name == name })
}

// All yields the values of each series of m, in the order of its labels, where these are the
// names in the list that it is of.
func (m *Metric) All(names ...string) [][]string {
	if m.Series != nil {
		return m.Series
	}
	all := [][]string{{}}
	for _, l := range m.Labels {
		var longer [][]string
		values := l.Values
		if values == nil {
			values = names
		}
		for _, s := range all {
			for _, v := range values {
				longer = append(longer, append(s[:len(s):len(s)], v))
			}
		}
		all = longer
	}
	return all
}

// An Absence is a metric that the contract has and this node has not, because what it
// counts is not there.
type Absence struct{ Names, Why string }

// Package registry declares every queue, lock, pool, timer, limit and metric of the adapters
// and of cmd/macronode. It contains only data.
//
//	Queues, Wires, Pools ─┐                 ┌─► docs/registry.md
//	Locks, Timers, Limits ├─► one list each ┼─► a test that compares the lists with the source
//	Metrics ──────────────┘                 └─► /debug/queues, /metrics of the running node
//
// A place in the source is written path.Type.field, path.Type.Method.local or path.name,
// where path is relative to the module. A test parses the source of adapters and
// cmd/macronode. It requires that each buffered channel, lock, pool, timer and deadline is
// declared here exactly once, and that each declared place exists.
package registry

import "slices"

// A Policy states what happens to a new item when the queue is full.
type Policy string

// The policies.
const (
	Reject   Policy = "reject newest"                // the caller is rejected before any work
	Lose     Policy = "drop newest, counted"         // the new item is dropped and counted
	Coalesce Policy = "coalesce"                     // an equal item is already queued
	Wait     Policy = "wait"                         // the sender waits
	Reread   Policy = "read from the journal later"  // the item is durable and read from the journal later
	Oldest   Policy = "drop oldest"                  // the oldest item is dropped
	Replace  Policy = "evict oldest, read on demand" // the oldest item is read from the segments when needed
)

// A Queue is a bounded queue, or a fixed number of permits that are returned after use.
// /debug/queues and the metric queue_depth report each one by name.
type Queue struct {
	Name   string
	What   string   // the items that wait, or the holders of the permits
	Where  []string // places in the source; the first declares the channel that the test finds
	Limit  string   // a number, or an expression of configuration keys
	Unit   string
	Policy Policy
	Tells  string // the metric that counts applications of the policy; empty: none
}

// A Wire is a buffered channel in which each item has a reserved place, so that a send never blocks
// unless Size states otherwise.
type Wire struct {
	Where string
	What  string
	Size  string // the capacity, and why it is sufficient
}

// A Pool keeps memory for reuse until the garbage collector frees it. Limit is the size of one item.
type Pool struct{ Where, What, Limit string }

// A Lock guards fields. While the lock is held, nothing blocks except what Blocks lists.
type Lock struct {
	Name   string
	Where  string
	Guards string
	Inside []string // the locks that may be held when this one is taken; these lists define the lock order
	Blocks string   // the operations that may take long while the lock is held; empty: none
}

// A Timer is a timer, a ticker or a deadline.
type Timer struct {
	Where string
	What  string // what happens when it expires
	After string // a configuration key, or a constant
}

// A Limit is a maximum that is set by the configuration or by a format.
type Limit struct {
	Key  string   // the configuration key, or types.MaxX
	What string   // what is limited, and what happens beyond the limit
	By   []string // the code that enforces the limit
	Test string   // the test of the limit: path.TestName, or a file of testdata
}

// A Label lists the values that a label of a metric can have. If Values is nil, the values are
// the names of the configured upstreams, quotas or sinks, as Name states.
type Label struct {
	Name   string
	Values []string
}

// A Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// A Metric is updated when an event occurs, or sampled at each scrape.
type Metric struct {
	Name    string
	Type    Type
	Help    string
	Labels  []Label
	Series  [][]string // the combinations of label values that exist; nil: all combinations
	Sampled bool       // cmd/macronode registers a function for each series
	Buckets []float64  // only of a histogram
}

// OfUpstreams reports whether m has series for each upstream. OfQuotas reports whether m has
// series for each quota.
func (m *Metric) OfUpstreams() bool { return m.of("upstream") }
func (m *Metric) OfQuotas() bool    { return m.of("quota") }

// OfSinks reports whether m has series for each sink of exports.
func (m *Metric) OfSinks() bool { return m.of("sink") }

func (m *Metric) of(name string) bool {
	return slices.ContainsFunc(m.Labels, func(l Label) bool { return l.Values == nil && l.Name == name })
}

// All returns the label values of each series of m, in the order of its labels. A label without
// declared values takes those of names.
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

// An Absence lists metrics that the contract names and this node does not have, with the reason.
type Absence struct{ Names, Why string }

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// quotas maps the name of each configured quota to its counters.
type quotas map[string]*Quota

// A Quota counts the requests that one quota rejected, or would have rejected in shadow mode.
type Quota struct{ refused, shadow prometheus.Counter }

// Refused counts a request that the quota rejected. Shadowed counts a request that it would have
// rejected if it were not in shadow mode.
func (q *Quota) Refused()  { q.refused.Inc() }
func (q *Quota) Shadowed() { q.shadow.Inc() }

// NameQuotas sets the configured quotas and removes the series of all others. The configuration
// limits the number of names.
func (m *Metrics) NameQuotas(names []string) {
	const metric = "quota_refused_total"
	to := make(quotas)
	for _, name := range names {
		if v := m.counters[metric]; to[name] == nil {
			to[name] = &Quota{v.WithLabelValues(name, "refused"), v.WithLabelValues(name, "shadow")}
		}
	}
	was := m.quotas.Swap(&to)
	if was == nil {
		return
	}
	for name := range *was { //nolint:maporder // the order of removal has no effect
		if !slices.Contains(names, name) {
			m.counters[metric].DeletePartialMatch(prometheus.Labels{"quota": name})
		}
	}
}

// Quota returns the counters of a quota. ok is false if the quota is no longer configured.
func (m *Metrics) Quota(name string) (q *Quota, ok bool) {
	all := m.quotas.Load()
	if all == nil {
		return nil, false
	}
	q, ok = (*all)[name]
	return q, ok
}

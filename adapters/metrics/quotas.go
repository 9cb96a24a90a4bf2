package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// quotas are those of a configuration, by name.
type quotas map[string]*Quota

// A Quota counts what one refused, and what it would have.
type Quota struct{ refused, shadow prometheus.Counter }

// Refused counts a request that it refused, Shadowed one that it would have if it were not in
// shadow.
func (q *Quota) Refused()  { q.refused.Inc() }
func (q *Quota) Shadowed() { q.shadow.Inc() }

// NameQuotas has the quotas of these names counted, of which there are no more than the
// configuration may have. Those that were named before and are not now have no series any more.
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
	for name := range *was { //nolint:maporder // each is forgotten by itself
		if !slices.Contains(names, name) {
			m.counters[metric].DeletePartialMatch(prometheus.Labels{"quota": name})
		}
	}
}

// Quota is one by its name; false: it is not configured any more.
func (m *Metrics) Quota(name string) (q *Quota, ok bool) {
	all := m.quotas.Load()
	if all == nil {
		return nil, false
	}
	q, ok = (*all)[name]
	return q, ok
}

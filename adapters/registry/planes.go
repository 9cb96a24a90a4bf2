package registry

import (
	"slices"

	"macronode/core/types"
)

// Entries are what a plane declares beside this package.
type Entries struct {
	Endpoints [][]string // its operations with their methods, as in Endpoints
	Metrics   []Metric
	Limits    []Limit
}

// With returns the metrics of a node that has these planes beside those of this package.
func With(planes ...Entries) []Metric {
	endpoints, all := slices.Clone(Endpoints), slices.Clone(Metrics)
	for _, p := range planes {
		endpoints, all = append(endpoints, p.Endpoints...), append(all, p.Metrics...)
	}
	for i := range all {
		switch all[i].Name {
		case requestLatency:
			all[i] = latencyOf(endpoints)
		case httpRequests:
			all[i] = requestsOf(endpoints)
		case busyRejections:
			all[i] = busyOf(endpoints)
		}
	}
	for i := range all {
		twice := slices.ContainsFunc(all[:i], func(m Metric) bool { return m.Name == all[i].Name })
		types.Assert(!twice, "registry: a metric is declared twice: "+all[i].Name)
	}
	return all
}

// The metrics with a series for each operation.
const (
	requestLatency = "request_latency_seconds"
	httpRequests   = "http_requests_total"
	busyRejections = "busy_rejections_total"
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other"}

func latencyOf(endpoints [][]string) Metric {
	return Metric{Name: requestLatency, Type: Histogram, Help: "Time from the request header to the end of the response.",
		Labels: []Label{{"endpoint", firsts(endpoints)}, {"method", methods}}, Series: endpoints, Buckets: seconds}
}

func requestsOf(endpoints [][]string) Metric {
	return Metric{Name: httpRequests, Type: Counter, Help: "Requests, by operation and class of the response status. none: the client left before a response began.",
		Labels: []Label{{"route", firsts(endpoints)}, {"method", methods}, {"code", StatusClasses}}, Series: requests(endpoints)}
}

func busyOf(endpoints [][]string) Metric {
	return Metric{Name: busyRejections, Type: Counter, Help: "Requests rejected with 429.", Labels: []Label{{"endpoint", firsts(endpoints)}}}
}

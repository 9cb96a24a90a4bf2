// Package explain describes decisions about requests in sentences for people.
package explain

import (
	"fmt"
	"strings"
	"time"

	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
)

// Reasons describes which limit rejected a request and what to do, or why there was none.
var Reasons = map[string]string{
	"admitted":                 "admitted",
	httpapi.ClientDisconnected: "client disconnected before its turn; no response was sent",
	"quota_exceeded":           "rejected: the quota is used up",
	"pacing_timeout":           "rejected: the instance quota would delay it for longer than queue.max_pacing_delay",
	"queue_full":               "rejected: the queue of its facet is full",
	"class_limit":              "rejected: its class has its share of the queue (queue.class_share)",
	"flow_limit":               "rejected: its tenant or peer has its share of the queue (queue.flow_share)",
	"class_disabled":           "rejected: its class has no weight (queue.weights)",
	"route_limit":              "rejected: the route has max_inflight requests in flight",
	"route_flow_limit":         "rejected: its tenant or peer has its share of the max_inflight requests of the route (routes[].max_inflight_per_flow)",
	"queue_timeout":            "rejected: no permit became free within queue.max_wait or a quarter of its deadline; all were in use, or its share of them was (permits.flow_share, permits.anon_share)",
	"not_serving":              "rejected: the node was starting or shutting down",
	"key_ended":                "its API key was revoked or has expired: what waits or lasts is ended",
	"gave_way":                 "admitted, and ended before its response: its permit was given to a peer that held none (permits.give_way_after)",
	"no_slot":                  "rejected: its class has as many requests as there are permits and queue places",
}

// Decision describes a decision.
func Decision(d *decisions.Decision) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		b.WriteString(Printable(fmt.Sprintf("%-11s "+format, append([]any{name}, args...)...)) + "\n")
	}
	line("decision", "%s, at %s, configuration %s", d.ID, d.At.Format("2006-01-02T15:04:05.000Z"), d.Config)
	line("request", "%s %s (%s) from %s, class %s, facet %s", d.Method, d.Path, d.Target(), d.Peer, d.Class, d.Facet)
	if d.Sent != "" {
		line("request id", "%s (X-Request-Id)", d.Sent)
	}
	if d.Key != "" {
		line("key", "%s of tenant %d", d.Key, d.Tenant)
	}
	code := d.Code
	switch {
	case d.Cut:
		code = strings.TrimSpace(code + " aborted")
	case code == "":
		code = "ok"
	}
	line("response", "%d %s, %d bytes in both directions, after %v", d.Status, code, d.Bytes, time.Duration(d.TookUS)*time.Microsecond)
	line("admission", "%s", Reasons[d.Why])
	if d.Why != httpapi.ClientDisconnected { // of a disconnected client the queue is not known
		line("queue", "%d ahead of it, waited %v", d.Ahead, time.Duration(d.WaitedUS)*time.Microsecond)
	}
	if d.Full != "" {
		line("full", "admitted, but queue %s was full; see /debug/queues", d.Full)
	}
	if d.Because != "" {
		line("detail", "%s", d.Because)
	}
	for _, of := range [...]struct {
		verb  string
		names []string
	}{{"waiting for", d.Unmet}, {"degraded by", d.Ailing}} {
		if len(of.names) > 0 {
			line("node", "not serving: %s %s; see /readyz?verbose", of.verb, strings.Join(of.names, ", "))
		}
	}
	writeTrace(d, line)
	if d.Rule != "" {
		line("quota", "%s has %d left, full again in %v", d.Rule, d.Left, time.Duration(d.ResetMS)*time.Millisecond)
	}
	if d.RetryMS > 0 {
		line("retry", "may be admitted after %v", time.Duration(d.RetryMS)*time.Millisecond)
	}
	if d.RetryAfter != "" {
		line("retry", "Retry-After: %s s; the value of a 429 is randomised to spread retries", d.RetryAfter)
	}
	for _, rule := range d.Shadow {
		line("shadow", "%s would have rejected it", rule)
	}
	return b.String()
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
)

// Run says what became of one request, by the id that its answer carried.
func (v *decisionCmd) Run(c *console) error {
	if strings.ContainsAny(v.ID, "/?#%") {
		return errors.New("a decision's id is d_ and 32 hexadecimal digits: an answer carries it as X-Decision-Id, a problem as decision_id")
	}
	_, is, err := c.found()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	got, err := c.admin(ctx, is, http.MethodGet, "/v1/decisions/"+v.ID, oneAttempt)
	if err != nil {
		return err
	}
	var d decisions.Decision
	if !got.ok() || json.Unmarshal(got.body, &d) != nil {
		return got.why()
	}
	if c.tree.JSON {
		return c.print(d)
	}
	_, err = fmt.Fprint(c.out, explained(&d))
	return err
}

// bounds says in words which bound refused, and what to do about it; or why there was none.
var bounds = map[string]string{
	"admitted":   "It was let in.",
	httpapi.Gone: "Its client left while it waited for its turn: it was not let in, and nobody was answered.",
	"quota":      "The quota was used up.",
	"pace":       "The instance's quota is used up, and too many were before it: it would have waited for longer than queue.pace.",
	"queue":      "The queue of its facet was full.",
	"class":      "Its class had filled its share of the queue (queue.class_share).",
	"flow":       "Its tenant, or its peer, had filled its share of the queue (queue.flow_share).",
	"weight":     "Its class has no weight (queue.weights): it is not served, idle or not.",
	"route":      "As many requests of its route were at work as may be (max_inflight).",
	"wait":       "No permit came free for it within queue.max_wait, or a quarter of its deadline: all were in use, or it had its share of them (permits.flow_share, permits.anon_share).",
	"state":      "The node was starting, or ending.",
	"slots":      "All slots of its class were in use: as many of it wait and are at work as there are permits and places in queues.",
}

// route is what a request was for: an operation, or a route of the configuration.
func route(d *decisions.Decision) string {
	if d.Matched != "" {
		return d.Matched
	}
	return d.Route
}

// explained is a decision as a person reads it.
func explained(d *decisions.Decision) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	line("decision", "%s, at %s, by configuration %s", d.ID, d.At.Format("2006-01-02T15:04:05.000Z"), d.Config)
	line("request", "%s %s (%s) from %s, class %s, facet %s", d.Method, d.Path, route(d), d.Peer, d.Class, d.Facet)
	if d.Sent != "" {
		line("sent id", "%s, as X-Request-Id", d.Sent)
	}
	if d.Key != "" {
		line("key", "%s of tenant %d", d.Key, d.Tenant)
	}
	code := d.Code
	switch {
	case d.Cut:
		code = strings.TrimSpace(code + " cut off before its end")
	case code == "":
		code = "done"
	}
	line("answer", "%d %s, %d bytes both ways, after %v", d.Status, code, d.Bytes, time.Duration(d.TookUS)*time.Microsecond)
	line("gate", "%s", bounds[d.Why])
	if d.Why != httpapi.Gone { // of one that left nobody has said it
		line("queue", "%d before it, waited %v", d.Ahead, time.Duration(d.WaitedUS)*time.Microsecond)
	}
	if d.Full != "" {
		line("full", "It was let in, and then had no place in %s: /debug/queues shows how full that is.", d.Full)
	}
	if d.Because != "" {
		line("because", "%s", d.Because)
	}
	for _, of := range [...]struct {
		verb  string
		names []string
	}{{"waited for", d.Unmet}, {"ailed of", d.Ailing}} {
		if len(of.names) > 0 {
			line("node", "It did not serve this: it %s %s. /readyz?verbose says how it is now.", of.verb, strings.Join(of.names, ", "))
		}
	}
	went(d, line)
	if d.Rule != "" {
		line("quota", "%s has %d left, and all of it again in %v", d.Rule, d.Left, time.Duration(d.ResetMS)*time.Millisecond)
	}
	if d.RetryMS > 0 {
		line("retry", "it may be let in after %v", time.Duration(d.RetryMS)*time.Millisecond)
	}
	if d.Told != "" {
		line("retry", "told Retry-After: %s, in whole seconds; of a 429 strewn, so that those who were refused together do not come back together", d.Told)
	}
	for _, rule := range d.Shadow {
		line("shadow", "%s would have refused it", rule)
	}
	return b.String()
}

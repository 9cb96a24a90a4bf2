package main

import (
	"fmt"
	"strings"
	"time"

	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// symptoms say in words how a try failed.
var symptoms = map[proxy.Symptom]string{
	proxy.Refused:     "nobody listens there",
	proxy.Unreachable: "no connection came about: there is no way there, or nobody answers",
	proxy.Unnamed:     "its name has no address",
	proxy.Untrusted:   "it has no TLS, or shows a certificate that is not trusted",
	proxy.Closed:      "it closed the connection before its answer was whole",
	proxy.Malformed:   "what it said is no HTTP, or not the one of its protocol (upstreams.*.protocol)",
	proxy.BadStatus:   "it answered that it is not able to",
	proxy.Silent:      "it began its answer, and nothing more was said for a minute",
	proxy.Idle:        "nobody said anything in the tunnel for http.tunnel_idle, and the node ended it: its upstream has not failed",
	proxy.Deadline:    "no answer began within the deadline of the route",
	proxy.Hurried:     "no answer began within the client's own deadline, X-Deadline-Ms",
	proxy.Gone:        "the client left, or did not take the answer",
	proxy.Body:        "the client's body was too slow, too large or broken off",
	proxy.Unfit:       "what it answered is no such part: not 200, not JSON, or too large",
	proxy.Removed:     "the configuration has changed, and it is not there any more",
	proxy.Drained:     "the node ended, and cut it when the time to finish was over",
	proxy.Declined:    "by HTTP/2 it said that it has not begun with the request, or takes no header that is so large",
	proxy.Held:        "its quotas did not have the bytes for longer than it had patience",

	proxy.InvalidRequest:    "the request is malformed and cannot be written: nothing was sent, and no failure of the upstream is counted",
	proxy.ResourceExhausted: "this machine has no file descriptor or memory for one more connection: no failure of the upstream is counted",
}

// halts say why there was no other try.
var halts = map[event.NoRetryReason]string{
	event.NoRetryMethod:          "its method may not be sent twice",
	event.NoRetryBodyConsumed:    "some of its body was gone",
	event.NoRetryResponseStarted: "something was said to the client before the answer, which would be said twice",
	event.NoRetryAttempts:        "it had all its tries (upstreams.*.tries)",
	event.NoRetryCircuitOpen:     "that failure opened the breaker, or it was open",
	event.NoRetryDeadline:        "its deadline left no time for one",
	event.NoRetryBudget:          "the retry budget of the upstream was used up: a tenth of its requests may be retries, and a few more",
}

// stops say why a request went to no endpoint.
var stops = map[event.NoEndpointReason]string{
	event.NoEndpointCircuitOpen: "The breaker of the upstream is open: too many of its tries failed. upstream_fail_total{symptom} says how, and so do requests just before this one.",
	event.NoEndpointUnhealthy:   "Its health checks call every endpoint sick, or the node was ending.",
	event.NoEndpointOverflow:    "As many requests were with upstreams as may be (permits.beyond).",
	event.NoEndpointStale:       "Its place among the calls was gone: a bug.",
}

// stopped is why a leg went no further.
func stopped(l *decisions.Leg) string {
	if l.Stop == event.NoEndpointCircuitOpen.String() && l.Circuit == event.CircuitHalfOpen.String() {
		return "The breaker of the upstream is half-open, and lets only a few through, to see how it is."
	}
	for s, text := range stops {
		if s.String() == l.Stop {
			return text
		}
	}
	return ""
}

// halted is why there was no other try.
func halted(l *decisions.Leg) string {
	for h, text := range halts {
		if h.String() == l.Halt {
			return text
		}
	}
	return ""
}

// went says line by line what became of a request behind the gate.
func went(d *decisions.Decision, line func(name, format string, args ...any)) {
	for i := range d.Legs {
		l := &d.Legs[i]
		of := l.Upstream
		if l.Part != "" {
			of += ", for the part " + l.Part
		}
		line("upstream", "%s: %s, its breaker %s", of, tries(l.Count), l.Circuit)
		for n := range l.Tries {
			line("try", "%s", tried(l, n))
		}
		if why := stopped(l); why != "" {
			line("stopped", "%s", why)
		}
		for _, at := range l.Sick {
			line("sick", "%s", at)
		}
		if why := halted(l); why != "" {
			line("no more", "It was not sent again: %s.", why)
		}
		if l.Missing != "" {
			line("missing", "%s, for: %s", l.Part, l.Missing)
		}
	}
	if d.FirstUS > 0 {
		line("answer", "its first byte came %v after it was sent on", time.Duration(d.FirstUS)*time.Microsecond)
	}
}

func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}

// tried is one try as a person reads it.
func tried(l *decisions.Leg, n int) string {
	t := &l.Tries[n]
	var b strings.Builder
	number := n + 1
	if n == proxy.MaxTries-1 {
		number = l.Count // those between are not kept
	}
	fmt.Fprintf(&b, "%d: %s", number, t.Endpoint)
	if t.HTTP2 {
		b.WriteString(" by HTTP/2")
	}
	fmt.Fprintf(&b, ", %s after %v", t.Outcome, time.Duration(t.TookUS)*time.Microsecond)
	if t.Status > 0 {
		fmt.Fprintf(&b, ", with status %d", t.Status)
	}
	if why := symptoms[proxy.Symptom(t.Outcome)]; why != "" {
		b.WriteString(": " + why)
	}
	if t.Out {
		b.WriteString("; it was ejected for its failures, and asked because all were")
	}
	return b.String()
}

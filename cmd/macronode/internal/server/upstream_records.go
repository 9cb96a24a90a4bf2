package server

import (
	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// addUpstreams adds to a decision what happened at upstreams.
func (k decisionSink) addUpstreams(to *decisions.Decision, c *proxy.Trace) {
	to.FirstUS = c.FirstByte.Microseconds()
	to.Bytes = max(to.Bytes, c.BytesUp.Load()+c.BytesDown.Load())
	for i := range c.Upstreams {
		to.Legs = append(to.Legs, k.upstreamTrace(&c.Upstreams[i]))
	}
}

// upstreamTrace returns what happened at one upstream.
func (k decisionSink) upstreamTrace(l *proxy.UpstreamTrace) decisions.Leg {
	to := decisions.Leg{Upstream: l.Upstream, Part: l.Part, Missing: l.MissingReason, Circuit: l.Circuit.String(),
		Halt: l.NoRetry.String(), Outcome: l.Outcome(), Count: l.AttemptCount}
	if l.NoEndpoint != event.EndpointPicked || l.NoDecompressor {
		to.Stop = l.Outcome()
	}
	if l.NoEndpoint == event.NoEndpointUnhealthy {
		to.Sick = k.health.describeUnhealthy(l.Upstream)
	}
	for i := range l.Attempts {
		t := &l.Attempts[i]
		to.Tries = append(to.Tries, decisions.Try{Endpoint: t.Endpoint, Out: t.Ejected, HTTP2: t.HTTP2, Outcome: t.Outcome(), Ending: t.Result.String(),
			Status: t.Status, TookUS: t.Took.Microseconds()})
	}
	return to
}

// countUpstreams counts the outcome of a request for each upstream.
func (k decisionSink) countUpstreams(c *proxy.Trace) {
	for i := range c.Upstreams {
		l := &c.Upstreams[i]
		u, ok := k.metrics.Upstream(l.Upstream)
		if !ok {
			continue // a reload removed it
		}
		for n := range l.Attempts {
			if t := &l.Attempts[n]; t.Failed() {
				u.Failed(string(t.Reason))
			}
		}
		up, down, first := c.BytesUp.Load(), c.BytesDown.Load(), c.FirstByte
		if l.Part != "" {
			up, down = 0, l.PartBytes
			if l.MissingReason != "" {
				first = 0
			}
		}
		u.Moved(up, down)
		if outcome := l.Outcome(); outcome != "" {
			u.Ended(outcome, first)
		}
	}
}

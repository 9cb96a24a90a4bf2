package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/decisions"
	"macronode/adapters/httpapi"
	"macronode/adapters/metrics"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// decisionSink keeps, counts and logs the outcome of each request.
type decisionSink struct {
	decisions *decisions.Ring
	accessLog *accesslog.Log
	metrics   *metrics.Metrics
	health    *endpointHealth
}

// Keep takes the outcome of a request.
func (k decisionSink) Keep(d httpapi.Decision) {
	v := &d.Verdict
	out := decisions.Decision{ID: d.ID, Sent: d.ClientRequestID, At: time.UnixMilli(int64(d.At)).UTC(), Route: d.Route, Class: d.Class.String(), Facet: d.Facet.String(),
		Tenant: uint32(d.Tenant), Peer: d.Peer, Status: d.Status, Code: d.Code, Why: rejectReason(&d), Left: v.Left,
		ResetMS: v.Reset.Milliseconds(), RetryMS: v.RetryAfter.Milliseconds(), Ahead: v.Ahead, WaitedUS: v.Waited.Microseconds(),
		Bytes: d.In + d.Out, Full: d.FullQueue, Matched: d.ProxyRoute, TookUS: d.Took.Microseconds(), Config: d.Config.Version, Method: d.Method, Path: d.Path,
		Cut: d.Truncated, Because: d.Detail, Unmet: conditionNames(d.WaitingFor), Ailing: conditionNames(d.DegradedBy), RetryAfter: d.RetryAfter}
	for i, q := range d.Config.Quotas {
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
	if c, sent := d.Trace.(*proxy.Trace); sent {
		k.addUpstreams(&out, c)
		k.countUpstreams(c)
	}
	k.decisions.Keep(out)
	in, sent := d.In, d.Out
	if c, isProxied := d.Trace.(*proxy.Trace); isProxied {
		in, sent = max(in, c.BytesUp.Load()), max(sent, c.BytesDown.Load())
	}
	k.accessLog.Note(d.Status >= http.StatusInternalServerError, func() []slog.Attr { return accessAttrs(&out, in, sent) })
}

// countQuotas counts a request for the quota that rejected it, and for shadow quotas that would have.
func (k decisionSink) countQuotas(d *decisions.Decision) {
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

// rejectReason returns why a request was rejected, or that its client disconnected before.
func rejectReason(d *httpapi.Decision) string {
	if d.Code == httpapi.ClientDisconnected {
		return httpapi.ClientDisconnected
	}
	return d.Verdict.Reason.String()
}

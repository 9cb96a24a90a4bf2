package explain

import (
	"fmt"
	"strings"
	"time"

	"macronode/adapters/decisions"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// Symptoms describes why an attempt failed.
var Symptoms = map[proxy.FailureReason]string{
	proxy.ConnectionRefused:  "no process listens on the endpoint",
	proxy.ConnectTimeout:     "no connection within 2 s, or no route to the host",
	proxy.DNSError:           "the host name has no address",
	proxy.TLSError:           "the endpoint does not speak TLS, or its certificate is not trusted",
	proxy.ConnectionReset:    "the endpoint closed or reset the connection before the response was complete",
	proxy.ProtocolError:      "the response is not valid HTTP, or not of the configured protocol (upstreams.*.protocol)",
	proxy.BadStatus:          "the endpoint answered 502, 503 or 504",
	proxy.ResponseStalled:    "the response began, and then nothing was received for a minute",
	proxy.IdleTimeout:        "the tunnel carried no data for http.tunnel_idle and was closed; this is no failure of the upstream",
	proxy.DeadlineExceeded:   "no response began within the deadline of the route",
	proxy.ClientDeadline:     "no response began within the client's X-Deadline-Ms",
	proxy.ClientDisconnected: "the client disconnected, or did not read the response",
	proxy.ClientSlow:         "the endpoint closed the connection, for which the node had waited longer for the client than for the endpoint: no failure of the upstream is counted",
	proxy.RequestBodyError:   "the client's body was too slow, too large or incomplete",
	proxy.InvalidPart:        "the part was not 200, not JSON, or too large",
	proxy.EndpointRemoved:    "a reload removed the endpoint",
	proxy.Shutdown:           "the node shut down and aborted the request at the end of the drain",
	proxy.StreamRefused:      "over HTTP/2 the endpoint refused the request before processing it, or does not accept a header of this size",
	proxy.QuotaTimeout:       "the quotas did not release the bytes in time",
	proxy.KeyEnded:           "its API key was revoked or has expired",
	proxy.LostDecompressor:   "the decompressor of its zstd body was given to a caller that had none (permits.give_way_after)",
	proxy.GaveWay:            "its permit was given to a peer that held none (permits.give_way_after)",

	proxy.InvalidRequest:    "the request is malformed and cannot be written: nothing was sent, and no failure of the upstream is counted",
	proxy.ResourceExhausted: "this machine has no file descriptor or memory for another connection: no failure of the upstream is counted",
}

// NoRetry describes why there was no further attempt.
var NoRetry = map[event.NoRetryReason]string{
	event.NoRetryMethod:          "its method is not idempotent",
	event.NoRetryBodyConsumed:    "part of its body was already sent",
	event.NoRetryResponseStarted: "an interim response was already sent to the client",
	event.NoRetryAttempts:        "it had all its attempts (upstreams.*.max_attempts)",
	event.NoRetryCircuitOpen:     "the circuit breaker was open, or this failure opened it",
	event.NoRetryDeadline:        "its deadline left no time",
	event.NoRetryBudget:          "the retry budget of the upstream was used up: a tenth of its requests and a few more",
}

// NoEndpoint describes why no endpoint was chosen.
var NoEndpoint = map[event.NoEndpointReason]string{
	event.NoEndpointCircuitOpen: "The circuit breaker of the upstream is open for callers like this one, with or without an API key: too many of their attempts failed. See upstream_fail_total{symptom} and the requests just before this one.",
	event.NoEndpointUnhealthy:   "Health checks fail for every endpoint, or the node was shutting down.",
	event.NoEndpointOverflow:    "The limit of requests in flight to upstreams was reached (permits.proxy).",
	event.NoEndpointStale:       "Its upstream ticket had expired: an internal error.",
}

// NoDecompressor describes a request for which no decompressor was left.
const NoDecompressor = "All decompressors for zstd that a caller like this one may use were taken (decompressors). Nothing was sent to the upstream."

// stopReason returns why a trace ended early.
func stopReason(l *decisions.Leg) string {
	if l.Stop == event.NoEndpointCircuitOpen.String() && l.Circuit == event.CircuitHalfOpen.String() {
		return "The circuit breaker of the upstream is half-open: it lets only a few trial requests through."
	}
	if l.Stop == proxy.NoDecompressor {
		return NoDecompressor
	}
	for s, text := range NoEndpoint {
		if s.String() == l.Stop {
			return text
		}
	}
	return ""
}

// noRetryReason returns why there was no further attempt.
func noRetryReason(l *decisions.Leg) string {
	for h, text := range NoRetry {
		if h.String() == l.Halt {
			return text
		}
	}
	return ""
}

// writeTrace writes what happened after admission, line by line.
func writeTrace(d *decisions.Decision, line func(name, format string, args ...any)) {
	for i := range d.Legs {
		l := &d.Legs[i]
		of := l.Upstream
		if l.Part != "" {
			of += ", for the part " + l.Part
		}
		line("upstream", "%s: %s, circuit breaker %s", of, attemptsText(l.Count), l.Circuit)
		for n := range l.Tries {
			line("attempt", "%s", attemptText(l, n))
		}
		if why := stopReason(l); why != "" {
			line("stopped", "%s", why)
		}
		for _, at := range l.Sick {
			line("unhealthy", "%s", at)
		}
		if why := noRetryReason(l); why != "" {
			line("no retry", "not retried: %s", why)
		}
		if l.Missing != "" {
			line("missing", "%s, for: %s", l.Part, l.Missing)
		}
	}
	if d.FirstUS > 0 {
		line("response", "first byte %v after forwarding", time.Duration(d.FirstUS)*time.Microsecond)
	}
}

func attemptsText(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// attemptText describes one attempt.
func attemptText(l *decisions.Leg, n int) string {
	t := &l.Tries[n]
	var b strings.Builder
	number := n + 1
	if n == proxy.MaxAttempts-1 {
		number = l.Count // the attempts between are not recorded
	}
	fmt.Fprintf(&b, "%d: %s", number, t.Endpoint)
	if t.HTTP2 {
		b.WriteString(" by HTTP/2")
	}
	fmt.Fprintf(&b, ", %s after %v", t.Outcome, time.Duration(t.TookUS)*time.Microsecond)
	if t.Status > 0 {
		fmt.Fprintf(&b, ", with status %d", t.Status)
	}
	if why := Symptoms[proxy.FailureReason(t.Outcome)]; why != "" {
		b.WriteString(": " + why)
	}
	if t.Out {
		b.WriteString("; it was ejected after failures and used because all endpoints were")
	}
	return b.String()
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// A Trace is the record of a request that was sent to upstreams.
type Trace struct {
	Flow      types.Flow      // of the request: set before Serve
	Upstreams []UpstreamTrace // one, or one for each part
	detail    string          // see Detail
	FirstByte time.Duration   // from sending the request to the header of the response; 0: there was none
	BytesUp   atomic.Uint64   // of the request body, sent to upstreams
	BytesDown atomic.Uint64   // received from upstreams
	sent      atomic.Bool     // the header of the request was written to an endpoint
}

// EndedByClient reports whether an endpoint was sent the request, and the client then ended it before the
// response was complete: it disconnected, it was so slow that the endpoint gave up, its own deadline passed,
// its body could not be read, or its API key ended.
func (c *Trace) EndedByClient() bool {
	return c.sent.Load() && slices.ContainsFunc(c.Upstreams, func(l UpstreamTrace) bool {
		switch FailureReason(l.Outcome()) {
		case ClientDisconnected, ClientDeadline, ClientSlow, RequestBodyError, KeyEnded:
			return true
		default:
			return false
		}
	})
}

// Detail says why the request got a problem, in ASCII without quotes; empty: the problem is enough.
func (c *Trace) Detail() string { return c.detail }

// CutByShutdown reports whether the shutdown of the node aborted the request.
func (c *Trace) CutByShutdown() bool {
	return slices.ContainsFunc(c.Upstreams, func(l UpstreamTrace) bool { return l.Outcome() == string(Shutdown) })
}

// MaxAttempts is the number of recorded attempts: the first ones and the last.
const MaxAttempts = 5

// An UpstreamTrace is the record of a request, or of one of its parts, at one upstream.
type UpstreamTrace struct {
	Upstream       string                 // its name
	Part           string                 // name of the part; empty: the whole response
	MissingReason  string                 // why the part is missing; empty: it is present
	NoEndpoint     event.NoEndpointReason // why no endpoint was picked; EndpointPicked: one was
	NoDecompressor bool                   // it got no decompressor, and nothing was sent
	Circuit        event.CircuitState     // of the upstream at the last pick
	NoRetry        event.NoRetryReason    // why there was no further attempt
	PartBytes      uint64                 // of the part
	Attempts       []Attempt              // in order, at most MaxAttempts
	AttemptCount   int                    // all attempts
	request        *Trace                 // of which this is a part; nil: none
}

// noteSent records that the header of the request was written. The writer of a connection may call it at any time.
func (l *UpstreamTrace) noteSent() {
	if l.request != nil {
		l.request.sent.Store(true)
	}
}

// An Attempt is a request to one endpoint.
type Attempt struct {
	Endpoint  string               // its URL
	Ejected   bool                 // it was ejected for its failures, as all healthy endpoints were
	HTTP2     bool                 // the protocol
	Result    event.AttemptOutcome // how far it came
	Reason    FailureReason
	Status    int           // of the response; 0: there was none
	Took      time.Duration // until its end
	startedAt time.Time
}

// A FailureReason is the reason of a failed attempt, as in metrics and traces.
type FailureReason string

// The reasons.
const (
	NoFailure          FailureReason = ""
	ConnectionRefused  FailureReason = "connection_refused"  // no process listens on the endpoint
	ConnectTimeout     FailureReason = "connect_timeout"     // no route to the endpoint, or no connection within the limit
	DNSError           FailureReason = "dns_error"           // the host name has no address
	TLSError           FailureReason = "tls_error"           // the endpoint does not speak TLS, or its certificate is not trusted
	ConnectionReset    FailureReason = "connection_reset"    // the endpoint closed or reset the connection
	ProtocolError      FailureReason = "protocol_error"      // the endpoint does not speak HTTP
	BadStatus          FailureReason = "status"              // the endpoint answered 502, 503 or 504
	ResponseStalled    FailureReason = "response_stalled"    // the response began and then stopped
	IdleTimeout        FailureReason = "idle_timeout"        // a tunnel carried no data, and the node closed it; no fault of the upstream
	DeadlineExceeded   FailureReason = "deadline"            // no response within the deadline of the route
	ClientDeadline     FailureReason = "client_deadline"     // no response within the deadline of the client, which is shorter
	ClientDisconnected FailureReason = "client_disconnected" // the client disconnected, or does not read the response
	ClientSlow         FailureReason = "client_slow"         // the endpoint closed the connection after a long wait for the client
	RequestBodyError   FailureReason = "request_body_error"  // the client's body could not be read
	InvalidPart        FailureReason = "invalid_part"        // the response is not usable as a part
	EndpointRemoved    FailureReason = "endpoint_removed"    // a reload has removed the endpoint
	Shutdown           FailureReason = "shutdown"            // the shutdown of the node aborted a tunnel or a response
	StreamRefused      FailureReason = "stream_refused"      // the endpoint has not processed the request, or rejects its size
	QuotaTimeout       FailureReason = "quota_timeout"       // the quotas did not release the bytes in time
	GaveWay            FailureReason = "gave_way"            // the permit of the request was given to another one
	LostDecompressor   FailureReason = "lost_decompressor"   // the decompressor of its body was given to another request
	KeyEnded           FailureReason = "key_ended"           // the API key of the request was revoked or has expired

	InvalidRequest    FailureReason = "invalid_request"    // the request cannot be written: nothing was sent
	ResourceExhausted FailureReason = "resource_exhausted" // this machine has no file descriptor or memory for a connection
)

// FailureReasons returns all reasons but NoFailure.
func FailureReasons() []FailureReason {
	return []FailureReason{ConnectionRefused, ConnectTimeout, DNSError, TLSError, ConnectionReset, ProtocolError, BadStatus, ResponseStalled, DeadlineExceeded, ClientDeadline, ClientDisconnected, RequestBodyError, InvalidPart, EndpointRemoved, Shutdown, QuotaTimeout, GaveWay, LostDecompressor, KeyEnded, StreamRefused, IdleTimeout, InvalidRequest, ResourceExhausted, ClientSlow}
}

// IsEndpointFault reports whether the endpoint is the cause of s, and not the client, the
// configuration or this node.
func (s FailureReason) IsEndpointFault() bool {
	switch s {
	case NoFailure, IdleTimeout, ClientDeadline, ClientDisconnected, ClientSlow, RequestBodyError, EndpointRemoved, Shutdown, QuotaTimeout, GaveWay, LostDecompressor, KeyEnded, InvalidRequest, ResourceExhausted:
		return false
	default:
		return true
	}
}

// Failed reports whether t is a failure of its endpoint.
func (t *Attempt) Failed() bool {
	return t.Result != event.AttemptAbandoned && t.Reason.IsEndpointFault()
}

// startAttempt records the endpoint of an attempt.
func (l *UpstreamTrace) startAttempt(to event.Picked, at *endpoint) {
	l.NoEndpoint, l.Circuit = to.NoEndpoint, to.Circuit
	if to.NoEndpoint != event.EndpointPicked {
		return
	}
	l.AttemptCount++
	try := Attempt{Ejected: to.Ejected, Result: event.AttemptAbandoned, Reason: EndpointRemoved, startedAt: time.Now()}
	if at != nil {
		try.Endpoint, try.Reason = at.String(), NoFailure
	}
	if len(l.Attempts) == MaxAttempts {
		l.Attempts[MaxAttempts-1] = try
		return
	}
	l.Attempts = append(l.Attempts, try)
}

// endAttempt records the result of the last attempt. For a response, it is called once more when
// the response has ended.
func (l *UpstreamTrace) endAttempt(e event.AttemptOutcome, s FailureReason, status int) {
	t := l.lastAttempt()
	t.Result, t.Reason, t.Took = e, s, time.Since(t.startedAt)
	if status != 0 {
		t.Status = status
	}
}

func (l *UpstreamTrace) lastAttempt() *Attempt { return &l.Attempts[len(l.Attempts)-1] }

// setHTTP2 records that the last attempt uses HTTP/2.
func (l *UpstreamTrace) setHTTP2() { l.lastAttempt().HTTP2 = true }

// Outcome returns OK, the reason of the last failure, or why nothing was sent. It is empty
// if there was no attempt.
func (l *UpstreamTrace) Outcome() string {
	switch {
	case l.NoEndpoint != event.EndpointPicked:
		return l.NoEndpoint.String()
	case l.NoDecompressor:
		return NoDecompressor
	case len(l.Attempts) == 0:
		return ""
	}
	return l.lastAttempt().Outcome()
}

// Outcomes without a failure of an attempt.
const (
	OK             = "ok"              // a complete response
	NoDecompressor = "no_decompressor" // all decompressors for zstd were taken: nothing was sent
)

// Outcome returns OK or the reason of the failure.
func (t *Attempt) Outcome() string {
	if t.Reason != NoFailure {
		return string(t.Reason)
	}
	return OK
}

// failureReason returns the reason of an endpoint's error. The text of the error is not shown,
// because it may quote received data.
func failureReason(err error) FailureReason {
	var op *net.OpError
	var name *net.DNSError
	var record tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return NoFailure
	case errors.Is(err, errStalled):
		return ResponseStalled
	case errors.Is(err, errStreamRefused), errors.Is(err, errConnWentAway), errors.Is(err, errHeaderTooLarge):
		return StreamRefused
	case isExhausted(err):
		return ResourceExhausted
	case errors.As(err, &name):
		return DNSError
	case errors.As(err, &record), errors.As(err, &untrusted), strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "HTTPS client"), strings.Contains(err.Error(), "TLS handshake"):
		return TLSError
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ConnectionReset
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ConnectTimeout
	case strings.Contains(err.Error(), "server closed idle connection"), isEndedByEndpoint(err):
		return ConnectionReset
	}
	return ProtocolError
}

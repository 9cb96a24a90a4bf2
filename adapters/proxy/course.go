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

// A Course is what a request met behind the gate, for those who ask afterwards.
type Course struct {
	Flow  types.Flow    // whose request it is: set before Serve
	Legs  []Leg         // one for each upstream that was asked: one, or one a part
	First time.Duration // from when it was sent on until the header of the answer; 0: there was none
	Up    atomic.Uint64 // bytes of its body that went to upstreams
	Down  atomic.Uint64 // bytes that came from them
}

// Cut reports that the end of the node cut it.
func (c *Course) Cut() bool {
	return slices.ContainsFunc(c.Legs, func(l Leg) bool { return l.Outcome() == string(Drained) })
}

// MaxTries is how many tries of a leg are told: the first ones, and the last.
const MaxTries = 5

// A Leg is what became of a request, or of one of its parts, at one upstream.
type Leg struct {
	Upstream string                 // its name
	Part     string                 // that it was to become; empty: the answer
	Missing  string                 // why the part is; empty: it is there
	Stop     event.NoEndpointReason // why it went nowhere; Through: it did go
	Circuit  event.CircuitState     // of the upstream, when it was last asked where to go
	Halt     event.NoRetryReason    // why there was no other try
	Down     uint64                 // bytes of the part
	Tries    []Try                  // in order, no more than MaxTries
	Count    int                    // of them all
}

// A Try is one endpoint that was asked.
type Try struct {
	Endpoint string               // its URL
	Out      bool                 // it was out for its failures, and so were all others that are well
	HTTP2    bool                 // it was asked by that
	Ending   event.AttemptOutcome // what it came to
	Symptom  Symptom
	Status   int           // of its answer; 0: there was none
	Took     time.Duration // until its end
	began    time.Time
}

// A Symptom says how a try failed, in one of a few words.
type Symptom string

// The symptoms there are.
const (
	Fine        Symptom = ""
	Refused     Symptom = "connection_refused"  // nobody listens there
	Unreachable Symptom = "connect_timeout"     // there is no way there, or nobody answers in the time for a connection
	Unnamed     Symptom = "dns_error"           // its name has no address
	Untrusted   Symptom = "tls_error"           // it has no TLS, or shows what is not trusted
	Closed      Symptom = "connection_reset"    // it closed or reset the connection
	Malformed   Symptom = "protocol_error"      // it does not speak HTTP
	BadStatus   Symptom = "status"              // it answered with 502, 503 or 504
	Silent      Symptom = "response_stalled"    // it began an answer, and nothing more was said
	Idle        Symptom = "idle_timeout"        // nobody said anything in a tunnel, and the node ended it: no fault of the upstream
	Deadline    Symptom = "deadline"            // it had not answered when the route's time was over
	Hurried     Symptom = "client_deadline"     // the same of the client's, which is shorter
	Gone        Symptom = "client_disconnected" // the client has left, or does not take the answer
	Body        Symptom = "request_body_error"  // the client's body could not be read
	Unfit       Symptom = "invalid_part"        // a part was answered with what is none
	Removed     Symptom = "endpoint_removed"    // the configuration has changed, and it is not there any more
	Drained     Symptom = "shutdown"            // the node cut it at its end, a tunnel or an answer
	Declined    Symptom = "stream_refused"      // it said that it has not begun with the request, or takes none that is so large
	Held        Symptom = "quota_timeout"       // its quotas did not have what comes for longer than it has patience

	InvalidRequest    Symptom = "invalid_request"    // the request cannot be written: nothing was sent
	ResourceExhausted Symptom = "resource_exhausted" // this machine has no file descriptor or memory for a connection
)

// Symptoms are all but Fine.
func Symptoms() []Symptom {
	return []Symptom{Refused, Unreachable, Unnamed, Untrusted, Closed, Malformed, BadStatus, Silent, Deadline, Hurried, Gone, Body, Unfit, Removed, Drained, Held, Declined, Idle, InvalidRequest, ResourceExhausted}
}

// OfEndpoint reports whether the endpoint is the cause of s, and not the client, the
// configuration or this node.
func (s Symptom) OfEndpoint() bool {
	switch s {
	case Fine, Idle, Hurried, Gone, Body, Removed, Drained, Held, InvalidRequest, ResourceExhausted:
		return false
	default:
		return true
	}
}

// Failed reports whether t is a failure of its endpoint.
func (t *Try) Failed() bool { return t.Ending != event.AttemptAbandoned && t.Symptom.OfEndpoint() }

// picked notes where a try goes.
func (l *Leg) picked(to event.Picked, at *endpoint) {
	l.Stop, l.Circuit = to.NoEndpoint, to.Circuit
	if to.NoEndpoint != event.EndpointPicked {
		return
	}
	l.Count++
	try := Try{Out: to.Ejected, Ending: event.AttemptAbandoned, Symptom: Removed, began: time.Now()}
	if at != nil {
		try.Endpoint, try.Symptom = at.String(), Fine
	}
	if len(l.Tries) == MaxTries {
		l.Tries[MaxTries-1] = try
		return
	}
	l.Tries = append(l.Tries, try)
}

// ended notes what the last try came to. What an answer comes to in the end is said after
// it was answered.
func (l *Leg) ended(e event.AttemptOutcome, s Symptom, status int) {
	t := &l.Tries[len(l.Tries)-1]
	t.Ending, t.Symptom, t.Took = e, s, time.Since(t.began)
	if status != 0 {
		t.Status = status
	}
}

// second notes that the last try goes by HTTP/2.
func (l *Leg) second() { l.Tries[len(l.Tries)-1].HTTP2 = true }

// Outcome is what became of it in the end: whole, how the last try failed, or why it went
// nowhere; empty: nothing was asked.
func (l *Leg) Outcome() string {
	switch {
	case l.Stop != event.EndpointPicked:
		return l.Stop.String()
	case len(l.Tries) == 0:
		return ""
	}
	return l.Tries[len(l.Tries)-1].Outcome()
}

// OK is the outcome of a complete response.
const OK = "ok"

// Outcome is OK or the reason of the failure.
func (t *Try) Outcome() string {
	if t.Symptom != Fine {
		return string(t.Symptom)
	}
	return OK
}

// symptom is what an error of an endpoint tells. The error itself is told nobody: it may
// quote what came.
func symptom(err error) Symptom {
	var op *net.OpError
	var name *net.DNSError
	var record tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return Fine
	case errors.Is(err, errSilent):
		return Silent
	case errors.Is(err, errDeclined), errors.Is(err, errAway), errors.Is(err, errLarge):
		return Declined
	case isExhausted(err):
		return ResourceExhausted
	case errors.As(err, &name):
		return Unnamed
	case errors.As(err, &record), errors.As(err, &untrusted), strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "HTTPS client"), strings.Contains(err.Error(), "TLS handshake"):
		return Untrusted
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return Closed
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Unreachable
	case strings.Contains(err.Error(), "server closed idle connection"), ended(err):
		return Closed
	}
	return Malformed
}

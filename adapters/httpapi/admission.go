package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// An Admission admits requests and accounts for their permits.
type Admission interface {
	// Admit asks for a permit for holder, which hears when it loses it.
	Admit(ctx context.Context, in event.Admit, holder Holder) (event.Decision, bool)
	Finish(t types.Ticket, bytes uint64, f event.Completion)
	// Stream asks whether so many further bytes of its bodies may go on, and waits for the
	// word; false where ctx ended first, or the ticket is settled.
	ReserveBytes(ctx context.Context, t types.Ticket, bytes uint64) (event.Decision, bool)
}

// A Decision describes how a request was decided and answered.
type Decision struct {
	ID              string
	ClientRequestID string // the request ID that the client sent; empty: it sent none that is usable
	At              types.Time
	Route           string // the operationId of the document
	Class           types.Class
	Facet           types.Facet
	Tenant          types.Tenant // of the API key that was verified; 0: none was
	Key             types.KeyID
	Peer            string // the address of the client
	Verdict         event.Decision
	Status          int    // the HTTP status
	Code            string // of the problem; empty: the request succeeded
	In, Out         uint64 // bytes of both bodies
	Took            time.Duration
	Config          *ConfigSnapshot // the configuration that the request used
	Method          string
	Path            string     // without its query; the first 128 bytes
	Trace           ProxyTrace // nil: the request was not forwarded
	ProxyRoute      string     // the route of the configuration; empty: none
	FullQueue       string     // the queue that had no room after admission
	Truncated       bool       // the response began and was not completed
	Detail          string     // why the request was rejected after admission, as a sentence; empty: the code is enough
	// WaitingFor and DegradedBy are the conditions of the node, if they are why the request was not served.
	WaitingFor, DegradedBy types.Conditions
	RetryAfter             string // the value of Retry-After; empty: it was not sent
}

// A Policy is a quota as clients see it.
type Policy struct {
	Name   string
	Quota  uint64        // requests, or bytes, in a window
	Window time.Duration // the time in which a used quota refills
	Bytes  bool          // it counts bytes
}

// authenticateCaller sets the API key of a call, from its signature or its bearer token.
func (k *call) authenticateCaller() {
	if k.s3 != nil {
		k.s3.authenticate()
		return
	}
	k.authenticateKey()
}

// authenticateKey sets the API key of a call from its bearer token. If the token is wrong, the call has no key, so
// guessing is limited like anonymous requests.
func (k *call) authenticateKey() {
	header := k.r.Header["Authorization"]
	if len(header) != 1 {
		return
	}
	id, secret, ok := parseKey(header[0])
	if !ok {
		return
	}
	known, found := k.ReadModel.Find(id)
	hash := digest.Sum([]byte(secret))
	if match := subtle.ConstantTimeCompare(hash[:], known.Hash[:]) == 1; match && found {
		k.key, k.isRevoked = known, expired(&known, k.at)
	}
}

// classify returns the class of a call. Keys with the scope admin are internal.
func (k *call) classify() types.Class {
	switch {
	case k.key.ID == 0, k.isRevoked:
		return types.ClassAnon
	case k.key.Scopes&event.ScopeAdmin != 0:
		return types.ClassInternal
	default:
		return types.ClassAuthed
	}
}

// admit waits until the call is admitted, and returns the problem if it is rejected.
func (k *call) admit() error {
	k.isAdmitted = true
	k.authenticateCaller()
	if k.class = k.classify(); k.class != types.ClassAnon && k.Authenticated != nil {
		k.Authenticated(k.r.Context())
	}
	k.setPermit()
	in := event.Admit{Class: k.class, Facet: k.facet, Route: k.endpoint.number, Peer: k.peerHash(),
		DeclaredBytes: k.r.ContentLength, ResponseEstimate: k.endpoint.meanBytes, TimeLeft: k.timeLimit, PermitFor: k.permitTime}
	if k.class != types.ClassAnon {
		in.Key, in.Tenant = k.key.ID, k.key.Tenant
	}
	k.flow = in.Flow()
	k.lostPermit.isBodyRead = k.r.ContentLength == 0
	v, ok := k.Admission.Admit(k.r.Context(), in, k)
	switch {
	case !ok && k.r.Context().Err() != nil:
		k.identify()
		k.code = ClientDisconnected
		panic(http.ErrAbortHandler)
	case !ok:
		v.Problem, v.Reason = event.Busy, event.RejectNoSlots
	case v.Problem == event.None:
		k.permit = v.Ticket
		k.meter.ticket = v.Ticket
		k.meter.credit.Store(int64(v.Bytes))
	}
	k.verdict = v
	k.setRateLimit()
	if v.Problem != event.None {
		k.Meter.Rejected(k.class, v.Reason)
		return &refusal{problem: v.Problem, detail: rejectDetails[v.Reason]}
	}
	return nil
}

// ClientDisconnected is the code of a request whose client disconnected before admission. It has no response, and
// its verdict is not known.
const ClientDisconnected = "client_disconnected"

// isNotServing reports whether the node rejects requests without asking the admission: it does not serve yet, or
// has stopped. While it drains the admission is asked, because it counts the rejected requests.
func isNotServing(s *event.Status) bool { return !s.Reads && s.Phase != types.Draining }

// rejectNotServing rejects a request without asking the admission, and records the reason.
func (k *call) rejectNotServing() error {
	k.authenticateCaller()
	k.class = k.classify()
	k.verdict = event.Decision{Problem: event.Unavailable, Reason: event.RejectNotServing}
	k.Meter.Rejected(k.class, event.RejectNotServing)
	return problem(event.Unavailable)
}

// admitUnknown is admit for a request without an operation. Guessing paths takes permits like any other request.
func (k *call) admitUnknown() error {
	s := k.Node.Status()
	if k.at = s.At; isNotServing(&s) {
		k.isAdmitted = true
		return k.rejectNotServing()
	}
	return k.admit()
}

// refuseMalformed rejects a request that can be parsed in more than one way. It is admitted first, like a request
// for an unknown operation.
func (k *call) refuseMalformed(why error) {
	k.detail = why.Error()
	err := k.admitUnknown()
	if err == nil {
		err = problemDetail(event.BadRequest, why.Error())
	}
	k.fail(err)
}

// rejectFull rejects an admitted request because a queue that it needs has no room.
func (k *call) rejectFull(queue, detail string) error {
	k.fullQueue = queue
	return problemDetail(event.Busy, detail)
}

// finish returns the permit of a call, if it has one.
func (k *call) finish() {
	if k.permit != 0 {
		k.Admission.Finish(k.permit, k.bytesForwarded(), k.completion())
	}
}

// completion returns how a call that ends now has ended.
func (k *call) completion() event.Completion {
	ctx := k.r.Context()
	switch {
	case ctx.Err() != nil && k.ShutdownCause != nil && errors.Is(context.Cause(ctx), k.ShutdownCause), k.trace != nil && k.trace.CutByShutdown():
		return event.CompletionAborted
	case ctx.Err() != nil: // the client has left and sees no response
		return event.CompletionDone
	case k.problem == event.OutcomeUnknown:
		return event.CompletionAborted
	case k.problem == event.Unavailable:
		return event.CompletionRejected
	}
	return event.CompletionDone
}

// gaveWayDetail is the detail of a call that gave way.
const gaveWayDetail = "It took long, and its permit was given to a caller without a permit."

// rejectDetails are the details of problems, by reason.
var rejectDetails = [event.NumRejectReasons]string{
	event.RejectQuotaExceeded: "A quota is used up; the header RateLimit names it.",
	event.RejectPacingTimeout: "The quota of the instance is used up.",
	event.RejectQueueFull:     "The queue is full.",
	event.RejectClassLimit:    "The class of the caller has its share of the queue.",
	event.RejectFlowLimit:     "The caller has its share of the queue.",
	event.RejectClassDisabled: "The class of the caller is disabled.",
	event.RejectRouteLimit:    "The route has reached its limit of requests in progress.",
	event.RejectRouteFlow:     "The caller has its share of the requests in progress of the route.",
	event.RejectQueueTimeout:  "No permit became free in time.",
	event.RejectNoSlots:       "The class of the caller has too many requests.",
	event.RejectGaveWay:       gaveWayDetail,
}

// setRateLimit sets the RateLimit headers of the quota that decided.
func (k *call) setRateLimit() {
	v := &k.verdict
	if v.Rule == 0 || int(v.Rule) > len(k.snapshot.policies) || k.snapshot.Quotas[v.Rule-1].Name == "" {
		return
	}
	h, p := k.Header(), &k.snapshot.policies[v.Rule-1]
	h["Ratelimit-Policy"] = p.header
	line := append(make([]byte, 0, 64), p.quoted...)
	line = strconv.AppendUint(append(line, ";r="...), uint64(v.Left), 10)
	line = strconv.AppendInt(append(line, ";t="...), seconds(v.Reset), 10)
	h["Ratelimit"] = []string{string(line)}
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// retryAfterSeconds returns the value of Retry-After. For busy and rate_limited it is random within a quarter, so
// that clients that were rejected together do not return together.
func retryAfterSeconds(v *event.Decision) int64 {
	wait := max(1, seconds(v.RetryAfter))
	if v.Problem != event.Busy && v.Problem != event.RateLimited {
		return wait
	}
	return wait + rand.Int64N(1+wait/4+1)
}

// policy is a Policy with its header values.
type policy struct {
	quoted string   // the name as an item of a structured field (RFC 8941)
	header []string // shared by requests, and never written to
}

func newPolicy(p Policy) policy {
	quoted := strconv.Quote(p.Name)
	text := quoted + ";q=" + strconv.FormatUint(p.Quota, 10) + ";w=" + strconv.FormatInt(max(1, seconds(p.Window)), 10)
	if p.Bytes {
		text += `;qu="content-bytes"`
	}
	return policy{quoted, []string{text}}
}

// peerHash returns the client address as quotas count it.
func (k *call) peerHash() types.NameHash {
	if a := k.clientAddr(); a.IsValid() {
		return quotaSubject(a)
	}
	return digest.Name([]byte(k.r.RemoteAddr)) // a Unix socket
}

// peerAddress returns the client address for logs.
func (k *call) peerAddress() string {
	if a := k.clientAddr(); a.IsValid() {
		return a.String()
	}
	return k.r.RemoteAddr
}

// clientAddr returns the address of the client: the other end of the connection, or the address that trusted
// proxies forwarded. It is invalid if the connection has no IP address.
func (k *call) clientAddr() netip.Addr {
	a, _ := parseAddr(k.r.RemoteAddr)
	header := k.r.Header["X-Forwarded-For"]
	for i := len(header) - 1; i >= 0; i-- {
		for line := header[i]; k.trustsProxy(a); {
			comma := strings.LastIndexByte(line, ',')
			behind, ok := parseAddr(strings.TrimSpace(line[comma+1:]))
			if !ok {
				return a // a malformed address: the proxy itself is the client
			}
			a = behind
			if comma < 0 {
				break
			}
			line = line[:comma]
		}
	}
	return a
}

// parseAddr parses an IP address with or without a port.
func parseAddr(header string) (a netip.Addr, ok bool) {
	if ap, err := netip.ParseAddrPort(header); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.Trim(header, "[]"))
	return a.Unmap(), err == nil
}

// trustsProxy reports whether a is in a network of trusted proxies.
func (k *call) trustsProxy(a netip.Addr) bool {
	return slices.ContainsFunc(k.snapshot.Trusted, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// quotaSubject returns the hash of an address as quotas count it. IPv6 addresses count by their /64 network.
func quotaSubject(a netip.Addr) types.NameHash {
	a = a.WithZone("")
	if a.Is6() {
		network, _ := a.Prefix(64) // 64 is a valid length
		a = network.Addr()
	}
	raw := a.As16()
	return digest.Name(raw[:])
}

// maxPath is the length at which paths are cut in decisions, in bytes.
const maxPath = 128

// path returns a copy of the path of a call, without its query, as valid UTF-8: it is shown in JSON.
func (k *call) path() string {
	p := k.r.URL.Path
	return strings.Clone(strings.ToValidUTF8(p[:min(len(p), maxPath)], "\ufffd"))
}

// recordDecision hands the decision of a call to the Decisions.
func (k *call) recordDecision() {
	if k.Decisions == nil || k.id[0] == 0 {
		return
	}
	sent := k.sentRequestID()
	if sent == string(k.id[:]) { // an upstream gets the decision in place of a missing ID
		sent = ""
	}
	k.Decisions.Keep(Decision{ID: string(k.id[:]), ClientRequestID: strings.Clone(sent), At: k.at, Route: k.endpoint.name, Class: k.class, Facet: k.facet, Tenant: k.key.Tenant, Key: k.key.ID,
		Peer: k.peerAddress(), Verdict: k.verdict, Status: k.status, Code: k.code, In: uint64(k.meter.forwarded.Load()), Out: k.bytesSent(), Took: time.Since(k.startedAt),
		Method: method(k.r.Method), Path: k.path(), Trace: k.trace, FullQueue: k.fullQueue, ProxyRoute: k.proxyRoute, Config: &k.snapshot.ConfigSnapshot,
		Truncated: k.isTruncated, Detail: k.detail, WaitingFor: k.waitingFor, DegradedBy: k.degradedBy, RetryAfter: k.headerValues[2]})
}

// method returns a copy of m, cut to 16 bytes: m is a part of the whole request line.
func method(m string) string { return strings.Clone(m[:min(len(m), 16)]) }

// Write counts the bytes that are sent. The status is 200 unless it was set.
func (k *call) Write(p []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	n, err := k.ResponseWriter.Write(p)
	k.sent += uint64(n)
	return n, err
}

package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// errNoRecord means that the node replied with a position that has no response. It is a bug.
var errNoRecord = errors.New("httpapi: the reply's record is not there")

// Header values that never change. They are shared, and never written to.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	linesType   = []string{"application/x-ndjson"}
	csvType     = []string{"text/csv; charset=utf-8; header=present"}
	eventsType  = []string{"text/event-stream"}
	noStore     = []string{"no-store"}
	isTrue      = []string{"true"}
	bearer      = []string{"Bearer"}
	closes      = []string{"close"}
)

// A call is one request and the writer of its response.
type call struct {
	http.ResponseWriter
	*API
	snapshot     *snapshot
	r            *http.Request
	params       []string // of the path, still escaped
	endpoint     *endpoint
	startedAt    time.Time
	timeLimit    time.Duration // until its deadline
	permitTime   time.Duration // how long a response without an end keeps its permit; 0: until its deadline
	facet        types.Facet   // the facet of the permit: that of the endpoint, or streams
	at           types.Time    // the time of the node at arrival
	key          event.Key     // of the caller; ID 0: none
	isRevoked    bool          // the key is revoked or has expired
	class        types.Class
	flow         types.Flow // of the fair queue
	verdict      event.Decision
	permit       types.Ticket // 0: none, or it was returned
	meter        meter
	counted      counted
	reservation  flow.Reservation // of what the request will cost
	sent         uint64           // bytes of the response
	id           receipt.DecisionText
	headerValues [3]string     // header values, in one allocation
	status       int           // of the response; 0: it has not begun
	code         string        // of the problem
	problem      event.Problem // of the response
	hasLargeSlot bool          // it has a slot of largeBodies until the response is sent
	isReplay     bool          // the outcome was that of an earlier request
	isFirst      bool          // it is not a replay, and changed something
	txID         types.TxID
	trace        ProxyTrace
	proxyRoute   string           // the name of the proxy route; empty: none
	routeUsage   *UsageLabels     // of the proxy route; nil: there is none
	isAdmitted   bool             // admission was asked, or the call was rejected instead
	isTruncated  bool             // the response began and was not completed
	detail       string           // why the call was rejected after admission, for logs
	waitingFor   types.Conditions // of the node, if it could not serve the call
	degradedBy   types.Conditions // of the node, if it could not serve the call
	payment      payment
	s3           *s3Call // nil: not a request of the S3 interface
	lostPermit   lostPermit
	fullQueue    string // the queue of the registry that had no room after admission
}

// WriteHeader notes the status. Informational statuses are not the response.
func (k *call) WriteHeader(status int) {
	if status >= http.StatusOK {
		k.status = status
	}
	if status >= http.StatusOK && k.begins() {
		k.Header()["Connection"] = closes
	} else if k.leavesBody() && (k.needsNoBody() || status >= http.StatusBadRequest && k.key.ID == 0) {
		k.Header()["Connection"] = closes
		_ = http.NewResponseController(k.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
	}
	k.ResponseWriter.WriteHeader(status)
}

// leavesBody reports whether a request has a body that was not read. If it has no API key and was rejected, or no endpoint
// reads such a body, its connection ends with the response and reads nothing more: otherwise the server would wait for
// that body before it sends the response, and the connection would not give way to others meanwhile.
func (k *call) leavesBody() bool {
	if k.r.ProtoMajor != 1 || k.r.ContentLength == 0 {
		return false
	}
	return k.r.ContentLength < 0 || k.meter.forwarded.Load() < k.r.ContentLength
}

// needsNoBody reports whether no endpoint reads the body of a request. A service behind the gateway may.
func (k *call) needsNoBody() bool {
	return k.proxyRoute == "" && (k.r.Method == http.MethodGet || k.r.Method == http.MethodHead)
}

// Hijack returns the connection for another protocol.
func (k *call) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, with, err := http.NewResponseController(k.ResponseWriter).Hijack()
	if err == nil && k.status == 0 {
		k.begins()
		k.status = http.StatusSwitchingProtocols
	}
	return conn, with, err
}

// Unwrap is for http.ResponseController.
func (k *call) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// commandHeader returns the header of a command of the call, without an idempotency key.
func (k *call) commandHeader() command.Header {
	return command.Header{Permit: k.permit, Caller: k.key.ID, Tenant: k.key.Tenant}
}

// identify gives a decision ID to a call that has none.
func (k *call) identify() {
	if k.id[0] == 0 {
		k.id = receipt.DecisionID(k.Boot, k.decisionCount.Add(1))
	}
}

// record takes the decision ID from the record at p.
func (k *call) record(p types.Position) {
	k.txID = types.NewTxID(k.Node.Journal(), p)
	k.id = receipt.RecordID(k.Node.Journal(), p)
}

// answer sends a whole response.
func (k *call) answer(status int, kind []string, body []byte) {
	k.begin(status, kind)
	_, _ = k.Write(body) // a client that has left is not an error
}

// begin sends the header of a response that must not be cached.
func (k *call) begin(status int, kind []string) { k.start(status, kind, noStore) }

// start sends the header of a response. A response without a body has no media type.
func (k *call) start(status int, kind, caching []string) {
	h := k.Header()
	k.nameDecision(h)
	if kind != nil {
		h["Content-Type"] = kind
	}
	h["Cache-Control"] = caching
	if corr := k.r.Header["X-Corr-Id"]; len(corr) == 1 && printable(corr[0]) {
		h["X-Corr-Id"] = corr
	}
	if parent := k.r.Header["Traceparent"]; len(parent) == 1 {
		if trace, ok := continueTrace(parent[0], &k.id); ok {
			k.headerValues[1] = trace
			h["Traceparent"] = k.headerValues[1:2:2]
		}
	}
	k.WriteHeader(status)
}

// sendProblem sends a problem.
func (k *call) sendProblem(r *refusal) {
	h := k.Header()
	delete(h, "Idempotency-Replayed")
	switch r.problem.Status() {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = bearer
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		k.headerValues[2] = "1"
		if known := h["Retry-After"]; len(known) == 1 {
			k.headerValues[2] = known[0]
		}
		if k.fullQueue != "" {
			k.headerValues[2] = strconv.FormatInt(retryAfterSeconds(&event.Decision{Problem: event.Busy, RetryAfter: 2 * time.Second}), 10)
		}
		if k.verdict.Problem != event.None {
			k.headerValues[2] = strconv.FormatInt(retryAfterSeconds(&k.verdict), 10)
		}
		switch r.problem {
		case event.IdempotencyCapacity:
			k.headerValues[2] = "60" // keys expire slowly
		case event.EventsDeferred:
			k.headerValues[2] = "10" // the index has them soon, and no request lasts long
		default:
		}
		h["Retry-After"] = k.headerValues[2:3:3]
	}
	k.problem, k.code = r.problem, r.problem.Code()
	if k.Rejected != nil && k.isCallersFault() {
		k.Rejected(k.r.Context())
	}
	if k.s3 != nil {
		k.s3.refuse(r)
		return
	}
	out := takeBuffer()
	defer giveBuffer(out)
	*out = receipt.Problem((*out)[:0], r.problem, receipt.Facts{Decision: k.id[:], Nonce: r.nonce,
		Index: uint16(r.item - 1), Item: r.item > 0, Asset: r.asset, Missing: r.missing, Detail: r.detail})
	k.answer(r.problem.Status(), problemType, *out)
}

// isCallersFault reports whether a problem is one that the caller can cause at will, at no cost: the call is above a quota, or it has
// no API key and the problem is not one of the node.
func (k *call) isCallersFault() bool {
	return k.problem.Status() < http.StatusInternalServerError && (k.class == types.ClassAnon || k.verdict.Reason == event.RejectQuotaExceeded)
}

// sendRecord answers with the record at p. It returns receipt.ErrNoAnswer if the tenant has no response there.
func (k *call) sendRecord(p types.Position) error {
	out := takeBuffer()
	defer giveBuffer(out)
	answer, status, owner, err := k.ReadModel.Render((*out)[:0], p)
	*out = answer
	if err == nil && owner != k.key.Tenant {
		err = receipt.ErrNoAnswer
	}
	if err != nil {
		return err
	}
	answer = k.hideTxIDs(answer)
	kind := jsonType
	if status >= http.StatusBadRequest {
		kind = problemType
		_, code, _ := bytes.Cut(answer, []byte(`"code":"`))
		code, _, _ = bytes.Cut(code, []byte(`"`))
		k.code = string(code)
	}
	k.answer(status, kind, answer)
	return nil
}

// A refusal is a problem as an error.
type refusal struct {
	problem event.Problem
	nonce   types.Nonce // the expected nonce; 0: none
	item    int         // the item of a batch, from 1; 0: none
	asset   string      // that the account that pays lacks; empty: none
	missing types.Amount
	detail  string // ASCII without quotes, and without text of the request
}

func (r *refusal) Error() string { return r.problem.Code() + ": " + r.detail }

func problem(p event.Problem) error                      { return &refusal{problem: p} }
func problemDetail(p event.Problem, detail string) error { return &refusal{problem: p, detail: detail} }

// invalid returns a 400 for a validation error of the core, whose text is made for clients.
func invalid(err error) error { return problemDetail(event.BadRequest, err.Error()) }

// refusalOf returns the problem of an error.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	h, _ := errors.AsType[*echo.HTTPError](err)
	var unavailable interface{ Unavailable() bool }
	switch {
	case errors.As(err, &unavailable) && unavailable.Unavailable():
		return &refusal{problem: event.Unavailable}
	case errors.Is(err, receipt.ErrUnreadable):
		return &refusal{problem: event.RecordUnreadable}
	case h != nil && h.Code == http.StatusNotFound:
		return &refusal{problem: event.NotFound}
	case h != nil && h.Code == http.StatusMethodNotAllowed:
		return &refusal{problem: event.MethodNotAllowed}
	}
	return &refusal{problem: event.Internal}
}

// Package httpapi is the public HTTP API: it turns requests into events and records into responses. Its contract
// is openapi.json. It decides no rule.
//
//	serving? ─► admission ─► key ─► scope ─► idempotency key ─► media type ─► body ─► strict JSON ─► fields ─► Submit ─► Render
//	  503         429        401     403           400             415        413        400          400     429, 504   200, …
package httpapi

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	_ "embed"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"macronode/adapters/httpcheck"
	"macronode/adapters/objectstore"
	"macronode/adapters/s3"
	"macronode/core/event"
	"macronode/core/types"
)

//go:embed openapi.json
var document []byte

// Document returns the OpenAPI 3.1 document.
func Document() []byte { return document }

// Config are the parts and settings of an API.
type Config struct {
	Node      Node
	Admission Admission
	ReadModel ReadModel
	Index     Index // nil: endpoints that need it answer 503

	Usage     UsageReader // nil: no accounting
	Rows      Rows        // nil: no objects
	Names     s3.Names
	Contents  *objectstore.Store
	Transfers Transfers
	Paid      bool // writes of objects have a price
	// MinAppend is the smallest part in bytes of a resumable upload, but for the last one; 0: 1 MiB.
	MinAppend uint64
	UploadTTL time.Duration // after which an upload that was not completed is aborted; 0: never
	// Secret returns the secret access key of the S3 interface that belongs to an API key. Nil: there is none.
	Secret func(key *event.Key) string
	Region string // of the S3 interface

	Added  []PlaneRoutes // of planes that this package does not know
	Planes PlaneState    // for them

	Meter    Meter
	Metering Metering // nil: usage is not metered
	Audit    Audit    // nil: uses of keys are not recorded
	// Decisions records the decision of each request; may be nil.
	Decisions          interface{ Keep(d Decision) }
	Snapshot           ConfigSnapshot                // used until SetSnapshot
	Authenticated      func(request context.Context) // called for a request with a valid API key; may be nil
	Rejected           func(request context.Context) // called before the response to a request that is rejected, by the fault of its caller; may be nil
	Log                *slog.Logger
	Boot               uint64        // random; half of the IDs of decisions without a record
	Random             io.Reader     // for new API keys; nil: crypto/rand
	Deadline           time.Duration // of one request
	MaxLargeBodies     int           // requests with bodies beyond SmallBody that are served at the same time; more are rejected with 429
	HeartbeatInterval  time.Duration // idle time before a stream sends a heartbeat; 0: 15 s
	StreamWriteTimeout time.Duration // for the client to take a part of a stream; 0: 5 s
	ShutdownCause      error         // the cause with which the server cancels requests when it shuts down; may be nil
}

// API serves requests. It is safe for concurrent use.
type API struct {
	Config
	snapshot       atomic.Pointer[snapshot]
	echo           *echo.Echo
	otherEndpoints map[string]*endpoint // by method, for paths without an operation
	stream         *endpoint            // of changes
	proxyEndpoints map[string]*endpoint // by method, for proxy routes
	allowedMethods map[string]string    // by path, for Allow
	document       []byte               // of all operations
	routeCount     uint16               // of the API
	decisionCount  atomic.Uint64        // decisions without a record
	largeBodies    tenantSlots          // one slot for each request with a large body
	usageScans     tenantSlots          // one slot for each query that reads usage
	historyReads   tenantSlots          // one slot for each large page and each part of a stream that is read
	cursorCipher   cipher.AEAD          // of cursors
}

// New returns an API that serves all routes.
func New(c Config) *API {
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = 15 * time.Second
	}
	if c.StreamWriteTimeout == 0 {
		c.StreamWriteTimeout = 5 * time.Second
	}
	if c.MinAppend == 0 {
		c.MinAppend = minAppend
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	a := &API{Config: c, echo: echo.New(), document: document, otherEndpoints: make(map[string]*endpoint), allowedMethods: make(map[string]string),
		largeBodies: newTenantSlots(c.MaxLargeBodies), usageScans: newTenantSlots(maxUsageScans), historyReads: newTenantSlots(maxHistoryReads)}
	a.cursorCipher = newCursorCipher()
	a.echo.HTTPErrorHandler = a.refuse
	a.SetSnapshot(c.Snapshot)
	for _, r := range routes() {
		a.addRoute(r)
	}
	for _, p := range c.Added {
		a.addPlane(p)
	}
	for _, method := range [...]string{http.MethodGet, http.MethodPost, "other"} {
		a.otherEndpoints[method] = &endpoint{name: "other", usage: endpointUsage(serviceOf("other"), "other")}
		a.meter(a.otherEndpoints[method], method)
	}
	a.proxyEndpoints = make(map[string]*endpoint)
	for _, method := range [...]string{http.MethodGet, http.MethodPost, "other"} {
		a.proxyEndpoints[method] = &endpoint{name: "proxy", usage: endpointUsage(serviceGateway, "proxy"), facet: types.FacetProxy, meanBytes: 16 << 10}
		a.meter(a.proxyEndpoints[method], method)
	}
	a.stream = &endpoint{name: "stream", usage: endpointUsage(serviceOf("stream"), "stream")}
	a.meter(a.stream, http.MethodGet)
	return a
}

// newCursorCipher returns a cipher with a random key, which ends with the process.
func newCursorCipher() cipher.AEAD {
	var key [32]byte
	_, err := rand.Read(key[:])
	types.Assert(err == nil, "httpapi: no random numbers")
	lock, err := aes.NewCipher(key[:])
	types.Assert(err == nil, "httpapi: no cipher")
	cursorCipher, err := cipher.NewGCMWithRandomNonce(lock)
	types.Assert(err == nil, "httpapi: no cipher")
	return cursorCipher
}

// A route is one operation of the document. Its name is the operationId.
type route struct {
	name, method, path string
	serve              func(*call) error
	readsIndex         bool // it needs the index
}

// routes returns the operations of the document.
func routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{"issue", post, "/v1/issue", serveOperation(event.Issue), false},
		{"transfer", post, "/v1/transfer", serveOperation(event.Transfer), false},
		{"burn", post, "/v1/burn", serveOperation(event.Burn), false},
		{"hold", post, "/v1/holds", serveOperation(event.Hold), false},
		{"capture", post, "/v1/holds/:hold_id/capture", serveOperation(event.Capture), false},
		{"release", post, "/v1/holds/:hold_id/release", serveOperation(event.Release), false},
		{"freeze", post, "/v1/accounts/:account/freeze", serveOperation(event.Freeze), false},
		{"unfreeze", post, "/v1/accounts/:account/unfreeze", serveOperation(event.Unfreeze), false},
		{"batch", post, "/v1/batch", batch, false},
		{"balance", get, "/v1/balance", balance, false},
		{"balance_at", get, "/v1/accounts/:account/balance-at", balanceAt, true},
		{"entries", get, "/v1/accounts/:account/entries", entries, true},
		{"holds", get, "/v1/holds", holds, true},
		{"get_hold", get, "/v1/holds/:hold_id", getHold, true},
		{"tx", get, "/v1/tx/:txid", tx, false},
		{"lookup_tx", get, "/v1/tx", lookupTx, true},
		{"accounts", get, "/v1/accounts", accounts, true},
		{"assets", get, "/v1/assets", assets, true},
		{"changes", get, "/v1/changes", changes, true},
		{"create_key", post, "/v1/keys", createKey, false},
		{"keys", get, "/v1/keys", keys, false},
		{"revoke_key", http.MethodDelete, "/v1/keys/:key_id", revokeKey, false},
		{"s3_credentials", get, "/v1/s3-credentials", s3Credentials, false},
		{"put_object", http.MethodPut, "/o/:address", putObject, false},
		{"post_object", post, "/o", putObject, false},
		{"get_object", get, "/o/:address", getObject, false},
		{"head_object", http.MethodHead, "/o/:address", getObject, false},
		{"delete_object", http.MethodDelete, "/o/:address", deleteObject, false},
		{"append_object_upload", http.MethodPatch, "/o/:address/uploads/:upload_id", appendUpload, false},
		{"get_object_upload", get, "/o/:address/uploads/:upload_id", getUpload, false},
		{"head_object_upload", http.MethodHead, "/o/:address/uploads/:upload_id", getUpload, false},
		{"cancel_object_upload", http.MethodDelete, "/o/:address/uploads/:upload_id", cancelUpload, false},
		{"objects", get, "/o", listObjects, true},
		{"record_usage", post, "/v1/usage-events", recordUsage, false},
		{"usage", get, "/v1/usage", queryUsage, true},
		{"usage_slices", get, "/v1/usage-slices", usageSlices, true},
		{"openapi", get, "/openapi.json", openapi, false},
	}
}

// An endpoint is one endpoint of the API, with its metrics.
type endpoint struct {
	name      string
	usage     *UsageLabels
	facet     types.Facet
	number    uint16 // from 1, in the order of the document; 0: not in the document
	meanBytes uint32 // estimate of the size of a response
	answered  func(took time.Duration, status int, decision []byte)
	busy      func()
}

func (a *API) meter(e *endpoint, method string) {
	e.answered, e.busy = a.Meter.Endpoint(e.name, method)
}

func (a *API) addRoute(r route) {
	a.routeCount++
	e := &endpoint{name: r.name, usage: endpointUsage(serviceOf(r.name), r.name), number: a.routeCount, facet: types.FacetWallet, meanBytes: 1 << 10}
	switch r.name {
	case "put_object", "post_object", "get_object", "append_object_upload": // transfers take long
		e.facet, e.meanBytes = types.FacetStorage, 64<<10
	}
	if r.readsIndex {
		e.facet, e.meanBytes = types.FacetQuery, 16<<10
	}
	a.handle(e, r.method, r.path, r.serve)
}

// handle routes requests to an endpoint, which serves them after admission.
func (a *API) handle(e *endpoint, method, path string, serve func(*call) error) {
	a.meter(e, method)
	if a.allowedMethods[path] != "" {
		a.allowedMethods[path] += ", "
	}
	a.allowedMethods[path] += method
	enter := func(c echo.Context) error {
		k := c.Response().Writer.(*call)
		s := a.Node.Status()
		k.endpoint, k.params, k.at = e, c.ParamValues(), s.At
		if isNotServing(&s) { // writes are checked by the node, because a replay changes nothing
			return k.rejectNotServing()
		}
		if err := k.admit(); err != nil {
			return err
		}
		return serve(k)
	}
	a.echo.Add(method, path, enter)
	a.echo.OPTIONS(path, func(echo.Context) error { return echo.ErrMethodNotAllowed }) // otherwise echo answers it
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, a.otherEndpoint(r.Method), func(k *call) {
		if k.snapshot.Proxy != nil && !OwnsPath(r.URL.Path) {
			a.serveProxied(k)
			return
		}
		if err := httpcheck.Request(r); err != nil {
			k.refuseMalformed(err)
			return
		}
		a.echo.ServeHTTP(k, r)
	})
}

// answer serves one request. It is the only place that recovers from a panic: the request gets the problem
// internal, and the node goes on.
func (a *API) answer(w http.ResponseWriter, r *http.Request, e *endpoint, serve func(*call)) {
	k := &call{ResponseWriter: w, API: a, snapshot: a.snapshot.Load(), r: r, startedAt: time.Now(), timeLimit: a.Deadline, endpoint: e}
	defer func() {
		bug := recover()
		if k.hasLargeSlot {
			a.largeBodies.give(k.key.Tenant)
		}
		k.release()
		k.finish()
		err, _ := bug.(error)
		cut := errors.Is(err, http.ErrAbortHandler)
		if bug != nil && !cut {
			cut = a.reportPanic(k, bug)
		}
		cut = k.endPermit(cut) || cut
		k.isTruncated = cut && k.status > 0
		k.recordQuotaRejection()
		k.endpoint.answered(time.Since(k.startedAt), k.status, k.id[:])
		a.recordAudit(k)
		k.recordDecision()
		k.recordUsage()
		if cut {
			panic(http.ErrAbortHandler) // the connection must end
		}
	}()
	serve(k)
}

func (a *API) otherEndpoint(method string) *endpoint {
	if d, ok := a.otherEndpoints[method]; ok {
		return d
	}
	return a.otherEndpoints["other"]
}

// reportPanic logs a panic. It answers with a problem, or returns true if the response has begun and must be cut.
func (a *API) reportPanic(k *call, bug any) (cut bool) {
	a.Meter.Panicked()
	k.identify()
	a.Log.Error("request panicked", "decision", string(k.id[:]), "endpoint", k.endpoint.name, "bug", bug, "stack", string(debug.Stack()))
	if k.status > 0 {
		return true
	}
	k.sendProblem(&refusal{problem: event.Internal})
	return false
}

// recordAudit records a use of a key that changed something, and each request with a key that was rejected.
func (a *API) recordAudit(k *call) {
	if a.Audit == nil || k.key.ID == 0 || !k.isFirst && k.status < http.StatusBadRequest {
		return
	}
	a.Audit.Note(AuditRecord{Decision: string(k.id[:]), Key: k.key.ID, Tenant: k.key.Tenant, Route: k.endpoint.name,
		Peer: k.r.RemoteAddr, Status: k.status, Code: k.code, TxID: k.txID})
}

// refuse answers with the error of an endpoint, or of the router.
func (a *API) refuse(err error, c echo.Context) {
	k := c.Response().Writer.(*call)
	r := refusalOf(err)
	if !k.isAdmitted && (r.problem == event.NotFound || r.problem == event.MethodNotAllowed) {
		k.detail = "The API has no such operation."
		if rejected := k.admitUnknown(); rejected != nil {
			k.fail(rejected)
			return
		}
		if r.problem == event.NotFound && isIndex(k.r) {
			k.index()
			return
		}
	}
	if r.problem == event.MethodNotAllowed {
		k.Header().Set(echo.HeaderAllow, a.allowedMethods[c.Path()])
	}
	k.fail(err)
}

// fail answers with an error.
func (k *call) fail(err error) {
	k.recordQuotaRejection()
	k.identify()
	if k.status > 0 && errors.Is(err, errCut) { // the client left or stopped reading: not an error of the node
		panic(http.ErrAbortHandler)
	}
	r := refusalOf(err)
	switch r.problem {
	case event.Busy, event.RateLimited:
		k.endpoint.busy()
	case event.OutcomeUnknown, event.Timeout:
		if k.endpoint.facet != types.FacetProxy { // timeouts of an upstream are not counted as ours
			k.Meter.TimedOut(r.problem)
		}
	case event.Internal:
		k.Log.Error("request failed", "decision", string(k.id[:]), "endpoint", k.endpoint.name, "err", err)
	default: // the response is enough
	}
	if k.endpoint.facet != types.FacetProxy && (r.problem == event.Unavailable || r.problem == event.OutcomeUnknown) {
		s := k.Node.Status()
		k.waitingFor, k.degradedBy = s.WaitingFor, s.DegradedBy
		if r.problem == event.Unavailable && r.detail == "" {
			r = &refusal{problem: r.problem, item: r.item, detail: unavailableReason(&s, k.key.ID != 0)}
		}
	}
	if k.status > 0 {
		panic(http.ErrAbortHandler) // a truncated stream must not look complete
	}
	k.Meter.Refused(k.endpoint.facet, r.problem)
	k.sendProblem(r)
}

// expired reports whether a key is revoked or has expired.
func expired(k *event.Key, at types.Time) bool {
	return k.Revoked || k.Expires > 0 && k.Expires <= at
}

// Package adminapi is the HTTP API for operators: liveness and readiness, metrics, status,
// decisions, and commands such as drain and reload.
//
//	probe ─────────────────────────────────────────────────────► answered
//	else ─► host, origin ─► route, method ─► credential ───────► answered, and logged
//	            403            404, 405         401
package adminapi

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/wallet/receipt"
)

// Config has the sources of an API. None of them may block for long.
type Config struct {
	Status    func() event.Status
	Want      func(event.SignalKind) // sends an operator's command to the node
	Metrics   http.Handler
	Queues    func() []Queue
	Effective func() string                           // the applied configuration, in YAML, without secrets
	Applied   func() Applied                          // its version, and the outcome of the last attempt to change it
	Reload    func() Applied                          // reads the configuration again, and applies it completely or not at all
	Decision  func(id string) (decision any, ok bool) // on a request; false: not kept
	Upstreams func(set uint64) []string               // the names of some upstreams, by bits; nil: none
	Proof     func() (Proof, bool)                    // the current certificate; nil or false: none
	Turn      func() uint64                           // bytes of one turn in the fair queue, under the applied configuration
	Storage   func() Storage                          // the copies of objects
	Scrub     func() (number uint64)                  // requests a scrub: all copies are read after that
	Repair    func()                                  // begins to look for missing copies, and restores them
	Rebalance func()                                  // begins to move copies to the providers where new objects would have them
	Exports   ExportsConfig                           // the delivery to sinks
	Longest   time.Duration                           // longest duration of a drain: lame duck, drain and abort
	Insecure  bool                                    // a listener that is not on loopback serves without TLS; shown to operators
	Token     string                                  // of run.json; empty: not accepted

	// Hosts returns the host names, in lower case, that requests may use besides localhost
	// and IP addresses; *.example.com stands for all names below example.com. Nil: none.
	Hosts func() []string
	// OpenMetrics reports whether /metrics needs no credential off loopback. Nil: it needs one.
	OpenMetrics func() bool
	// Authorize checks a bearer credential other than Token, and returns a name of its holder
	// for the log, which must not reveal it. Nil: there is no other credential.
	Authorize func(credential string) (holder string, ok bool)
	// Authenticated is called for each request with a valid credential. May be nil.
	Authenticated func(request context.Context)
	// Rejected is called before the answer to a request that is rejected for its host, its path or its
	// missing credential. May be nil.
	Rejected func(request context.Context)

	Boot uint64 // random; half of the decision IDs
	Log  *slog.Logger
}

// A Queue is a bounded queue.
type Queue struct {
	Name    string `json:"name"`
	Depth   int    `json:"depth"`
	Limit   int    `json:"limit"`
	Unit    string `json:"unit"`
	Policy  string `json:"policy"`  // of a full queue
	Dropped uint64 `json:"dropped"` // dropped by the policy since the start
}

// Proof is the validity of the certificate.
type Proof struct {
	Ends time.Time `json:"ends"`
	Age  string    `json:"age"` // young; old: it ends within a week; over: clients reject it
}

// API serves operators.
type API struct {
	Config
	routes map[string]route
	pprof  route
	token  [sha256.Size]byte // digests are compared because they have one length
	count  atomic.Uint64     // of decisions
	now    func() time.Time

	checkInterval time.Duration // of the credential of a request that takes time

	wrongHost, noCredential rejectionLog
}

type route struct {
	method string
	access access
	serve  http.HandlerFunc
}

// New returns an API with all routes.
func New(c Config) *API {
	a := &API{Config: c, token: sha256.Sum256([]byte(c.Token)), now: time.Now, checkInterval: time.Second,
		wrongHost: rejectionLog{text: "admin request rejected: Host or Origin not allowed"}, noCredential: rejectionLog{text: "admin request rejected: no valid credential"}}
	a.pprof = route{http.MethodGet, operate, a.profile}
	a.routes = map[string]route{
		"/livez":            {http.MethodGet, probe, a.livez},
		"/healthz":          {http.MethodGet, probe, a.livez},
		"/readyz":           {http.MethodGet, probe, a.readyz},
		"/metrics":          {http.MethodGet, scrape, c.Metrics.ServeHTTP},
		"/debug/queues":     {http.MethodGet, operate, a.queues},
		"/config/effective": {http.MethodGet, operate, a.effective},
		"/config/status":    {http.MethodGet, operate, a.applied},
		"/config/reload":    {http.MethodPost, operate, a.reload},
		"/drain":            {http.MethodPost, operate, a.drain},
		"/clock/accept":     {http.MethodPost, operate, a.accept},
		"/storage":          {http.MethodGet, operate, a.storage},
		"/storage/scrub":    {http.MethodPost, operate, a.requestScrub},
		"/storage/repair":   {http.MethodPost, operate, a.beginStorage(c.Repair)},

		"/storage/rebalance": {http.MethodPost, operate, a.beginStorage(c.Rebalance)},

		"/exports":            {http.MethodGet, operate, a.exports},
		"/exports/quarantine": {http.MethodGet, operate, a.quarantine},
		"/exports/redrive":    {http.MethodPost, operate, a.redrive},
		"/exports/skip":       {http.MethodPost, operate, a.skip},
		"/exports/backfill":   {http.MethodPost, operate, a.backfill},
		"/exports/resume":     {http.MethodPost, operate, a.resume},
		"/exports/remove":     {http.MethodPost, operate, a.remove},
	}
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := receipt.DecisionID(a.Boot, a.count.Add(1))
	w.Header().Set("X-Request-Id", string(id[:]))
	w.Header().Set("X-Decision-Id", string(id[:]))
	w.Header().Set("Cache-Control", "no-store")
	if r.ProtoMajor == 1 && r.ContentLength != 0 { // no route reads a body, and the server must not wait for it
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // where there is none, the connection bounds it
	}
	answer := &response{ResponseWriter: w}
	w = answer
	defer func() { a.recovered(answer, string(id[:]), r, recover()) }()
	to, known := a.routes[r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		to, known = a.pprof, true
	}
	if strings.HasPrefix(r.URL.Path, decisionPath) {
		to, known = route{http.MethodGet, operate, a.decision}, true
	}
	log := a.Log.With("decision", string(id[:]), "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr)
	switch {
	case to.access != probe && !a.isAddressed(r):
		a.wrongHost.note(a.now(), log, "host", r.Host)
		a.reject(w, r, event.Forbidden, "The Host or the Origin is not this node's. Use an IP address or localhost, or add the host name to admin.hosts.")
	case !known:
		a.reject(w, r, event.NotFound, "")
	case r.Method != to.method && (r.Method != http.MethodHead || to.method != http.MethodGet):
		w.Header().Set("Allow", to.method)
		a.reject(w, r, event.MethodNotAllowed, "")
	default:
		a.enter(w, r, to, log)
	}
}

// recovered answers 500 for a handler that panicked before its answer began. An answer that
// has begun is aborted, so that its client does not take it for whole. http.ErrAbortHandler
// is how a handler aborts, and no bug.
func (a *API) recovered(w *response, decision string, r *http.Request, cause any) {
	switch {
	case cause == nil:
		return
	case cause == http.ErrAbortHandler: //nolint:errorlint,err113 // as in net/http
		panic(http.ErrAbortHandler)
	}
	a.Log.Error("admin request panicked", "decision", decision, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
	if w.began {
		panic(http.ErrAbortHandler)
	}
	a.refuse(w, event.Internal, "")
}

// response records whether the answer has begun.
type response struct {
	http.ResponseWriter
	began bool
}

// WriteHeader sends the header. An informational header does not begin the answer.
func (w *response) WriteHeader(status int) {
	w.began = w.began || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.began = true
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the underlying writer for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// enter serves a route if the request shows what the route needs.
func (a *API) enter(w http.ResponseWriter, r *http.Request, to route, log *slog.Logger) {
	if a.isOpen(to.access, r) {
		to.serve(w, r)
		return
	}
	holder, ok := a.credential(r)
	if !ok {
		a.noCredential.note(a.now(), log)
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.reject(w, r, event.Unauthorized, "This needs Authorization: Bearer with the token of run.json, the token of admin.token_file, or an API key of scope admin of the tenant default, without limits on accounts and assets.")
		return
	}
	log.Info("admin", "by", holder)
	to.serve(w, r)
}

// reject answers with a problem that any caller can cause, and reports it.
func (a *API) reject(w http.ResponseWriter, r *http.Request, p event.Problem, detail string) {
	if a.Rejected != nil {
		a.Rejected(r.Context())
	}
	a.refuse(w, p, detail)
}

// refuse answers with a problem.
func (a *API) refuse(w http.ResponseWriter, p event.Problem, detail string) {
	id := w.Header().Get("X-Request-Id")
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status() == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status())
	_, _ = w.Write(receipt.Problem(nil, p, receipt.Facts{Decision: []byte(id), Detail: detail})) // the client may be gone
}

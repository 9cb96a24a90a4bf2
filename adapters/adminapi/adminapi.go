// Package adminapi is the node as its operators see it: whether it lives and why it
// is not ready, what it counts and holds, and the few things that they may want of it.
//
//	probe ─────────────────────────────────────────────────────► answered
//	else ─► host, origin ─► route, method ─► credential ───────► answered, and logged
//	            403            404, 405         401
package adminapi

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/wallet/receipt"
)

// Config is what an API is made of. Nothing in it may block for long.
type Config struct {
	Status    func() event.Status
	Want      func(event.SignalKind) // carries an operator's wish to the node
	Metrics   http.Handler
	Queues    func() []Queue
	Effective func() string                           // the configuration as it is applied, in YAML, without secrets
	Applied   func() Applied                          // which one that is, and what became of the last that was tried
	Reload    func() Applied                          // reads it again, and applies it whole or not at all
	Decision  func(id string) (decision any, ok bool) // that became of a request; false: it is not kept
	Upstreams func(set uint64) []string               // the names of some, by their bits; nil: there are none
	Proof     func() (Proof, bool)                    // of who the node is, right now; nil or false: it has none
	Longest   time.Duration                           // that a drain takes: the lame duck, the drain and the abort
	Insecure  bool                                    // a listener beyond loopback serves without TLS; said aloud
	Token     string                                  // of run.json; empty: this token is not accepted

	// Hosts returns the host names, in lower case, that requests may use besides localhost
	// and IP addresses; *.example.com stands for all names below example.com. Nil: none.
	Hosts func() []string
	// OpenMetrics reports whether /metrics needs no credential off loopback. Nil: it needs one.
	OpenMetrics func() bool
	// Authorize checks a bearer credential other than Token, and returns a name of its holder
	// for the log, which must not reveal it. Nil: there is no other credential.
	Authorize func(credential string) (holder string, ok bool)

	Boot uint64 // random; half of the ids of decisions
	Log  *slog.Logger
}

// A Queue is something bounded that something waits in.
type Queue struct {
	Name    string `json:"name"`
	Depth   int    `json:"depth"`
	Limit   int    `json:"limit"`
	Unit    string `json:"unit"`
	Policy  string `json:"policy"`  // of a full one
	Dropped uint64 `json:"dropped"` // by it, since the start
}

// Proof is how long the certificate is good for.
type Proof struct {
	Ends time.Time `json:"ends"`
	Age  string    `json:"age"` // young; old: it ends within a week; over: clients refuse it
}

// API answers operators.
type API struct {
	Config
	routes map[string]route
	pprof  route
	token  [sha256.Size]byte // digests are compared: they are of one length
	count  atomic.Uint64     // of decisions
}

type route struct {
	method string
	access access
	serve  http.HandlerFunc
}

// New is an API whose routes are all known.
func New(c Config) *API {
	a := &API{Config: c, token: sha256.Sum256([]byte(c.Token)), pprof: route{http.MethodGet, operate, profile}}
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
	}
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := receipt.DecisionID(a.Boot, a.count.Add(1))
	w.Header().Set("X-Request-Id", string(id[:]))
	w.Header().Set("X-Decision-Id", string(id[:]))
	w.Header().Set("Cache-Control", "no-store")
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
		log.Warn("admin request rejected: Host or Origin not allowed", "host", r.Host)
		a.refuse(w, event.Forbidden, "The Host or the Origin is not this node's. Use an IP address or localhost, or add the host name to admin.hosts.")
	case !known:
		a.refuse(w, event.NotFound, "")
	case r.Method != to.method && (r.Method != http.MethodHead || to.method != http.MethodGet):
		w.Header().Set("Allow", to.method)
		a.refuse(w, event.MethodNotAllowed, "")
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
	case cause == http.ErrAbortHandler: //nolint:errorlint,err113 // net/http compares it so, too
		panic(http.ErrAbortHandler)
	}
	a.Log.Error("admin request panicked", "decision", decision, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
	if w.began {
		panic(http.ErrAbortHandler)
	}
	a.refuse(w, event.Internal, "")
}

// response notes whether the answer has begun.
type response struct {
	http.ResponseWriter
	began bool
}

// WriteHeader sends the header. An informational header begins no answer.
func (w *response) WriteHeader(status int) {
	w.began = w.began || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.began = true
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController the writer below.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// enter serves a route if the request shows what the route needs.
func (a *API) enter(w http.ResponseWriter, r *http.Request, to route, log *slog.Logger) {
	if a.isOpen(to.access, r) {
		to.serve(w, r)
		return
	}
	holder, ok := a.credential(r)
	if !ok {
		log.Warn("admin request rejected: no valid credential")
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.refuse(w, event.Unauthorized, "This needs Authorization: Bearer with the token of run.json, the token of admin.token_file, or an API key of scope admin.")
		return
	}
	log.Info("admin", "by", holder)
	to.serve(w, r)
}

// refuse answers with a problem.
func (a *API) refuse(w http.ResponseWriter, p event.Problem, detail string) {
	id := w.Header().Get("X-Request-Id")
	w.Header().Set("Content-Type", "application/problem+json")
	if p.Status() == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status())
	_, _ = w.Write(receipt.Problem(nil, p, receipt.Facts{Decision: []byte(id), Detail: detail})) // nobody is left to tell
}

// profile is the runtime's own view. Its handlers know their names.
func profile(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// Package adminapi is the node as its operators see it: whether it lives and why it
// is not ready, what it counts and holds, and the few things that they may want of it.
//
//	whose name? ─► from where? ─► what? ─► by which token? ─► answered, and logged
//	    403            403        404, 405        401
package adminapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"macronode/core/event"
	"macronode/core/receipt"
)

// Config is what an API is made of. Nothing in it may block for long.
type Config struct {
	Status    func() event.Status
	Want      func(event.Signals) // carries an operator's wish to the node
	Metrics   http.Handler
	Queues    func() []Queue
	Effective func() string                           // the configuration as it is applied, in YAML, without secrets
	Applied   func() Applied                          // which one that is, and what became of the last that was tried
	Reload    func() Applied                          // reads it again, and applies it whole or not at all
	Decision  func(id string) (decision any, ok bool) // that became of a request; false: it is not kept
	Upstreams func(set uint64) []string               // the names of some, by their bits; nil: there are none
	Proof     func() (Proof, bool)                    // of who the node is, right now; nil or false: it has none
	Insecure  bool                                    // a listener beyond loopback serves without TLS; said aloud
	Token     string                                  // of run.json; without one nothing that wants it is served
	Boot      uint64                                  // random; half of the ids of decisions
	Log       *slog.Logger
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

// A route is open, on loopback, or wants the token.
type route struct {
	method string
	open   bool
	serve  http.HandlerFunc
}

// New is an API whose routes are all known.
func New(c Config) *API {
	a := &API{Config: c, token: sha256.Sum256([]byte(c.Token)), pprof: route{method: http.MethodGet, serve: profile}}
	a.routes = map[string]route{
		"/livez":            {http.MethodGet, true, a.livez},
		"/healthz":          {http.MethodGet, true, a.livez},
		"/readyz":           {http.MethodGet, true, a.readyz},
		"/metrics":          {http.MethodGet, true, c.Metrics.ServeHTTP},
		"/debug/queues":     {http.MethodGet, false, a.queues},
		"/config/effective": {http.MethodGet, false, a.effective},
		"/config/status":    {http.MethodGet, false, a.applied},
		"/config/reload":    {http.MethodPost, false, a.reload},
		"/drain":            {http.MethodPost, false, a.drain},
		"/clock/accept":     {http.MethodPost, false, a.accept},
	}
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := receipt.DecisionID(a.Boot, a.count.Add(1))
	w.Header().Set("X-Request-Id", string(id[:]))
	w.Header().Set("Cache-Control", "no-store")
	defer func() {
		if bug := recover(); bug != nil {
			a.Log.Error("an admin request met a bug", "decision", string(id[:]), "path", r.URL.Path, "bug", bug, "stack", string(debug.Stack()))
			a.refuse(w, event.Internal, "")
		}
	}()
	to, known := a.routes[r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		to, known = a.pprof, true
	}
	if strings.HasPrefix(r.URL.Path, decisionPath) {
		to, known = route{method: http.MethodGet, serve: a.decision}, true
	}
	log := a.Log.With("decision", string(id[:]), "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr)
	switch {
	case !ours(r) || !sameOrigin(r):
		log.Warn("an admin request was refused: made for another host, or by a page of another")
		a.refuse(w, event.Forbidden, "The Host or the Origin is not this node's.")
	case !known:
		a.refuse(w, event.NotFound, "")
	case r.Method != to.method && (r.Method != http.MethodHead || to.method != http.MethodGet):
		w.Header().Set("Allow", to.method)
		a.refuse(w, event.MethodNotAllowed, "")
	case to.open && onLoopback(r):
		to.serve(w, r)
	case !a.hasToken(r):
		log.Warn("an admin request was refused: it does not carry the token")
		w.Header().Set("WWW-Authenticate", "Bearer")
		a.refuse(w, event.Unauthorized, "The request does not carry the token of run.json.")
	default:
		log.Info("admin")
		to.serve(w, r)
	}
}

func (a *API) hasToken(r *http.Request) bool {
	said := r.Header["Authorization"]
	if a.Token == "" || len(said) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(said[0], " ")
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
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

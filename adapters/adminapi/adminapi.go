// Package adminapi is what operators and their machines ask of a node: whether it
// lives, whether it is ready and why not, what it counts, and that it end.
//
//	open on loopback:   /livez /healthz /readyz /metrics
//	with the token:     /debug/queues /debug/pprof /config/effective, POST /drain /clock/accept
//
// It never waits for the node: what it tells is what the node last said of itself.
package adminapi

import (
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"macronode/core/event"
	"macronode/core/receipt"
)

// Config is what stands behind an API.
type Config struct {
	Status    func() event.Status
	Want      func(event.Signals) // what the operator wants; it may wait for a moment
	Metrics   http.Handler
	Queues    func() []Queue
	Effective func() string // the configuration, without secrets
	Insecure  bool          // a listener beyond loopback serves without TLS, and that is said
	Token     string        // of whoever may change or reveal something
	Boot      uint64        // half of the ids of refusals
	Log       *slog.Logger
}

// A Queue is how full something bounded is, and what happens when it is.
type Queue struct {
	Name   string `json:"name"`
	Depth  int    `json:"depth"`
	Limit  int    `json:"limit"`
	Policy string `json:"policy"`
}

// API answers operators.
type API struct {
	Config
	mux *http.ServeMux
}

// New is an API whose routes are all known.
func New(c Config) *API {
	a := &API{Config: c, mux: http.NewServeMux()}
	a.open("GET /livez", a.live)
	a.open("GET /healthz", a.live)
	a.open("GET /readyz", a.ready)
	a.open("GET /metrics", c.Metrics.ServeHTTP)
	a.guarded("GET /debug/queues", a.queues)
	a.guarded("GET /config/effective", a.effective)
	a.guarded("POST /drain", a.drain)
	a.guarded("POST /clock/accept", a.acceptClock)
	a.guarded("GET /debug/pprof/", pprof.Index)
	a.guarded("GET /debug/pprof/cmdline", pprof.Cmdline)
	a.guarded("GET /debug/pprof/profile", pprof.Profile)
	a.guarded("GET /debug/pprof/symbol", pprof.Symbol)
	a.guarded("GET /debug/pprof/trace", pprof.Trace)
	return a
}

func (a *API) open(pattern string, serve http.HandlerFunc) { a.mux.HandleFunc(pattern, serve) }

// guarded wants the token, and leaves a line of every use.
func (a *API) guarded(pattern string, serve http.HandlerFunc) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		said := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(said), []byte(a.Token)) != 1 {
			a.Log.Warn("admin refused", "method", r.Method, "path", r.URL.Path, "peer", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.refuse(w, event.Unauthorized, "This route wants the token of run.json.")
			return
		}
		a.Log.Info("admin", "method", r.Method, "path", r.URL.Path, "peer", r.RemoteAddr)
		serve(w, r)
	})
}

// ServeHTTP answers one request, unless a page in somebody's browser sent it.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !ours(r.Host) || !sameOrigin(r) {
		a.Log.Warn("admin refused", "method", r.Method, "path", r.URL.Path, "host", r.Host, "origin", r.Header.Get("Origin"))
		a.refuse(w, event.Forbidden, "This listener is not for other sites.")
		return
	}
	serve, pattern := a.mux.Handler(r)
	if pattern == "" {
		a.none(w, r, serve)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// none tells of a route that is not there, or not for that method.
func (a *API) none(w http.ResponseWriter, r *http.Request, said http.Handler) {
	probe := &header{h: http.Header{}}
	said.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		a.refuse(w, event.NotFound, "")
		return
	}
	w.Header().Set("Allow", probe.h.Get("Allow"))
	a.refuse(w, event.MethodNotAllowed, "")
}

// header is an answer of which only the head matters.
type header struct {
	h      http.Header
	status int
}

func (p *header) Header() http.Header         { return p.h }
func (p *header) WriteHeader(status int)      { p.status = status }
func (p *header) Write(b []byte) (int, error) { return len(b), nil }

// ours reports that host names this machine by address or as localhost: no name that
// somebody else's DNS could lead here.
func ours(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return host == "localhost" || net.ParseIP(host) != nil
}

// sameOrigin reports that no page of another site sent r.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host
}

func (a *API) refuse(w http.ResponseWriter, p event.Problem, detail string) {
	id := receipt.DecisionID(a.Boot, 0)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status())
	_, _ = w.Write(receipt.Problem(nil, p, receipt.Facts{Decision: id[:], Detail: detail}))
}

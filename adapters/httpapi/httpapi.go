// Package httpapi is the public HTTP API: requests into events, records into
// answers. Its contract is openapi.json, and no rule is decided here.
//
//	open? ─► who? ─► may he? ─► key ─► kind ─► body ─► strict JSON ─► words ─► Submit ─► Render
//	 503      401      403       400    415    413      400           400      429, 504   200, …
package httpapi

import (
	_ "embed"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"macronode/core/event"
)

//go:embed openapi.json
var document []byte

// Document is the contract, OpenAPI 3.1.
func Document() []byte { return document }

// Config is what an API is made of.
type Config struct {
	Node     Node
	Books    Books
	Meter    Meter
	Log      *slog.Logger
	Boot     uint64        // random; half of the ids of decisions that are no record
	Deadline time.Duration // of one request
	Large    int           // bodies beyond Small that are read at once; one more is told to come back
}

// API answers requests.
type API struct {
	Config
	echo  *echo.Echo
	other map[string]*door  // by method: what no endpoint is
	takes map[string]string // the method of a path
	count atomic.Uint64     // of decisions that are no record
	large chan struct{}     // who reads a large body
}

// New is an API whose endpoints are all known.
func New(c Config) *API {
	a := &API{Config: c, echo: echo.New(), other: make(map[string]*door), takes: make(map[string]string), large: make(chan struct{}, c.Large)}
	a.echo.HTTPErrorHandler = a.refuse
	for _, op := range [...]event.Op{event.Issue, event.Transfer, event.Burn} {
		a.open(http.MethodPost, "/v1/"+op.String(), &door{name: op.String(), writes: true}, money(op))
	}
	a.open(http.MethodGet, "/v1/balance", &door{name: "balance"}, balance)
	a.open(http.MethodGet, "/v1/tx/:txid", &door{name: "tx"}, tx)
	a.open(http.MethodGet, "/openapi.json", &door{name: "openapi"}, openapi)
	for _, method := range [...]string{http.MethodGet, http.MethodPost, "other"} {
		a.other[method] = &door{name: "other"}
		a.meter(a.other[method], method)
	}
	return a
}

// A door is one endpoint.
type door struct {
	name     string
	writes   bool
	answered func(took time.Duration, decision []byte)
	busy     func()
}

// shut reports that the node does not take what comes through d now.
func (d *door) shut(s event.Status) bool { return d.writes && !s.Writes || !d.writes && !s.Reads }

func (a *API) meter(d *door, method string) { d.answered, d.busy = a.Meter.Endpoint(d.name, method) }

func (a *API) open(method, path string, d *door, serve func(*call) error) {
	a.meter(d, method)
	a.takes[path] = method
	enter := func(c echo.Context) error {
		k := c.Response().Writer.(*call)
		k.door, k.params = d, c.ParamValues()
		if d.shut(a.Node.Status()) {
			return problem(event.Unavailable)
		}
		return serve(k)
	}
	a.echo.Add(method, path, enter)
	a.echo.OPTIONS(path, func(echo.Context) error { return echo.ErrMethodNotAllowed }) // else it is answered there
}

// ServeHTTP answers one request. It is the one place where a bug that panicked is
// caught: its request is told so, and the node goes on.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := &call{ResponseWriter: w, API: a, r: r, began: time.Now(), door: a.otherDoor(r.Method)}
	defer func() {
		if bug := recover(); bug != nil {
			a.panicked(k, bug)
		}
		k.door.answered(time.Since(k.began), k.id[:])
	}()
	a.echo.ServeHTTP(k, r)
}

func (a *API) otherDoor(method string) *door {
	if d, ok := a.other[method]; ok {
		return d
	}
	return a.other["other"]
}

func (a *API) panicked(k *call, bug any) {
	a.Meter.Panicked()
	if k.begun {
		panic(http.ErrAbortHandler) // half an answer: the connection must end
	}
	k.identify()
	a.Log.Error("a request met a bug", "decision", string(k.id[:]), "endpoint", k.door.name, "bug", bug, "stack", string(debug.Stack()))
	k.tell(&refusal{problem: event.Internal})
}

// refuse answers what an endpoint, or the lack of one, ended with.
func (a *API) refuse(err error, c echo.Context) {
	k := c.Response().Writer.(*call)
	k.identify()
	r := reason(err)
	switch r.problem {
	case event.MethodNotAllowed:
		k.Header().Set(echo.HeaderAllow, a.takes[c.Path()])
	case event.Busy:
		k.door.busy()
	case event.Unknown, event.Deadline:
		a.Meter.TimedOut(r.problem)
	case event.Internal:
		a.Log.Error("a request failed", "decision", string(k.id[:]), "endpoint", k.door.name, "err", err)
	default: // told, and that is all
	}
	a.Meter.Refused(r.problem)
	k.tell(r)
}

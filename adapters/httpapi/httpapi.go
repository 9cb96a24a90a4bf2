// Package httpapi is the public HTTP API: requests into events, records into
// answers. Its contract is openapi.json, and no rule is decided here.
//
//	open? ─► turn ─► who? ─► may he? ─► key ─► kind ─► body ─► strict JSON ─► words ─► Submit ─► Render
//	 503      429     401      403       400    415    413      400           400      429, 504   200, …
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
	"macronode/core/event"
	"macronode/core/types"
)

//go:embed openapi.json
var document []byte

// Document is the contract, OpenAPI 3.1.
func Document() []byte { return document }

// Config is what an API is made of.
type Config struct {
	Node  Node
	Gate  Gate
	Books Books
	Views Views // nil: what they show is unavailable

	Rows      Rows // nil: no objects
	Contents  *objectstore.Store
	Transfers Transfers

	Meter Meter
	Audit Audit // nil: nobody keeps who did what
	// Decisions keeps what became of requests. Nil: nobody does.
	Decisions interface{ Keep(d Decision) }
	Face      Face                          // until it is changed
	Keyed     func(request context.Context) // called for a request with a valid API key; may be nil
	Log       *slog.Logger
	Boot      uint64        // random; half of the ids of decisions that are no record
	Random    io.Reader     // what new API keys are drawn from; nil: the machine's
	Deadline  time.Duration // of one request
	Large     int           // requests with bodies beyond Small that are in at once; one more is told to come back
	Beat      time.Duration // of silence, until a stream says that it lives; 0: 15 s
	Patience  time.Duration // for a part of a stream to be taken; 0: 5 s
	Cut       error         // the cause of which the server ends requests at its end; nil: it says none
}

// API answers requests.
type API struct {
	Config
	face    atomic.Pointer[face]
	echo    *echo.Echo
	other   map[string]*door  // by method: what no endpoint is
	stream  *door             // of changes, without an end
	away    map[string]*door  // by method: what goes to other services
	takes   map[string]string // the methods of a path
	numbers uint16            // of endpoints
	count   atomic.Uint64     // of decisions that are no record
	large   chan struct{}     // who came with a large body, and is not answered
	veil    cipher.AEAD       // of cursors
}

// New is an API whose endpoints are all known.
func New(c Config) *API {
	if c.Beat == 0 {
		c.Beat = 15 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 5 * time.Second
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	a := &API{Config: c, echo: echo.New(), other: make(map[string]*door), takes: make(map[string]string),
		large: make(chan struct{}, c.Large)}
	a.veil = newVeil()
	a.echo.HTTPErrorHandler = a.refuse
	a.Change(c.Face)
	for _, r := range routes() {
		a.open(r)
	}
	for _, method := range [...]string{http.MethodGet, http.MethodPost, "other"} {
		a.other[method] = &door{name: "other"}
		a.meter(a.other[method], method)
	}
	a.away = make(map[string]*door)
	for _, method := range [...]string{http.MethodGet, http.MethodPost, "other"} {
		a.away[method] = &door{name: "proxy", facet: types.FacetProxy, mean: 16 << 10}
		a.meter(a.away[method], method)
	}
	a.stream = &door{name: "stream"}
	a.meter(a.stream, http.MethodGet)
	return a
}

// newVeil is a key of this life alone.
func newVeil() cipher.AEAD {
	var key [32]byte
	_, err := rand.Read(key[:])
	types.Assert(err == nil, "httpapi: no random numbers")
	lock, err := aes.NewCipher(key[:])
	types.Assert(err == nil, "httpapi: no cipher")
	veil, err := cipher.NewGCMWithRandomNonce(lock)
	types.Assert(err == nil, "httpapi: no cipher")
	return veil
}

// A route is one operation of the document, by its operationId.
type route struct {
	name, method, path string
	serve              func(*call) error
	lists              bool // it reads the index
}

// routes are the document's.
func routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{"issue", post, "/v1/issue", money(event.Issue), false},
		{"transfer", post, "/v1/transfer", money(event.Transfer), false},
		{"burn", post, "/v1/burn", money(event.Burn), false},
		{"hold", post, "/v1/holds", money(event.Hold), false},
		{"capture", post, "/v1/holds/:hold_id/capture", money(event.Capture), false},
		{"release", post, "/v1/holds/:hold_id/release", money(event.Release), false},
		{"freeze", post, "/v1/accounts/:account/freeze", money(event.Freeze), false},
		{"unfreeze", post, "/v1/accounts/:account/unfreeze", money(event.Unfreeze), false},
		{"batch", post, "/v1/batch", batch, false},
		{"balance", get, "/v1/balance", balance, false},
		{"balance_at", get, "/v1/accounts/:account/balance-at", balanceAt, true},
		{"entries", get, "/v1/accounts/:account/entries", entries, true},
		{"holds", get, "/v1/holds", holds, true},
		{"get_hold", get, "/v1/holds/:hold_id", showHold, true},
		{"tx", get, "/v1/tx/:txid", tx, false},
		{"lookup_tx", get, "/v1/tx", lookupTx, true},
		{"accounts", get, "/v1/accounts", accounts, true},
		{"assets", get, "/v1/assets", assets, true},
		{"changes", get, "/v1/changes", changes, true},
		{"create_key", post, "/v1/keys", makeKey, false},
		{"keys", get, "/v1/keys", keys, false},
		{"revoke_key", http.MethodDelete, "/v1/keys/:key_id", revokeKey, false},
		{"put_object", http.MethodPut, "/o/:address", putObject, false},
		{"post_object", post, "/o", putObject, false},
		{"get_object", get, "/o/:address", getObject, false},
		{"head_object", http.MethodHead, "/o/:address", getObject, false},
		{"delete_object", http.MethodDelete, "/o/:address", deleteObject, false},
		{"objects", get, "/o", listObjects, false},
		{"openapi", get, "/openapi.json", openapi, false},
	}
}

// A door is one endpoint.
type door struct {
	name     string
	facet    types.Facet
	number   uint16 // from 1, in the order of the document; 0: what no endpoint is
	mean     uint32 // bytes of an answer
	answered func(took time.Duration, status int, decision []byte)
	busy     func()
}

func (a *API) meter(d *door, method string) { d.answered, d.busy = a.Meter.Endpoint(d.name, method) }

func (a *API) open(r route) {
	a.numbers++
	d := &door{name: r.name, number: a.numbers, facet: types.FacetWallet, mean: 1 << 10}
	switch r.name {
	case "put_object", "post_object", "get_object": // they last
		d.facet, d.mean = types.FacetStorage, 64<<10
	}
	if r.lists {
		d.facet, d.mean = types.FacetQuery, 16<<10
	}
	a.meter(d, r.method)
	if a.takes[r.path] != "" {
		a.takes[r.path] += ", "
	}
	a.takes[r.path] += r.method
	enter := func(c echo.Context) error {
		k := c.Response().Writer.(*call)
		s := a.Node.Status()
		k.door, k.params, k.at = d, c.ParamValues(), s.At
		if asleep(&s) { // whether it takes writes the node says: a replay is an answer, and none
			return k.shut()
		}
		if err := k.arrive(); err != nil {
			return err
		}
		return r.serve(k)
	}
	a.echo.Add(r.method, r.path, enter)
	a.echo.OPTIONS(r.path, func(echo.Context) error { return echo.ErrMethodNotAllowed }) // else it is answered there
}

// ServeHTTP answers one request. It is the one place where a bug that panicked is
// caught: its request is told so, and the node goes on.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := &call{ResponseWriter: w, API: a, face: a.face.Load(), r: r, began: time.Now(), most: a.Deadline, door: a.otherDoor(r.Method)}
	defer func() {
		bug := recover()
		if k.lent {
			<-a.large
		}
		k.leave()
		err, _ := bug.(error)
		cut := errors.Is(err, http.ErrAbortHandler)
		if bug != nil && !cut {
			cut = a.panicked(k, bug)
		}
		k.cut = cut && k.status > 0
		k.heldBack()
		k.door.answered(time.Since(k.began), k.status, k.id[:])
		a.note(k)
		k.decided()
		if cut {
			panic(http.ErrAbortHandler) // the connection must end
		}
	}()
	if k.face.Beyond != nil && !ours(r.URL.Path) {
		a.sendOn(k)
		return
	}
	if err := httpcheck.Request(r); err != nil {
		k.refuseMalformed(err)
		return
	}
	a.echo.ServeHTTP(k, r)
}

func (a *API) otherDoor(method string) *door {
	if d, ok := a.other[method]; ok {
		return d
	}
	return a.other["other"]
}

// panicked tells of a bug, unless half an answer is out: then that must be cut.
func (a *API) panicked(k *call, bug any) (cut bool) {
	a.Meter.Panicked()
	k.identify()
	a.Log.Error("request panicked", "decision", string(k.id[:]), "endpoint", k.door.name, "bug", bug, "stack", string(debug.Stack()))
	if k.status > 0 {
		return true
	}
	k.tell(&refusal{problem: event.Internal})
	return false
}

// note keeps what was done with a key, and what was refused to it.
func (a *API) note(k *call) {
	if a.Audit == nil || k.key.ID == 0 || !k.changed && k.status < http.StatusBadRequest {
		return
	}
	a.Audit.Note(Use{Decision: string(k.id[:]), Key: k.key.ID, Tenant: k.key.Tenant, Route: k.door.name,
		Peer: k.r.RemoteAddr, Status: k.status, Code: k.code, TxID: k.made})
}

// refuse answers what an endpoint, or the lack of one, ended with.
func (a *API) refuse(err error, c echo.Context) {
	k := c.Response().Writer.(*call)
	r := reason(err)
	if !k.came && (r.problem == event.NotFound || r.problem == event.MethodNotAllowed) {
		k.lacks = "The API has no such operation."
		if no := k.arriveNowhere(); no != nil {
			k.fail(no)
			return
		}
		if r.problem == event.NotFound && isIndex(k.r) {
			k.index()
			return
		}
	}
	if r.problem == event.MethodNotAllowed {
		k.Header().Set(echo.HeaderAllow, a.takes[c.Path()])
	}
	k.fail(err)
}

// fail answers what a call ended with.
func (k *call) fail(err error) {
	k.heldBack()
	k.identify()
	if k.status > 0 && errors.Is(err, errCut) { // its client has left, or does not read: no failure of the node
		panic(http.ErrAbortHandler)
	}
	r := reason(err)
	switch r.problem {
	case event.Busy, event.RateLimited:
		k.door.busy()
	case event.OutcomeUnknown, event.Timeout:
		if k.door.facet != types.FacetProxy { // another service's is no wait of ours
			k.Meter.TimedOut(r.problem)
		}
	case event.Internal:
		k.Log.Error("request failed", "decision", string(k.id[:]), "endpoint", k.door.name, "err", err)
	default: // told, and that is all
	}
	if k.door.facet != types.FacetProxy && (r.problem == event.Unavailable || r.problem == event.OutcomeUnknown) {
		s := k.Node.Status()
		k.unmet, k.ailing = s.WaitingFor, s.DegradedBy
	}
	if k.status > 0 {
		panic(http.ErrAbortHandler) // a stream that is cut must not look whole
	}
	k.Meter.Refused(k.door.facet, r.problem)
	k.tell(r)
}

// expired reports that a key is nobody's any more.
func expired(k *event.Key, at types.Time) bool {
	return k.Revoked || k.Expires > 0 && k.Expires <= at
}

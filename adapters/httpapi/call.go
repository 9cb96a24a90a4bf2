package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
)

// errNoRecord says that the node replied with a place where no answer is: a bug.
var errNoRecord = errors.New("httpapi: the reply's record is not there")

// Values of headers that never change. They are shared, and never written to.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
	isTrue      = []string{"true"}
	bearer      = []string{"Bearer"}
)

// A call is one request on its way to its answer, and the writer of that.
type call struct {
	http.ResponseWriter
	*API
	r      *http.Request
	params []string // of the path
	door   *door
	began  time.Time
	key    event.Key
	id     receipt.DecisionText
	said   [3]string // values of headers, to be of one allocation
	begun  bool      // the answer is on its way
}

// WriteHeader notes that the answer is on its way.
func (k *call) WriteHeader(status int) {
	k.begun = true
	k.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (k *call) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// identify names the decision of a call that made no record, unless it has a name.
func (k *call) identify() {
	if k.id[0] == 0 {
		k.id = receipt.DecisionID(k.Boot, k.count.Add(1))
	}
}

// record names the decision that is the record at p.
func (k *call) record(p words.Place) { k.id = receipt.RecordID(k.Node.Journal(), p) }

// answer sends all of an answer.
func (k *call) answer(status int, kind []string, body []byte) {
	h := k.Header()
	k.said[0] = string(k.id[:])
	h["X-Request-Id"] = k.said[0:1:1]
	h["Content-Type"] = kind
	h["Cache-Control"] = noStore
	if corr := k.r.Header["X-Corr-Id"]; len(corr) == 1 && printable(corr[0]) {
		h["X-Corr-Id"] = corr
	}
	if parent := k.r.Header["Traceparent"]; len(parent) == 1 {
		if trace, ok := goOn(parent[0], &k.id); ok {
			k.said[1] = trace
			h["Traceparent"] = k.said[1:2:2]
		}
	}
	k.WriteHeader(status)
	_, _ = k.Write(body) // a client that has left is no failure of ours
}

// tell sends a problem.
func (k *call) tell(r *refusal) {
	h := k.Header()
	delete(h, "Idempotency-Replayed")
	switch r.problem.Status() {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = bearer
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		k.said[2] = "1"
		if r.problem == event.IdempotencyFull {
			k.said[2] = "60" // keys expire slowly
		}
		h["Retry-After"] = k.said[2:3:3]
	}
	out := takeBuffer()
	defer giveBuffer(out)
	*out = receipt.Problem((*out)[:0], r.problem, receipt.Facts{Decision: k.id[:], Nonce: r.nonce, Detail: r.detail})
	k.answer(r.problem.Status(), problemType, *out)
}

// A refusal is a problem on its way to the client.
type refusal struct {
	problem event.Problem
	nonce   words.Nonce // expected; 0: not said
	detail  string      // plain ASCII without quotes, and nothing of the request in it
}

func (r *refusal) Error() string { return r.problem.Code() + ": " + r.detail }

func problem(p event.Problem) error                { return &refusal{problem: p} }
func because(p event.Problem, detail string) error { return &refusal{problem: p, detail: detail} }

// wrong refuses what a check of ours, whose errors are made to be told, found wrong.
func wrong(err error) error { return because(event.BadRequest, err.Error()) }

// reason is what a client is told of an error.
func reason(err error) *refusal {
	var r *refusal
	var h *echo.HTTPError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &h) && h.Code == http.StatusNotFound:
		return &refusal{problem: event.NotFound}
	case errors.As(err, &h) && h.Code == http.StatusMethodNotAllowed:
		return &refusal{problem: event.MethodNotAllowed}
	}
	return &refusal{problem: event.Internal}
}

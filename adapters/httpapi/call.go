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

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// errNoRecord says that the node replied with a place where no answer is: a bug.
var errNoRecord = errors.New("httpapi: the reply's record is not there")

// Values of headers that never change. They are shared, and never written to.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	linesType   = []string{"application/x-ndjson"}
	csvType     = []string{"text/csv; charset=utf-8; header=present"}
	eventsType  = []string{"text/event-stream"}
	noStore     = []string{"no-store"}
	isTrue      = []string{"true"}
	bearer      = []string{"Bearer"}
)

// A call is one request on its way to its answer, and the writer of that.
type call struct {
	http.ResponseWriter
	*API
	face    *face
	r       *http.Request
	params  []string // of the path, as they were written there
	door    *door
	began   time.Time
	most    time.Duration // until its deadline
	keeps   time.Duration // a permit, where an answer has no end
	facet   types.Facet   // whose permit it wants: that of its door, or streams
	at      types.Time    // the node's, when it came in
	key     event.Key     // that was shown; 0: none
	over    bool          // it was somebody's, and is not any more
	of      types.Class
	flow    types.Flow // whose turns and shares it takes
	verdict event.Decision
	pass    types.Ticket // a permit, until it is settled
	meter   meter
	sent    uint64 // bytes of the answer
	id      receipt.DecisionText
	said    [3]string     // values of headers, to be of one allocation
	status  int           // of the answer that is on its way; 0: none is
	code    string        // of the problem that it is
	told    event.Problem // the same
	lent    bool          // a place among the large bodies, until it is answered
	changed bool          // something, for the first time
	made    types.TxID
	course  Course
	way     string           // the route of the configuration that it takes
	came    bool             // it has asked to be let in
	cut     bool             // its answer began, and is not whole
	lacks   string           // what it is refused for behind the gate, as those who ask later are told it
	unmet   types.Conditions // of the node, when it could not serve it
	ailing  types.Conditions // the same
	full    string           // the queue, of those that the registry names, that had no place for it behind the gate
}

// WriteHeader notes that the answer is on its way. What comes before it is none.
func (k *call) WriteHeader(status int) {
	if status >= http.StatusOK {
		k.status = status
	}
	k.ResponseWriter.WriteHeader(status)
}

// Hijack lends the connection to another protocol, where no answer is on its way.
func (k *call) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, with, err := http.NewResponseController(k.ResponseWriter).Hijack()
	if err == nil && k.status == 0 {
		k.status = http.StatusSwitchingProtocols
	}
	return conn, with, err
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
func (k *call) record(p types.Position) {
	k.made = types.NewTxID(k.Node.Journal(), p)
	k.id = receipt.RecordID(k.Node.Journal(), p)
}

// answer sends all of an answer.
func (k *call) answer(status int, kind []string, body []byte) {
	k.begin(status, kind)
	_, _ = k.Write(body) // a client that has left is no failure of ours
}

// begin sends the header of an answer that nobody may store.
func (k *call) begin(status int, kind []string) { k.start(status, kind, noStore) }

// start sends the header of an answer. One without a body has no kind.
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
		if trace, ok := goOn(parent[0], &k.id); ok {
			k.said[1] = trace
			h["Traceparent"] = k.said[1:2:2]
		}
	}
	k.WriteHeader(status)
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
		if known := h["Retry-After"]; len(known) == 1 {
			k.said[2] = known[0]
		}
		if k.full != "" {
			k.said[2] = strconv.FormatInt(again(&event.Decision{Problem: event.Busy, RetryAfter: 2 * time.Second}), 10)
		}
		if k.verdict.Problem != event.None {
			k.said[2] = strconv.FormatInt(again(&k.verdict), 10)
		}
		if r.problem == event.IdempotencyCapacity {
			k.said[2] = "60" // keys expire slowly
		}
		h["Retry-After"] = k.said[2:3:3]
	}
	k.told, k.code = r.problem, r.problem.Code()
	out := takeBuffer()
	defer giveBuffer(out)
	*out = receipt.Problem((*out)[:0], r.problem, receipt.Facts{Decision: k.id[:], Nonce: r.nonce,
		Index: uint16(r.item - 1), Item: r.item > 0, Detail: r.detail})
	k.answer(r.problem.Status(), problemType, *out)
}

// show answers with the record at p: receipt.ErrNone where the caller has none there.
func (k *call) show(p types.Position) error {
	out := takeBuffer()
	defer giveBuffer(out)
	answer, status, owner, err := k.Books.Render((*out)[:0], p)
	*out = answer
	if err == nil && owner != k.key.Tenant {
		err = receipt.ErrNoAnswer
	}
	if err != nil {
		return err
	}
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

// A refusal is a problem on its way to the client.
type refusal struct {
	problem event.Problem
	nonce   types.Nonce // expected; 0: not said
	item    int         // of a batch, from 1; 0: none
	detail  string      // plain ASCII without quotes, and nothing of the request in it
}

func (r *refusal) Error() string { return r.problem.Code() + ": " + r.detail }

func problem(p event.Problem) error                { return &refusal{problem: p} }
func because(p event.Problem, detail string) error { return &refusal{problem: p, detail: detail} }

// wrong refuses what a check of ours, whose errors are made to be told, found wrong.
func wrong(err error) error { return because(event.BadRequest, err.Error()) }

// reason is what a client is told of an error.
func reason(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	h, _ := errors.AsType[*echo.HTTPError](err)
	var away interface{ Unavailable() bool }
	switch {
	case errors.As(err, &away) && away.Unavailable():
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

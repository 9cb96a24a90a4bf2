package adminapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
)

// live says that the process answers.
func (a *API) live(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }

// view is what /readyz?verbose tells.
type view struct {
	Phase    string            `json:"phase"`
	Ready    bool              `json:"ready"`
	ForRead  bool              `json:"ready_for_read"`
	Reads    bool              `json:"reads"`
	Writes   bool              `json:"writes"`
	Unmet    []string          `json:"unmet"`
	Ailing   []string          `json:"ailing"`
	Insecure bool              `json:"insecure"`
	Ack      string            `json:"acknowledged"`
	LSN      uint64            `json:"lsn"`
	Durable  uint64            `json:"durable_lsn"`
	Folded   uint64            `json:"folded_lsn"`
	At       string            `json:"at"`
	OffsetMs int64             `json:"clock_offset_ms"`
	Held     uint32            `json:"held_replies"`
	Keys     uint32            `json:"idempotency_keys"`
	Backlog  uint64            `json:"backlog_bytes"`
	Restarts map[string]uint64 `json:"restarts"`
	Drain    drained           `json:"drain"`
}

type drained struct {
	Finished uint64 `json:"finished"`
	Refused  uint64 `json:"refused"`
	Aborted  uint64 `json:"aborted"`
}

// ready says whether the node may be given traffic: all of it, or with for=read
// reads alone.
func (a *API) ready(w http.ResponseWriter, r *http.Request) {
	q, s := r.URL.Query(), a.Status()
	ok := s.Ready
	switch kind := q.Get("for"); kind {
	case "":
	case "read":
		ok = s.ForRead
	default:
		a.refuse(w, event.BadRequest, "for is read, or not there.")
		return
	}
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if !q.Has("verbose") {
		plain(w, status, s.Phase.String())
		return
	}
	structured(w, status, a.view(s))
}

func (a *API) view(s event.Status) view {
	v := view{Phase: s.Phase.String(), Ready: s.Ready, ForRead: s.ForRead, Reads: s.Reads, Writes: s.Writes,
		Unmet: names(s.Unmet), Ailing: names(s.Ailing), Insecure: a.Insecure, Ack: "after fsync",
		LSN: uint64(s.LSN), Durable: uint64(s.Durable), Folded: uint64(s.Folded), At: string(receipt.Stamp(nil, s.At)),
		OffsetMs: s.Offset.Milliseconds(), Held: s.Held, Keys: s.Keys, Backlog: s.Backlog, Restarts: map[string]uint64{},
		Drain: drained(s.Report)}
	for c := range words.Children {
		v.Restarts[c.String()] = s.Restarts[c]
	}
	return v
}

func names(set words.Conditions) []string {
	all := []string{}
	for c := range set.Each {
		all = append(all, c.String())
	}
	return all
}

func (a *API) queues(w http.ResponseWriter, _ *http.Request) {
	structured(w, http.StatusOK, a.Queues())
}

func (a *API) effective(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = fmt.Fprint(w, a.Effective())
}

// drain asks the node to end; ?abort, to give up what is in.
func (a *API) drain(w http.ResponseWriter, r *http.Request) {
	what := event.Drain
	if r.URL.Query().Has("abort") {
		what = event.Abort
	}
	a.Want(what)
	structured(w, http.StatusAccepted, a.view(a.Status()))
}

// acceptClock believes the machine's clock.
func (a *API) acceptClock(w http.ResponseWriter, _ *http.Request) {
	a.Want(event.AcceptClock)
	structured(w, http.StatusAccepted, a.view(a.Status()))
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}

func structured(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
}

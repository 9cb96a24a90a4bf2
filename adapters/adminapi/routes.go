package adminapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/core/event"
	"macronode/core/types"
)

// state is the answer of readyz. What is in every one comes first; the rest is told
// to those who ask for more.
type state struct {
	Ready  bool     `json:"ready"`
	Phase  string   `json:"phase"`
	Reads  bool     `json:"reads"`
	Writes bool     `json:"writes"`
	Unmet  []string `json:"waiting_for"`
	Ailing []string `json:"degraded_by"`
	*more  `json:",inline"`
}

type more struct {
	Awaited  []string          `json:"awaited_upstreams,omitempty"`   // that were never well, and must be before anything is served
	Broken   []string          `json:"broken_upstreams,omitempty"`    // whose breaker does not let everybody through
	Down     []string          `json:"unhealthy_upstreams,omitempty"` // whose health checks fail on every endpoint
	Proof    *Proof            `json:"certificate,omitempty"`         // absent: no listener has TLS
	Insecure bool              `json:"insecure"`                      // served beyond loopback without TLS
	Fault    string            `json:"journal_fault"`                 // how the journal failed; empty: it has not
	LSN      uint64            `json:"lsn"`
	Durable  uint64            `json:"durable_lsn"`
	Folded   uint64            `json:"folded_lsn"`
	At       time.Time         `json:"at"`
	Offset   int64             `json:"clock_offset_ms"`
	Held     uint32            `json:"held_replies"`
	Keys     uint32            `json:"idempotency_keys"`
	Backlog  uint64            `json:"backlog_bytes"`
	Restarts map[string]uint64 `json:"restarts"`
	Report   report            `json:"drain"`
}

type report struct {
	Finished uint64 `json:"finished"`
	Rejected uint64 `json:"refused"`
	Aborted  uint64 `json:"aborted"`
}

// livez answers: that is all there is to it.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) {
	a.say(w, http.StatusOK, struct {
		Alive bool   `json:"alive"`
		Phase string `json:"phase"`
	}{true, a.Status().Phase.String()})
}

// readyz says whether to send traffic, all of it or one part, and why not.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	flags, ok := query(r, "verbose", "for")
	s := a.Status()
	ready, known := readyFor(&s, flags["for"])
	if _, named := flags["for"]; !ok || !known || flags["verbose"] != "" || named && flags["for"] == "" {
		a.refuse(w, event.BadRequest, "The query is not verbose, for=proxy, for=read, for=write, or verbose and one of these.")
		return
	}
	is := state{Ready: ready, Phase: s.Phase.String(), Reads: s.Reads, Writes: s.Writes, Unmet: names(s.WaitingFor), Ailing: names(s.DegradedBy)}
	if _, verbose := flags["verbose"]; verbose && a.mayReadDetails(r) {
		is.more = a.more(&s)
	}
	status := http.StatusOK
	if !is.Ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	a.say(w, status, is)
}

// readyFor is whether the node is ready for a part of the traffic. What is sent on to
// upstreams writes nothing here, so it needs what reads need: a disk that takes no writes
// does not take the proxy out of a load balancer.
func readyFor(s *event.Status, part string) (ready, known bool) {
	switch part {
	case "", "write":
		return s.Ready, true
	case "read", "proxy":
		return s.ForRead, true
	}
	return false, false
}

func (a *API) more(s *event.Status) *more {
	m := &more{Insecure: a.Insecure, Fault: s.Fault.String(), LSN: uint64(s.LSN), Durable: uint64(s.Durable), Folded: uint64(s.Applied),
		At: time.UnixMilli(int64(s.At)).UTC(), Offset: s.Offset.Milliseconds(), Held: s.HeldReplies, Keys: s.Keys, Backlog: s.Backlog,
		Restarts: make(map[string]uint64), Report: report(s.Report)}
	if s.AwaitedUpstreams != 0 && a.Upstreams != nil {
		m.Awaited = a.Upstreams(s.AwaitedUpstreams)
	}
	if s.OpenCircuits != 0 && a.Upstreams != nil {
		m.Broken = a.Upstreams(s.OpenCircuits)
	}
	if s.Down != 0 && a.Upstreams != nil {
		m.Down = a.Upstreams(s.Down)
	}
	if a.Proof != nil {
		if is, ok := a.Proof(); ok {
			m.Proof = &is
		}
	}
	for c := range types.NumServices {
		m.Restarts[c.String()] = s.Restarts[c]
	}
	return m
}

func names(set types.Conditions) []string {
	list := []string{}
	for c := range set.Each {
		list = append(list, c.String())
	}
	return list
}

func (a *API) queues(w http.ResponseWriter, _ *http.Request) { a.say(w, http.StatusOK, a.Queues()) }

// decisionPath comes before the id of a decision.
const decisionPath = "/v1/decisions/"

// decision tells what became of one request.
func (a *API) decision(w http.ResponseWriter, r *http.Request) {
	d, ok := a.Decision(strings.TrimPrefix(r.URL.Path, decisionPath))
	if !ok {
		a.refuse(w, event.NotFound, "No such decision is kept: the last ones are, since the start.")
		return
	}
	a.say(w, http.StatusOK, d)
}

// drain asks the node to end; asked to abort as well, not to wait for what is in.
func (a *API) drain(w http.ResponseWriter, r *http.Request) {
	flags, ok := query(r, "abort")
	if !ok || flags["abort"] != "" {
		a.refuse(w, event.BadRequest, "The query is not abort.")
		return
	}
	a.Want(event.Drain)
	if _, abort := flags["abort"]; abort {
		a.Want(event.Abort)
	}
	a.say(w, http.StatusAccepted, struct {
		Phase   string `json:"phase"`
		Longest int64  `json:"longest_ms"` // that it takes
	}{a.Status().Phase.String(), a.Longest.Milliseconds()})
}

// accept believes the machine's clock.
func (a *API) accept(w http.ResponseWriter, _ *http.Request) {
	a.Want(event.AcceptClock)
	a.wanted(w)
}

func (a *API) wanted(w http.ResponseWriter) {
	a.say(w, http.StatusAccepted, struct {
		Phase string `json:"phase"`
	}{a.Status().Phase.String()})
}

// query reads flags of which each is known and there at most once.
func query(r *http.Request, known ...string) (flags map[string]string, ok bool) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false
	}
	flags = make(map[string]string)
	for _, name := range known {
		if said := values[name]; len(said) == 1 {
			flags[name] = said[0]
		}
	}
	return flags, len(flags) == len(values)
}

func (a *API) say(w http.ResponseWriter, status int, what any) {
	b, err := json.Marshal(what, json.Deterministic(true))
	if err != nil {
		panic(err) // of types that are all ours
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // nobody is left to tell
}

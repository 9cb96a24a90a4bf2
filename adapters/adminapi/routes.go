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

// state is the answer of readyz. The first fields are in every answer, the others only with
// verbose.
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
	Awaited  []string          `json:"awaited_upstreams,omitempty"`          // were never healthy, and must be before the node serves
	Broken   []string          `json:"broken_upstreams,omitempty"`           // whose circuit is open or half-open for authenticated callers
	BrokenA  []string          `json:"broken_upstreams_anonymous,omitempty"` // whose circuit is open or half-open for anonymous callers
	Down     []string          `json:"unhealthy_upstreams,omitempty"`        // whose health checks fail on every endpoint
	Failed   []string          `json:"failed_providers,omitempty"`           // of objects, each with the reason
	Lost     int               `json:"lost_objects,omitzero"`                // GET /storage lists them
	Proof    *Proof            `json:"certificate,omitempty"`                // absent: no listener has TLS
	Insecure bool              `json:"insecure"`                             // serves without TLS on a listener that is not on loopback
	Fault    string            `json:"journal_fault"`                        // how the journal failed; empty: it has not
	LSN      uint64            `json:"lsn"`
	Durable  uint64            `json:"durable_lsn"`
	Folded   uint64            `json:"folded_lsn"`
	At       time.Time         `json:"at"`
	Offset   int64             `json:"clock_offset_ms"`
	Held     uint32            `json:"held_replies"`
	Keys     uint32            `json:"idempotency_keys"`
	Backlog  uint64            `json:"backlog_bytes"`
	Turn     uint64            `json:"turn_bytes"` // of the fair queue: queue.quantum_bytes, or less for a slow instance quota
	Restarts map[string]uint64 `json:"restarts"`
	Report   report            `json:"drain"`
}

type report struct {
	Finished uint64 `json:"finished"`
	Rejected uint64 `json:"refused"`
	Aborted  uint64 `json:"aborted"`
}

// livez always answers 200.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) {
	a.say(w, http.StatusOK, struct {
		Alive bool   `json:"alive"`
		Phase string `json:"phase"`
	}{true, a.Status().Phase.String()})
}

// readyz reports whether to send traffic, all of it or one part, and why not.
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

// readyFor reports whether the node is ready for a part of the traffic. Proxied requests write
// nothing here, so they need what reads need: a read-only disk does not take the proxy out of a
// load balancer.
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
	if a.Turn != nil {
		m.Turn = a.Turn()
	}
	if s.AwaitedUpstreams != 0 && a.Upstreams != nil {
		m.Awaited = a.Upstreams(s.AwaitedUpstreams)
	}
	if a.Upstreams != nil {
		if open := s.OpenCircuits[event.Authenticated]; open != 0 {
			m.Broken = a.Upstreams(open)
		}
		if open := s.OpenCircuits[event.Anonymous]; open != 0 {
			m.BrokenA = a.Upstreams(open)
		}
	}
	if s.Down != 0 && a.Upstreams != nil {
		m.Down = a.Upstreams(s.Down)
	}
	if s.DegradedBy.Has(types.ProviderFailed) && a.Storage != nil {
		for _, p := range a.Storage().Providers {
			if p.Failed != "" {
				m.Failed = append(m.Failed, p.Name+": "+p.Failed)
			}
		}
	}
	if s.DegradedBy.Has(types.ObjectsLost) && a.Storage != nil {
		is := a.Storage()
		m.Lost = is.LostCount()
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

// decisionPath is the prefix of the path of a decision.
const decisionPath = "/v1/decisions/"

// decision returns the decision on a request.
func (a *API) decision(w http.ResponseWriter, r *http.Request) {
	d, ok := a.Decision(strings.TrimPrefix(r.URL.Path, decisionPath))
	if !ok {
		a.refuse(w, event.NotFound, "No such decision is kept: the last ones are, since the start.")
		return
	}
	a.say(w, http.StatusOK, d)
}

// drain begins a drain; with abort, it does not wait for running requests.
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
		Longest int64  `json:"longest_ms"` // its longest duration
	}{a.Status().Phase.String(), a.Longest.Milliseconds()})
}

// accept trusts the machine's clock.
func (a *API) accept(w http.ResponseWriter, _ *http.Request) {
	a.Want(event.AcceptClock)
	a.wanted(w)
}

func (a *API) wanted(w http.ResponseWriter) {
	a.say(w, http.StatusAccepted, struct {
		Phase string `json:"phase"`
	}{a.Status().Phase.String()})
}

// query parses flags; each must be known and occur at most once.
func query(r *http.Request, known ...string) (flags map[string]string, ok bool) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false
	}
	flags = make(map[string]string)
	for _, name := range known {
		if given := values[name]; len(given) == 1 {
			flags[name] = given[0]
		}
	}
	return flags, len(flags) == len(values)
}

func (a *API) say(w http.ResponseWriter, status int, what any) {
	b, err := json.Marshal(what, json.Deterministic(true))
	if err != nil {
		panic(err) // cannot fail for these types
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
}

package adminapi

import (
	"net/http"
	"strconv"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// Exports is the state of the delivery to all sinks.
type Exports struct {
	Sinks []Sink `json:"sinks"`
}

// Sink is the state of the delivery to one sink.
type Sink struct {
	Name        string    `json:"name"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`           // starting: the node has not read its streams since its start; ok; waiting: an attempt has no answer for 5 s, or the oldest item waits for a minute, or a stream waits because the quarantine is full, or a change waits for what was under way before it; failing: the last attempts have failed; stopped: the receiver wants no items; unknown: not in the configuration
	Reason      string    `json:"reason,omitzero"` // of the last attempt that failed
	FailedAt    time.Time `json:"failed_at,omitzero"`
	Pending     *uint64   `json:"pending,omitzero"` // items that the sink does not have; nil: not known yet
	Quarantined int       `json:"quarantined"`
	Redriven    int       `json:"redriven"` // of these: will be delivered again
	InFlight    int       `json:"in_flight"`
	Blocked     int       `json:"blocked_lanes"` // wait because the quarantine is full
	LagSeconds  float64   `json:"lag_seconds"`
	Lanes       []Lane    `json:"lanes"` // those with pending or quarantined items first, at most MaxLanes
	MoreLanes   int       `json:"more_lanes"`
}

// MaxLanes is the number of lanes of a sink, and of quarantined items, in one answer.
const MaxLanes = 1000

// Lane is how far a stream was delivered to a sink.
type Lane struct {
	Tenant      string `json:"tenant"`
	Stream      string `json:"stream"`
	Cursor      uint64 `json:"cursor"` // delivered, quarantined or skipped up to here
	Head        uint64 `json:"head"`   // the last item of the stream
	Quarantined int    `json:"quarantined"`
	Redriven    int    `json:"redriven"` // of these: will be delivered again
}

// Quarantine are the items that sinks have rejected.
type Quarantine struct {
	Items []QuarantinedItem `json:"items"` // at most MaxLanes
	More  int               `json:"more"`
}

// QuarantinedItem is an item that a sink has rejected.
type QuarantinedItem struct {
	Sink     string    `json:"sink"`
	Tenant   string    `json:"tenant"`
	Stream   string    `json:"stream"`
	Position uint64    `json:"position"`
	Reason   string    `json:"reason"`
	Status   int       `json:"status,omitzero"` // of HTTP
	At       time.Time `json:"at"`
	Due      bool      `json:"due"` // will be delivered again
}

// A LaneRef names a lane, or a position of it.
type LaneRef struct {
	Sink     string
	Tenant   types.Tenant
	Stream   string
	Position uint64
}

// ExportsConfig has what the routes of exports do. The problem of a change is that of its command.
type ExportsConfig struct {
	Status     func() Exports
	Quarantine func(sink string) Quarantine               // sink empty: of all
	Redrive    func(LaneRef) (items int, _ event.Problem) // Stream empty: all lanes of the sink; Position 0: all items
	Skip       func(LaneRef) event.Problem                // a quarantined position, or all up to one
	Backfill   func(LaneRef) event.Problem                // all from a position
	Resume     func(sink string) (bool, event.Problem)    // a stopped sink; false: it was not
	// Remove forgets the lanes of a sink that the configuration does not have. Busy: an earlier delivery has not ended, and why says so.
	Remove func(sink string) (lanes int, why string, _ event.Problem)
}

func (a *API) exports(w http.ResponseWriter, _ *http.Request) {
	a.say(w, http.StatusOK, a.Exports.Status())
}

func (a *API) quarantine(w http.ResponseWriter, r *http.Request) {
	flags, ok := query(r, "sink")
	if !ok {
		a.refuse(w, event.BadRequest, "The query is not sink=NAME.")
		return
	}
	a.say(w, http.StatusOK, a.Exports.Quarantine(flags["sink"]))
}

// redrive delivers quarantined items again.
func (a *API) redrive(w http.ResponseWriter, r *http.Request) {
	at, wrong := laneOf(r, false)
	if wrong != "" {
		a.refuse(w, event.BadRequest, wrong)
		return
	}
	n, problem := a.Exports.Redrive(at)
	if problem != event.None {
		a.refuse(w, problem, laneDetail(problem))
		return
	}
	a.say(w, http.StatusOK, struct {
		Items int `json:"items"`
	}{n})
}

// skip gives up items, and backfill delivers items again.
func (a *API) skip(w http.ResponseWriter, r *http.Request)     { a.moveLane(w, r, a.Exports.Skip) }
func (a *API) backfill(w http.ResponseWriter, r *http.Request) { a.moveLane(w, r, a.Exports.Backfill) }

func (a *API) moveLane(w http.ResponseWriter, r *http.Request, do func(LaneRef) event.Problem) {
	at, wrong := laneOf(r, true)
	if wrong != "" {
		a.refuse(w, event.BadRequest, wrong)
		return
	}
	if problem := do(at); problem != event.None {
		a.refuse(w, problem, laneDetail(problem))
		return
	}
	a.say(w, http.StatusOK, struct {
		Position uint64 `json:"position"`
	}{at.Position})
}

// remove forgets a sink that is no longer used.
func (a *API) remove(w http.ResponseWriter, r *http.Request) {
	flags, ok := query(r, "sink")
	if !ok || flags["sink"] == "" {
		a.refuse(w, event.BadRequest, errSink)
		return
	}
	n, why, problem := a.Exports.Remove(flags["sink"])
	switch problem {
	case event.None:
		a.say(w, http.StatusOK, struct {
			Lanes int `json:"lanes"`
		}{n})
	case event.BadRequest:
		a.refuse(w, problem, "The sink is in the configuration of the node: remove it there first, and reload the configuration.")
	default:
		if why == "" {
			why = laneDetail(problem)
		}
		a.refuse(w, problem, why)
	}
}

// resume lets a sink go on that wanted no items.
func (a *API) resume(w http.ResponseWriter, r *http.Request) {
	flags, ok := query(r, "sink")
	if !ok || flags["sink"] == "" {
		a.refuse(w, event.BadRequest, errSink)
		return
	}
	waited, problem := a.Exports.Resume(flags["sink"])
	if problem != event.None {
		a.refuse(w, problem, laneDetail(problem))
		return
	}
	a.say(w, http.StatusOK, struct {
		Resumed bool `json:"resumed"`
	}{waited})
}

// laneDetail says why a change was refused.
func laneDetail(p event.Problem) string {
	switch p {
	case event.NotFound:
		return "There is no such sink, or it has no such stream of the tenant, or no such item."
	case event.BadRequest:
		return "The name of the sink or of the stream is invalid, or the stream has no item at the position."
	case event.LaneMoved:
		return "The position is not where the stream can go: skip needs one that is not delivered yet, backfill one that is."
	default:
		return p.Detail()
	}
}

// Details of a request that names no lane. Commands of an operator show them too, so only the first speaks of a query: no command sends
// such a one.
const (
	errQuery    = "The query has a parameter that is unknown or repeated: known are sink, tenant, stream and position."
	errSink     = "The name of the sink is missing."
	errTenant   = "The tenant must be default, or a number."
	errStream   = "The stream is missing: name usage/DIMENSION or wallet."
	errPosition = "The position must be a number from 1."
)

// laneOf reads which lane a request names, and returns what is wrong with it. If it is not whole, stream and position may be missing.
func laneOf(r *http.Request, whole bool) (at LaneRef, wrong string) {
	flags, ok := query(r, "sink", "tenant", "stream", "position")
	at.Sink, at.Stream, at.Tenant = flags["sink"], flags["stream"], types.DefaultTenant
	if text := flags["tenant"]; text != "" {
		at.Tenant, _ = types.ParseTenant(text)
	}
	text, given := flags["position"]
	if n, err := strconv.ParseUint(text, 10, 53); err == nil {
		at.Position = n
	}
	switch {
	case !ok:
		return at, errQuery
	case at.Sink == "":
		return at, errSink
	case at.Tenant == 0:
		return at, errTenant
	case at.Stream == "" && (given || whole):
		return at, errStream
	case at.Position == 0 && (given || whole):
		return at, errPosition
	}
	return at, ""
}

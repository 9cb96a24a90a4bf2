// Package decisions keeps what became of the last requests: of each, which rule let it in or
// kept it out, so that from any refusal one question leads to its cause.
//
//	Keep ──► ring, the oldest goes ──► Find
package decisions

import (
	"sync"
	"time"
)

// Room is how many are kept. The oldest goes when there is one more.
const Room = 4096

// A Decision is what became of one request. What is empty was not said of it.
type Decision struct {
	ID       string    `json:"decision_id"`
	Sent     string    `json:"request_id,omitzero"` // that the client sent
	At       time.Time `json:"at"`
	Route    string    `json:"route"`
	Class    string    `json:"class"`
	Facet    string    `json:"facet"`
	Tenant   uint32    `json:"tenant,omitzero"` // of the key that was verified
	Key      string    `json:"key_id,omitzero"`
	Peer     string    `json:"peer"`
	Status   int       `json:"status"`
	Code     string    `json:"code,omitzero"`
	Why      string    `json:"reason"`         // the bound that refused; "admitted"; "gone": its client left before its turn
	Rule     string    `json:"quota,omitzero"` // that refused, or has the least left
	Left     uint32    `json:"quota_left"`
	ResetMS  int64     `json:"quota_reset_ms"`
	RetryMS  int64     `json:"retry_ms,omitzero"`
	Ahead    uint32    `json:"queued_ahead"` // when it came
	WaitedUS int64     `json:"waited_us"`
	Shadow   []string  `json:"shadow,omitzero"` // quotas in shadow that would have refused
	Bytes    uint64    `json:"bytes"`
	TookUS   int64     `json:"took_us"`
	Config   string    `json:"config"` // the version that decided

	Cut     bool     `json:"cut,omitzero"`         // its answer began, and is not whole
	Because string   `json:"because,omitzero"`     // why it was refused behind the gate
	Unmet   []string `json:"unmet,omitempty"`      // what the node waited for when it did not serve it
	Ailing  []string `json:"ailing,omitempty"`     // what it ailed of then
	Told    string   `json:"retry_after,omitzero"` // in seconds, as its client was told
	Full    string   `json:"full,omitzero"`        // the queue that had no place for it, though it was let in
	Method  string   `json:"method"`
	Path    string   `json:"path"`              // without its query; the first 128 bytes
	Matched string   `json:"matched,omitzero"`  // the route of the configuration
	FirstUS int64    `json:"first_us,omitzero"` // from when it was sent on until the header of an answer; 0: none came
	Legs    []Leg    `json:"legs,omitempty"`    // one for each upstream that was asked, at most three
}

// A Leg is what became of a request, or of one part of its answer, at one upstream.
type Leg struct {
	Upstream string   `json:"upstream"`
	Part     string   `json:"part,omitzero"`
	Missing  string   `json:"missing,omitzero"`   // why the part is
	Stop     string   `json:"stop,omitzero"`      // why it went nowhere: broken, sick, full, stale
	Circuit  string   `json:"circuit"`            // of the upstream, as it was found: closed, open, half-open
	Halt     string   `json:"not_again,omitzero"` // why there was no other try: method, body, tries, breaker, time, budget
	Sick     []string `json:"sick,omitempty"`     // where it went nowhere for that: the endpoints that checks call so, each with what the last met
	Outcome  string   `json:"outcome,omitzero"`   // whole, how the last try ended, or Stop; empty: nothing was asked
	Count    int      `json:"tries_total"`
	Tries    []Try    `json:"tries,omitempty"` // the first ones, and the last
}

// A Try is one endpoint that was asked.
type Try struct {
	Endpoint string `json:"endpoint"`
	Out      bool   `json:"ejected,omitzero"` // it was out for its failures, and so were the others
	HTTP2    bool   `json:"http2,omitzero"`   // it was asked by that
	Outcome  string `json:"outcome"`          // whole, or how it failed
	Ending   string `json:"ending"`           // how far it came: answered, turned, unsent, failed, late, left, whole, cut
	Status   int    `json:"status,omitzero"`  // of its answer
	TookUS   int64  `json:"took_us"`
}

// Ring is the last decisions.
type Ring struct {
	mu   sync.Mutex // nothing blocks under it
	all  []Decision
	next int
}

// New has none.
func New() *Ring { return &Ring{all: make([]Decision, 0, Room)} }

// Keep adds one.
func (r *Ring) Keep(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < Room {
		r.all = append(r.all, d)
		return
	}
	r.all[r.next] = d
	r.next = (r.next + 1) % Room
}

// Find is the last decision of an id; false where it is not kept, or not any more.
func (r *Ring) Find(id string) (Decision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		d := &r.all[(r.next+len(r.all)-1-i)%len(r.all)]
		if d.ID == id {
			return *d, true
		}
	}
	return Decision{}, false
}

// Kept is how many there are, and how many there may be.
func (r *Ring) Kept() (depth, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all), Room
}

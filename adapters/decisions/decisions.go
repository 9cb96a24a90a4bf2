// Package decisions keeps the decisions about the most recent requests. A decision states which rule
// admitted or rejected the request, so that a decision id leads to the cause of a rejection.
//
//	Keep ──► ring (drops the oldest when full) ──► Find
package decisions

import (
	"sync"
	"time"
)

// Room is the number of decisions kept. When the ring is full, a new decision replaces the oldest.
const Room = 4096

// A Decision describes the outcome of one request. An empty field does not apply to the request.
type Decision struct {
	ID       string    `json:"decision_id"`
	Sent     string    `json:"request_id,omitzero"` // as sent by the client
	At       time.Time `json:"at"`
	Route    string    `json:"route"`
	Class    string    `json:"class"`
	Facet    string    `json:"facet"`
	Tenant   uint32    `json:"tenant,omitzero"` // of the verified API key
	Key      string    `json:"key_id,omitzero"`
	Peer     string    `json:"peer"`
	Status   int       `json:"status"`
	Code     string    `json:"code,omitzero"`
	Why      string    `json:"reason"`         // "admitted"; the limit that rejected it; "client_disconnected": the client left before admission
	Rule     string    `json:"quota,omitzero"` // the quota that rejected it, or the one with the least left
	Left     uint32    `json:"quota_left"`
	ResetMS  int64     `json:"quota_reset_ms"`
	RetryMS  int64     `json:"retry_ms,omitzero"`
	Ahead    uint32    `json:"queued_ahead"` // requests ahead of it in the queue on arrival
	WaitedUS int64     `json:"waited_us"`
	Shadow   []string  `json:"shadow,omitzero"` // quotas in shadow mode that would have rejected it
	Bytes    uint64    `json:"bytes"`
	TookUS   int64     `json:"took_us"`
	Config   string    `json:"config"` // the version of the configuration that decided

	Cut        bool     `json:"cut,omitzero"`          // the response began and is truncated
	Because    string   `json:"because,omitzero"`      // why it was rejected after admission
	Unmet      []string `json:"waiting_for,omitempty"` // the dependencies that were missing when the node did not serve it
	Ailing     []string `json:"degraded_by,omitempty"` // the reasons for which the node was degraded then
	RetryAfter string   `json:"retry_after,omitzero"`  // in seconds, as sent to the client
	Full       string   `json:"full,omitzero"`         // the queue that was full, although the request was admitted
	Method     string   `json:"method"`
	Path       string   `json:"path"`                // without the query string; the first 128 bytes
	Matched    string   `json:"matched,omitzero"`    // the configured route
	FirstUS    int64    `json:"first_us,omitzero"`   // from forwarding it to the header of the response; 0: no response
	Legs       []Leg    `json:"upstreams,omitempty"` // one for each upstream that it was sent to, at most three
}

// Target returns what the request was for: a route of the configuration, or an operation of the node's own API.
func (d *Decision) Target() string {
	if d.Matched != "" {
		return d.Matched
	}
	return d.Route
}

// A Leg describes the outcome of a request, or of one part of its response, at one upstream.
type Leg struct {
	Upstream string   `json:"upstream"`
	Part     string   `json:"part,omitzero"`
	Missing  string   `json:"missing,omitzero"`            // why the part is missing
	Stop     string   `json:"no_endpoint_reason,omitzero"` // why it was sent to no endpoint: circuit_open, no_healthy_endpoint, overflow, ticket_expired
	Circuit  string   `json:"circuit"`                     // state of the circuit breaker at that time: closed, open, half-open
	Halt     string   `json:"no_retry_reason,omitzero"`    // why there was no further attempt: an event.NoRetryReason
	Sick     []string `json:"unhealthy,omitempty"`         // if no endpoint was healthy: the unhealthy endpoints, each with the result of its last check
	Outcome  string   `json:"outcome,omitzero"`            // "ok", the symptom of the last attempt, or Stop; empty: no attempt was made
	Count    int      `json:"attempts_total"`
	Tries    []Try    `json:"attempts,omitempty"` // the first attempts, and the last one
}

// A Try describes one attempt at an endpoint.
type Try struct {
	Endpoint string `json:"endpoint"`
	Out      bool   `json:"ejected,omitzero"` // the endpoint was ejected after failures, as were all others
	HTTP2    bool   `json:"http2,omitzero"`   // the attempt used HTTP/2
	Outcome  string `json:"outcome"`          // "ok", or the symptom
	Ending   string `json:"ending"`           // how far it came: an event.AttemptOutcome
	Status   int    `json:"status,omitzero"`  // of the response
	TookUS   int64  `json:"took_us"`
}

// Ring keeps the most recent decisions. It is safe for concurrent use.
type Ring struct {
	mu   sync.Mutex // nothing blocks under it
	all  []Decision
	next int
}

// New returns an empty ring.
func New() *Ring { return &Ring{all: make([]Decision, 0, Room)} }

// Keep adds a decision. If the ring is full, it replaces the oldest.
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

// Find returns the most recent decision with an id. It returns false if the ring has none.
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

// Kept returns the number of decisions in the ring, and the maximum.
func (r *Ring) Kept() (depth, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all), Room
}

package event

import (
	"time"

	"macronode/core/types"
)

// Admit asks for a permit for a request, before any expensive work. The answer is a Decision for Ticket, at once
// or within the time that a queue takes.
type Admit struct {
	Ticket           types.Ticket // a slot that belongs to the request until it is finished or rejected
	Class            types.Class
	Facet            types.Facet
	Route            uint16         // number of the route in the configuration
	Tenant           types.Tenant   // of the key that was verified; 0: none was
	Key              types.KeyID    // that was verified; 0: none was
	Peer             types.NameHash // digest of the address, which may be a network's
	DeclaredBytes    int64          // declared length of the body; -1: unknown
	ResponseEstimate uint32         // estimate of the bytes of the response, from its route
	TimeLeft         time.Duration  // until the caller's deadline
	PermitFor        time.Duration  // longest time of the permit, if it exceeds TimeLeft: a response without an end
}

// Flow returns the flow that the request belongs to: its tenant, or its peer if it has no key.
func (in *Admit) Flow() types.Flow {
	if in.Key == 0 {
		return types.Flow{Class: in.Class, ID: in.Peer.Prefix64()}
	}
	return types.Flow{Class: in.Class, ID: uint64(in.Tenant)}
}

// ReserveBytes asks whether further bytes of a request's bodies may be forwarded, in either direction, before they
// are. The answer is a Decision for Ticket: at once, or when its quotas admit them and it is its turn. Until then
// nothing more may be reserved for the ticket.
type ReserveBytes struct {
	Ticket types.Ticket
	Bytes  uint64 // to forward; more than 0
}

// Finish returns the permit of a request, or its place in a queue. A late Finish changes nothing, because a ticket
// is used once.
type Finish struct {
	Ticket     types.Ticket
	Bytes      uint64     // that were forwarded in both directions
	Completion Completion // of an admitted request; otherwise ignored
}

// Completion is how an admitted request ended.
type Completion uint8

const (
	CompletionDone     Completion = iota // it got a response, or its client has left
	CompletionRejected                   // it got 503, because the node does not serve it now
	CompletionAborted                    // the shutdown cut it, or its outcome is unknown
	NumCompletions
)

func (f Completion) String() string {
	return [...]string{"completed", "rejected", "aborted", "?"}[min(f, NumCompletions)]
}

// A Decision is the answer to an Admit or a ReserveBytes, or takes the permit of an admitted request: then Reason is RejectGaveWay or
// RejectKeyEnded, and a part of its bodies that waits gets a Decision of its own.
type Decision struct {
	Ticket     types.Ticket
	Problem    Problem // None: admitted
	Bytes      uint64  // that may be forwarded before the next ReserveBytes; a reservation may get less than it asked for
	Reason     RejectReason
	Rule       uint8         // of the quotas, from 1: the one that rejected, or that has used the largest part of its burst; 0: none
	Left       uint32        // of that rule, in its unit
	Reset      time.Duration // until its whole burst is available again
	RetryAfter time.Duration // until a retry makes sense; 0: unknown
	Ahead      uint32        // requests before it in the queue when it arrived
	Waited     time.Duration // in a queue
	Shadow     uint16        // bit i: rule i+1, a shadow quota, would have rejected
}

// RejectReason is the limit that rejected a request.
type RejectReason uint8

const (
	Admitted            RejectReason = iota
	RejectQuotaExceeded              // the quota that Rule names
	RejectPacingTimeout              // the wait for the instance quota would be too long
	RejectQueueFull                  // of the facet
	RejectClassLimit                 // the class has used its share of the queue
	RejectFlowLimit                  // the flow has used its share of the class
	RejectClassDisabled              // the class has weight 0
	RejectRouteLimit                 // the route has its limit of requests in progress
	RejectQueueTimeout               // no permit became free in time
	RejectNotServing                 // starting, draining
	RejectNoSlots                    // all slots of the class are in use, so admission was not asked
	RejectGaveWay                    // its permit was given to a peer without a permit; it was admitted before
	RejectKeyEnded                   // its API key was revoked or has expired; it may have been admitted before
	RejectRouteFlow                  // the flow has its share of the requests of the route
	NumRejectReasons
)

// Problem returns the problem of a request that is rejected for w.
func (w RejectReason) Problem() Problem {
	switch {
	case w == RejectQuotaExceeded, w == RejectPacingTimeout:
		return RateLimited
	case w == RejectNotServing:
		return Unavailable
	case w == RejectKeyEnded:
		return Unauthorized
	}
	return Busy
}

func (w RejectReason) String() string {
	return [...]string{"admitted", "quota_exceeded", "pacing_timeout", "queue_full", "class_limit", "flow_limit", "class_disabled",
		"route_limit", "queue_timeout", "not_serving", "no_slot", "gave_way", "key_ended", "route_flow_limit", "?"}[min(w, NumRejectReasons)]
}

package event

import (
	"time"

	"macronode/core/types"
)

// Admit asks whether a request may be worked on, before anything dear is done for it.
// The answer is a Verdict for Ticket, at once or within the time that a queue takes.
type Admit struct {
	Ticket           types.Ticket // a slot that is the request's until it is settled or refused
	Class            types.Class
	Facet            types.Facet
	Route            uint16         // number of the route in the configuration
	Tenant           types.Tenant   // of the key that was verified; 0: none was
	Key              types.KeyID    // that was verified; 0: none was
	Peer             types.NameHash // digest of the address, which may be a network's
	DeclaredBytes    int64          // declared length of the body; -1: not said
	ResponseEstimate uint32         // bytes of the answer, as the route has them in the mean
	TimeLeft         time.Duration  // what is left of the caller's deadline
	PermitFor        time.Duration  // the permit at most, where that is longer: an answer without an end
}

// Flow returns the flow that the request belongs to: its tenant, or its peer if it has no key.
func (in *Admit) Flow() types.Flow {
	if in.Key == 0 {
		return types.Flow{Class: in.Class, ID: in.Peer.Prefix64()}
	}
	return types.Flow{Class: in.Class, ID: uint64(in.Tenant)}
}

// ReserveBytes asks whether so many further bytes of a request's bodies may go on, either way,
// before they do. The answer is a Verdict for Ticket: at once, or when its quotas have them
// and it is its turn. Until that has come nothing more is asked for the ticket.
type ReserveBytes struct {
	Ticket types.Ticket
	Bytes  uint64 // at hand; more than 0
}

// Finish gives back the permit of a request, or its place in a queue. It may come late,
// and changes nothing then: a ticket is of one use.
type Finish struct {
	Ticket     types.Ticket
	Bytes      uint64     // that went through, both ways
	Completion Completion // of one that was let in; of another it says nothing
}

// Completion is what became of a request that was let in.
type Completion uint8

const (
	CompletionDone     Completion = iota // it was answered, or its client has left
	CompletionRejected                   // it was told that this is not served now
	CompletionAborted                    // the end of the node cut it, or it was told that nobody knows its outcome
	NumCompletions
)

func (f Completion) String() string {
	return [...]string{"completed", "rejected", "aborted", "?"}[min(f, NumCompletions)]
}

// A Decision is what became of an Arrive, or of a Stream.
type Decision struct {
	Ticket     types.Ticket
	Problem    Problem // None: go
	Bytes      uint64  // that may go on before there is another Stream; of one that asked, perhaps less than it asked for
	Reason     RejectReason
	Rule       uint8         // of the quotas, from 1: the one that refused, or has used the largest part of its burst; 0: none
	Left       uint32        // of that rule, in its unit
	Reset      time.Duration // until it has all of its burst again
	RetryAfter time.Duration // until it is worth to come again; 0: nobody knows
	Ahead      uint32        // how many were before it when it came
	Waited     time.Duration // in a queue
	Shadow     uint16        // bit i: rule i+1, a shadow, would have refused
}

// RejectReason says which bound refused a request.
type RejectReason uint8

const (
	Admitted            RejectReason = iota
	RejectQuotaExceeded              // the quota that Rule names
	RejectPacingTimeout              // would wait too long for the instance's quota
	RejectQueueFull                  // of the facet
	RejectClassLimit                 // the class has its share of the queue
	RejectFlowLimit                  // the flow has its share of the class
	RejectClassDisabled              // the class is not served here
	RejectRouteLimit                 // as many requests of the route are at work as may be
	RejectQueueTimeout               // no permit came in time
	RejectNotServing                 // starting, draining
	RejectNoSlots                    // nobody could even be asked: all slots of the class are in use
	NumRejectReasons
)

// Problem is the problem that a request rejected for w gets.
func (w RejectReason) Problem() Problem {
	switch {
	case w == RejectQuotaExceeded, w == RejectPacingTimeout:
		return RateLimited
	case w == RejectNotServing:
		return Unavailable
	}
	return Busy
}

func (w RejectReason) String() string {
	return [...]string{"admitted", "quota_exceeded", "pacing_timeout", "queue_full", "class_limit", "flow_limit", "class_disabled",
		"route_limit", "queue_timeout", "not_serving", "no_slot", "?"}[min(w, NumRejectReasons)]
}

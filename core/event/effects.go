package event

import (
	"time"

	"macronode/core/types"
)

// Effects is the output of a step or a turn of several steps. The order counts within a slice, not between
// slices: an effect that must wait for the disk has an LSN.
type Effects struct {
	Frames          []Frame
	Replies         []Reply
	Decisions       []Decision
	UpstreamReplies []UpstreamReply
	ServiceCommands []ServiceCommand
	Arena           []byte // owned by the turn: copy what outlives it
}

type (
	// A Frame has all records of one step: durable as a whole or not at all. The journal adds its root and
	// checksum.
	Frame struct {
		LSN      types.LSN
		Off, Len uint32 // of the body in Arena
	}

	// A Reply has a problem, or the position of the record from which the answer is rendered.
	Reply struct {
		Ticket   types.Ticket
		After    types.LSN      // must be applied before the reply is sent
		Position types.Position // of the record; LSN 0 if there is only a problem
		Problem  Problem
		Nonce    types.Nonce // the expected nonce, for NonceAhead
		Item     uint16      // of a batch: the item with the problem, from 1; 0: none
		Replayed bool        // the record is older than the request
		Counted  bool        // the frame of the record has the usage of the request
		Unpaid   Problem     // why usage that is due is not paid although the payer has the money; None: there is no such
		Shortage Shortage    // for UsageCapacity, ExportCapacity and, of objects, CapacityExceeded and QuotaExceeded

		Shortfall Shortfall // for PrepaidExceeded
	}

	// A ServiceCommand starts or stops a service.
	ServiceCommand struct {
		Service types.Service
		Verb    ServiceVerb
	}
)

// A ServiceVerb is the action of a ServiceCommand.
type ServiceVerb uint8

const (
	StartService ServiceVerb = iota + 1
	StopService              // end after the current work
	KillService              // end now
)

func (v ServiceVerb) String() string { return [...]string{"", "start", "stop", "kill"}[v] }

// Body returns the bytes of f.
func (e *Effects) Body(f Frame) []byte { return e.Arena[f.Off : f.Off+f.Len] }

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	e.Frames, e.Replies, e.Decisions, e.ServiceCommands, e.Arena = e.Frames[:0], e.Replies[:0], e.Decisions[:0], e.ServiceCommands[:0], e.Arena[:0]
	e.UpstreamReplies = e.UpstreamReplies[:0]
}

// HashInto mixes r into h.
func (r Reply) HashInto(h types.Hash64) types.Hash64 {
	h = r.Position.HashInto(h.Mix(uint64(r.Ticket)).Mix(uint64(r.After)))
	return r.Shortfall.HashInto(r.Shortage.HashInto(h.Mix(uint64(r.Problem)).Mix(uint64(r.Nonce)).Mix(uint64(r.Item)).MixBool(r.Replayed).MixBool(r.Counted).Mix(uint64(r.Unpaid))))
}

// Status is the state of the node, published after each turn.
type Status struct {
	Phase          types.Phase
	Ready          bool // for all traffic
	ForRead        bool // for requests that write nothing: reads, and those sent on to upstreams
	Reads          bool // reads are served
	Writes         bool // writes are decided
	AdmittedWrites bool // writes of admitted requests are decided: as Writes, and while the node drains
	WaitingFor     types.Conditions
	DegradedBy     types.Conditions

	LSN, Durable, Applied types.LSN
	At                    types.Time
	Offset                time.Duration // the machine's clock is ahead of At by this
	HeldReplies           uint32        // replies that wait
	Keys                  uint32        // idempotency keys and refs in the window
	Forgot, Indexed       types.LSN     // the window has the keys of frames after Forgot, the index those up to Indexed
	MayHaveForgotten      bool          // an evicted key may still be valid: read the index first
	Holds                 uint32        // active ones
	Backlog               uint64        // bytes of frames that are not durable
	Fault                 Fault         // how the journal failed; 0: it has not
	Restarts              [types.NumServices]uint64
	Report                DrainReport
	AbortedReplies        uint64 // held replies that an abort made unknown outcomes

	AwaitedUpstreams uint64 // bit i: upstream i was never healthy, and the node is not ready until it is

	Permits        [types.NumFacets]uint32                   // permits in use
	Queued         [types.NumFacets][types.NumClasses]uint32 // requests that wait for one
	OpenCircuits   [NumCallers]uint64                        // bit i: the circuit of upstream i is open or half-open for these callers
	Down           uint64                                    // bit i: health checks fail on every endpoint of upstream i
	Deficits       [types.NumClasses]uint64                  // bytes that a class may still spend in its turn
	PacedParts     uint32                                    // reservations that wait for their turn
	PermitsRevoked uint64                                    // permits revoked because they were kept too long
	PolicyVersion  uint64                                    // version of the applied policy
}

// A DrainReport counts requests since a drain began: those in progress then, and all that arrived since. Each is
// counted once.
type DrainReport struct {
	Finished uint64 // they got a response, or their clients have left
	Rejected uint64 // rejected with 503 before or after admission
	Aborted  uint64 // aborted; once the node has stopped, including those still in progress
}

package event

import (
	"time"

	"macronode/core/types"
)

// Effects is what one turn wants done. Order counts inside a slice, never between
// slices: what must wait for the disk says so with an LSN.
type Effects struct {
	Frames          []Frame
	Replies         []Reply
	Decisions       []Decision
	UpstreamReplies []UpstreamReply
	ServiceCommands []ServiceCommand
	Arena           []byte // owned by the turn: copy what must outlive it
}

type (
	// A Frame is all that one step recorded: durable as a whole, or not at all. It
	// gets its root and its checksum where it is sealed.
	Frame struct {
		LSN      types.LSN
		Off, Len uint32 // of its body in Arena
	}

	// A Reply is a problem, or where the record is that the answer is rendered from.
	Reply struct {
		Ticket   types.Ticket
		After    types.LSN      // folded before this may leave
		Position types.Position // of the record; LSN 0 when Problem is all there is to say
		Problem  Problem
		Nonce    types.Nonce // the expected one, for NonceAhead
		Item     uint16      // of a batch: whose problem it is, from 1; 0: not that of one item
		Replayed bool        // the record was there before the request
	}

	// A ServiceCommand is what a child shall do.
	ServiceCommand struct {
		Service types.Service
		Verb    ServiceVerb
	}
)

// A ServiceVerb is what is wanted of a child.
type ServiceVerb uint8

const (
	StartService ServiceVerb = iota + 1
	StopService              // end, once what is in is done
	KillService              // end now
)

func (v ServiceVerb) String() string { return [...]string{"", "start", "stop", "kill"}[v] }

// Body is the bytes of f.
func (e *Effects) Body(f Frame) []byte { return e.Arena[f.Off : f.Off+f.Len] }

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	e.Frames, e.Replies, e.Decisions, e.ServiceCommands, e.Arena = e.Frames[:0], e.Replies[:0], e.Decisions[:0], e.ServiceCommands[:0], e.Arena[:0]
	e.UpstreamReplies = e.UpstreamReplies[:0]
}

// HashInto is h after all of r.
func (r Reply) HashInto(h types.Hash64) types.Hash64 {
	h = r.Position.HashInto(h.Mix(uint64(r.Ticket)).Mix(uint64(r.After)))
	return h.Mix(uint64(r.Problem)).Mix(uint64(r.Nonce)).Mix(uint64(r.Item)).MixBool(r.Replayed)
}

// Status is what the node says of itself, for all who ask without asking it.
type Status struct {
	Phase      types.Phase
	Ready      bool // for all traffic
	ForRead    bool // for requests that write nothing: reads, and those sent on to upstreams
	Reads      bool // reads are served
	Writes     bool // writes are decided
	WaitingFor types.Conditions
	DegradedBy types.Conditions

	LSN, Durable, Applied types.LSN
	At                    types.Time
	Offset                time.Duration // the machine's clock is ahead of At
	HeldReplies           uint32        // replies that wait
	Keys                  uint32        // idempotency keys and refs in the window
	Forgot, Indexed       types.LSN     // the window holds those of frames after the one, the index those up to the other
	MayHaveForgotten      bool          // a forgotten key may be in its time: ask the index first
	Holds                 uint32        // active ones
	Backlog               uint64        // bytes emitted and not durable
	Fault                 Fault         // how the journal failed; 0: it has not
	Restarts              [types.NumServices]uint64
	Report                DrainReport
	AbortedReplies        uint64 // replies that were held until an abort told that nobody knows

	AwaitedUpstreams uint64 // bit i: upstream i was never well, and nothing is served until it is

	Permits        [types.NumFacets]uint32                   // permits that are out
	Queued         [types.NumFacets][types.NumClasses]uint32 // requests that wait for one
	OpenCircuits   uint64                                    // bit i: the breaker of upstream i does not let everybody through
	Down           uint64                                    // bit i: health checks fail on every endpoint of upstream i
	Deficits       [types.NumClasses]uint64                  // what a class may still spend of its turns, in bytes
	PacedParts     uint32                                    // parts of bodies that wait for their turn
	PermitsRevoked uint64                                    // permits that were taken back from those who kept them too long
	PolicyVersion  uint64                                    // version of the gate that is applied
}

// A DrainReport is what became of requests since a drain began: of all that were in then, and of
// all that came to the gate since. Each is counted once.
type DrainReport struct {
	Finished uint64 // answered, or their clients have left
	Rejected uint64 // told that nothing is served, before they were let in or behind the gate
	Aborted  uint64 // given up; once the node has stopped, those who are in still
}

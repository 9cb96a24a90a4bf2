package event

import (
	"time"

	"macronode/core/words"
)

// Effects is what one turn wants done. Order counts inside a slice, never between
// slices: what must wait for the disk says so with an LSN.
type Effects struct {
	Frames   []Frame
	Replies  []Reply
	Verdicts []Verdict
	Told     []Told
	Childs   []ChildOp
	Arena    []byte // owned by the turn: copy what must outlive it
}

type (
	// A Frame is all that one step recorded: durable as a whole, or not at all. It
	// gets its root and its checksum where it is sealed.
	Frame struct {
		LSN      words.LSN
		Off, Len uint32 // of its body in Arena
	}

	// A Reply is a problem, or where the record is that the answer is rendered from.
	Reply struct {
		Ticket   words.Ticket
		After    words.LSN   // folded before this may leave
		Place    words.Place // of the record; LSN 0 when Problem is all there is to say
		Problem  Problem
		Nonce    words.Nonce // the expected one, for NonceAhead
		Item     uint16      // of a batch: whose problem it is, from 1; 0: not that of one item
		Replayed bool        // the record was there before the request
	}

	// A ChildOp is what a child shall do.
	ChildOp struct {
		Child words.Child
		What  ChildVerb
	}
)

// A ChildVerb is what is wanted of a child.
type ChildVerb uint8

const (
	StartChild ChildVerb = iota + 1
	StopChild            // end, once what is in is done
	KillChild            // end now
)

func (v ChildVerb) String() string { return [...]string{"", "start", "stop", "kill"}[v] }

// Body is the bytes of f.
func (e *Effects) Body(f Frame) []byte { return e.Arena[f.Off : f.Off+f.Len] }

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	e.Frames, e.Replies, e.Verdicts, e.Childs, e.Arena = e.Frames[:0], e.Replies[:0], e.Verdicts[:0], e.Childs[:0], e.Arena[:0]
	e.Told = e.Told[:0]
}

// Mix is h after all of r.
func (r Reply) Mix(h words.Hash64) words.Hash64 {
	h = r.Place.Mix(h.Mix(uint64(r.Ticket)).Mix(uint64(r.After)))
	return h.Mix(uint64(r.Problem)).Mix(uint64(r.Nonce)).Mix(uint64(r.Item)).MixBit(r.Replayed)
}

// Status is what the node says of itself, for all who ask without asking it.
type Status struct {
	Phase   words.Phase
	Ready   bool // for all traffic
	ForRead bool // for requests that write nothing: reads, and those sent on to upstreams
	Reads   bool // reads are served
	Writes  bool // writes are decided
	Unmet   words.Conditions
	Ailing  words.Conditions

	LSN, Durable, Folded words.LSN
	At                   words.Time
	Offset               time.Duration // the machine's clock is ahead of At
	Held                 uint32        // replies that wait
	Keys                 uint32        // idempotency keys and refs in the window
	Forgot, Indexed      words.LSN     // the window holds those of frames after the one, the index those up to the other
	Aged                 bool          // a forgotten key may be in its time: ask the index first
	Holds                uint32        // active ones
	Backlog              uint64        // bytes emitted and not durable
	Fault                Fault         // how the journal failed; 0: it has not
	Restarts             [words.Children]uint64
	Report               Report
	GaveUp               uint64 // replies that were held until an abort told that nobody knows

	Awaited uint64 // bit i: upstream i was never well, and nothing is served until it is

	Out    [words.Facets]uint32                // permits that are out
	Queued [words.Facets][words.Classes]uint32 // requests that wait for one
	Broken uint64                              // bit i: the breaker of upstream i does not let everybody through
	Down   uint64                              // bit i: health checks fail on every endpoint of upstream i
	Saved  [words.Classes]uint64               // what a class may still spend of its turns, in bytes
	Lined  uint32                              // parts of bodies that wait for their turn
	Taken  uint64                              // permits that were taken back from those who kept them too long
	Gate   uint64                              // version of the gate that is applied
}

// A Report is what became of requests since a drain began: of all that were in then, and of
// all that came to the gate since. Each is counted once.
type Report struct {
	Finished uint64 // answered, or their clients have left
	Refused  uint64 // told that nothing is served, before they were let in or behind the gate
	Aborted  uint64 // given up; once the node has stopped, those who are in still
}

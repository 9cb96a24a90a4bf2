package event

import (
	"time"

	"macronode/core/words"
)

// Arrive asks whether a request may be worked on, before anything dear is done for it.
// The answer is a Verdict for Ticket, at once or within the time that a queue takes.
type Arrive struct {
	Ticket   words.Ticket // a slot that is the request's until it is settled or refused
	Class    words.Class
	Facet    words.Facet
	Route    uint16        // number of the route in the configuration
	Tenant   words.Tenant  // of the key that was verified; 0: none was
	Key      words.KeyID   // that was verified; 0: none was
	Peer     words.ID      // digest of the address, which may be a network's
	Bytes    int64         // declared length of the body; -1: not said
	Answer   uint32        // bytes of the answer, as the route has them in the mean
	Patience time.Duration // what is left of the caller's deadline
	Keeps    time.Duration // the permit at most, where that is longer: an answer without an end
}

// Stream asks whether so many further bytes of a request's bodies may go on, either way,
// before they do. The answer is a Verdict for Ticket: at once, or when its quotas have them
// and it is its turn. Until that has come nothing more is asked for the ticket.
type Stream struct {
	Ticket words.Ticket
	Bytes  uint64 // at hand; more than 0
}

// Settle gives back the permit of a request, or its place in a queue. It may come late,
// and changes nothing then: a ticket is of one use.
type Settle struct {
	Ticket words.Ticket
	Bytes  uint64 // that went through, both ways
	Fate   Fate   // of one that was let in; of another it says nothing
}

// Fate is what became of a request that was let in.
type Fate uint8

const (
	Done       Fate = iota // it was answered, or its client has left
	TurnedAway             // it was told that this is not served now
	GivenUp                // the end of the node cut it, or it was told that nobody knows its outcome
	Fates
)

func (f Fate) String() string {
	return [...]string{"done", "turned away", "given up", "?"}[min(f, Fates)]
}

// A Verdict is what became of an Arrive, or of a Stream.
type Verdict struct {
	Ticket  words.Ticket
	Problem Problem // None: go
	Bytes   uint64  // that may go on before there is another Stream; of one that asked, perhaps less than it asked for
	Why     Why
	Rule    uint8         // of the quotas, from 1: the one that refused, or has used the largest part of its burst; 0: none
	Left    uint32        // of that rule, in its unit
	Reset   time.Duration // until it has all of its burst again
	Retry   time.Duration // until it is worth to come again; 0: nobody knows
	Ahead   uint32        // how many were before it when it came
	Waited  time.Duration // in a queue
	Shadow  uint16        // bit i: rule i+1, a shadow, would have refused
}

// Why says which bound refused a request.
type Why uint8

const (
	Admitted   Why = iota
	OverQuota      // the quota that Rule names
	OverPace       // would wait too long for the instance's quota
	QueueFull      // of the facet
	ClassFull      // the class has its share of the queue
	FlowFull       // the flow has its share of the class
	NoWeight       // the class is not served here
	OverRoute      // as many requests of the route are at work as may be
	WaitedLong     // no permit came in time
	NotServing     // starting, draining
	NoSlot         // nobody could even be asked: all slots of the class are in use
	Whys
)

func (w Why) String() string {
	return [...]string{"admitted", "quota", "pace", "queue", "class", "flow", "weight", "route", "wait", "state", "slots", "?"}[min(w, Whys)]
}

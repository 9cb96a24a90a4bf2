package history

import (
	"fmt"

	"macronode/core/types"
)

// Why is the kind of a fault.
type Why uint8

const (
	Backward  Why = iota + 1 // it returned before it was called
	Lost                     // it was answered, and the journal has no record there
	Taken                    // it was answered, and the record there belongs to another operation
	Unasked                  // the journal has an entry without an operation
	Elsewhere                // the journal has it at another position than its answer, or twice
	Unsorted                 // the positions of the journal do not ascend
	Untrue                   // the model answers otherwise
	Late                     // it returned before the call of one that precedes it
)

func (w Why) String() string {
	return [...]string{"", "returned before it was called", "was answered, and has no record there",
		"was answered, and the record there belongs to another operation", "belongs to no operation", "has a record at a position that no answer has",
		"is after a later position", "was answered otherwise than the model answers",
		"returned before the call of one that precedes it"}[w]
}

// A Fault is the first operation, in the order of the journal, that is wrong.
type Fault struct {
	Why   Why
	Op    int // its index in the history; -1: an entry without an operation
	Key   Key
	Place types.Position
	Other int    // Late: the operation that was called too late; Taken: the owner of the record; else -1
	Want  string // Untrue: the answer of the model
}

func (f *Fault) String() string {
	s := fmt.Sprintf("client %d's op %d at %v %v", f.Key.Client, f.Key.Number, f.Place, f.Why)
	if f.Want != "" {
		s += ": " + f.Want
	}
	return s
}

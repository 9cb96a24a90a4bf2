package history

import (
	"fmt"

	"macronode/core/types"
)

// Why says what is wrong.
type Why uint8

const (
	Backward  Why = iota + 1 // it returned before it was called
	Lost                     // it was answered, and the journal has no record there
	Taken                    // it was answered, and the record there is another's
	Unasked                  // the journal has what nobody asked for
	Elsewhere                // the journal has it where its answer does not say, or a second time
	Unsorted                 // the journal's places do not ascend
	Untrue                   // the twin answers otherwise
	Late                     // it returned before what stands before it was called
)

func (w Why) String() string {
	return [...]string{"", "returned before it was called", "was answered, and has no record there",
		"was answered, and the record there is another's", "was asked by nobody", "has a record where no answer says so",
		"stands behind a later place", "was answered otherwise than the twin answers",
		"returned before another was called that stands before it"}[w]
}

// A Fault is the first op, in the journal's order, that cannot be as it is told.
type Fault struct {
	Why   Why
	Op    int // its index in the history; -1: of an entry that is nobody's
	Key   Key
	Place types.Position
	Other int    // Late: the op that was called too late; Taken: whose the record is; else -1
	Want  string // Untrue: the twin's answer
}

func (f *Fault) String() string {
	s := fmt.Sprintf("client %d's op %d at %v %v", f.Key.Client, f.Key.Number, f.Place, f.Why)
	if f.Want != "" {
		s += ": " + f.Want
	}
	return s
}

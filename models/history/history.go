// Package history certifies what clients saw. Every answer of the node says where in the
// journal it stands, so the journal is the order in which all happened, and nobody has
// to search for one: Certify replays that order through a twin, compares every answer,
// and holds the order to real time. Its verdict is yes, or the first op that is wrong
// and why; it is never "unknown".
//
// It is a stronger claim than linearizability: linearizable in the journal's own order.
// A history that another order would explain is refused all the same, because then the
// journal lies.
//
// A history is collected by one Recorder a client:
//
//	r := history.NewRecorder[Ask, Answer](3)
//	op := r.Call(now, history.Write, ask) // op.Number goes into the idempotency key
//	…
//	r.Return(op, now, place, answer)      // not at all, where nobody answered
//
// After the last recovery the journal is read once more, and each record that a key asked
// for becomes an Entry. What the node did by itself (the end of a hold) is given as an op
// of a client of its own, called at Always and never answered.
package history

import (
	"math"

	"macronode/core/types"
)

// A Kind says whether an op has a record.
type Kind uint8

const (
	Write Kind = iota + 1 // it has one: it changed something, or a refusal was kept
	Read                  // it has none, and changes nothing
)

// Always is the call of what was asked before all else, Never the return of what nobody
// was answered.
const (
	Always = types.Instant(math.MinInt64)
	Never  = types.Instant(math.MaxInt64)
)

// A Key is what the journal knows an op by. Asking again under it is the same op: its
// call is the first, its return that of the first answer.
type Key struct{ Client, Number uint32 }

// An Op is what one client asked once. Keys are unique in a history.
type Op[Q any, A comparable] struct {
	Key
	Call, Return types.Instant
	Place        types.Position // of its record; of a Read, the last place that it saw
	Kind         Kind
	Ask          Q
	Answer       A
}

// An Entry is a record of the journal, and who asked for it.
type Entry struct {
	Place types.Position
	Key   Key
}

// A Journal yields its entries in its order, as range takes it.
type Journal func(yield func(Entry) bool)

// A Model is the twin. Step does what is asked, of a record at a place, and says what
// should be answered, and whether anything is now different from before. A Read is
// stepped too, at the last place that it saw, and changes nothing.
type Model[Q any, A comparable] interface {
	Step(at types.Position, ask *Q) (answer A, changed bool)
}

// Package history certifies what clients saw. Every answer of the node has a position in the
// journal, so the journal is the order of all operations, and no search for an order is needed.
// Certify replays that order on a model, compares every answer, and checks the order against real
// time. The verdict is yes, or the first wrong operation and why; it is never "unknown".
//
// This is stronger than linearizability: the history must be linearizable in the order of the
// journal. A history that only another order explains is rejected, because then the journal is
// wrong.
//
// One Recorder per client collects a history:
//
//	r := history.NewRecorder[Ask, Answer](3)
//	op := r.Call(now, history.Write, ask) // op.Number goes into the idempotency key
//	…
//	r.Return(op, now, place, answer)      // not called if there is no answer
//
// After the last recovery the journal is read once more, and each record with an idempotency key
// becomes an Entry. What the node did by itself (the expiry of a hold) is an operation of its own
// client, called at Always and never answered.
package history

import (
	"math"

	"macronode/core/types"
)

// A Kind is the kind of an operation: with or without a record.
type Kind uint8

const (
	Write Kind = iota + 1 // it has a record: it changed something, or a rejection was stored
	Read                  // it has none, and changes nothing
)

// Always is the call time of operations before all others, Never the return time of those without
// an answer.
const (
	Always = types.Instant(math.MinInt64)
	Never  = types.Instant(math.MaxInt64)
)

// A Key identifies an operation in the journal. A retry under the same key is the same operation:
// its call is the first call, its return that of the first answer.
type Key struct{ Client, Number uint32 }

// An Op is one operation of a client. Keys are unique in a history.
type Op[Q any, A comparable] struct {
	Key
	Call, Return types.Instant
	Place        types.Position // of its record; of a Read, the last position that it saw
	Kind         Kind
	Ask          Q
	Answer       A
}

// An Entry is a record of the journal and the key of its operation.
type Entry struct {
	Place types.Position
	Key   Key
}

// A Journal yields its entries in order.
type Journal func(yield func(Entry) bool)

// A Model is the reference model. Step makes an operation whose record is at a position, and
// returns the expected answer and whether the state changed. A Read is stepped at the last
// position that it saw, and changes nothing.
type Model[Q any, A comparable] interface {
	Step(at types.Position, ask *Q) (answer A, changed bool)
}

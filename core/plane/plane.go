// Package plane defines what a plane implements, so that idempotency, authorization, savepoints,
// snapshots and the wait for durability are written once for all of them.
//
//	command ──► Authorized ──► Cost ──► Decide ──► record ──► Apply ──► Render
//	                                      time ──► Expire ──────┘
//
// A plane is deterministic: no clock, randomness, goroutine or I/O. Its state changes only in
// Apply, Undo and Load. core/state holds the planes and folds records; core/node asks for decisions.
package plane

import (
	"errors"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Why Load rejects a row.
var (
	ErrRow  = errors.New("plane: invalid snapshot row")
	ErrRoom = errors.New("plane: the limits are too small for the snapshot")
)

// A Plane is the durable part of one plane.
type Plane interface {
	ID() types.Plane

	// Authorized reports whether the caller's API key permits c at a time.
	Authorized(at types.Time, keys *access.Keys, c command.Command) bool
	// Cost returns the space to reserve before c is decided.
	Cost(c command.Command) command.Cost
	// Decide decides c and adds its records to f. It sets the position of the outcome in reply, or
	// the problem if nothing is recorded. Everything that Cost reported is available.
	Decide(at types.Time, c command.Command, f Frame, reply *event.Reply)
	// HasTimers reports whether Expire may ever fill a record.
	HasTimers() bool
	// Expire fills r with the next record that is due by time alone, or returns false.
	Expire(at types.Time, r *record.Record) bool

	// Fits reports whether r, read from a journal, is valid and within the limits. Apply does not fail
	// after it.
	Fits(r *record.Record) bool
	// Apply changes the state by a record. It decides nothing.
	Apply(at types.Time, id types.TxID, r *record.Record)
	// Refs returns the number of refs that r uses besides that of its own field, and Ref the i-th with the digest of
	// what used it. A ref is used once, for ever.
	Refs(r *record.Record) int
	Ref(r *record.Record, i int) (types.NameHash, types.RequestHash)
	// Savepoint starts noting changes, Undo reverts them, Commit keeps them.
	Savepoint()
	Undo()
	Commit()

	// Dump passes every row of the state to row; b is valid until row returns. Load adds such a row,
	// in the same order, to a new plane; its error is ErrRow or ErrRoom.
	Dump(row func(kind uint8, b []byte))
	Load(kind uint8, b []byte) error
	// Hash identifies the state.
	Hash() types.Hash64
	// CopyTo overwrites dst, reusing its memory, and returns it. If dst is nil it returns a new copy.
	CopyTo(dst Plane) Plane
	// Check returns the invariants that do not hold.
	Check() error

	// Render appends the answer of the record with an index in a frame, byte for byte the same for
	// ever, and returns its HTTP status and tenant.
	Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error)
}

// A Frame is the open frame of a step. All records of one step are one frame: durable together or
// not at all.
type Frame interface {
	// Record returns the record to fill before Add. It holds the values of the last Add.
	Record() *record.Record
	// Add appends the record to the frame and applies it. The first Add of a step begins the frame.
	Add() types.Position
	// Savepoint marks a point of the step; Undo reverts all records added since, Commit keeps them.
	// A step has at most one savepoint at a time.
	Savepoint()
	Undo()
	Commit()
	// FindRef returns what used a ref; the index reported prior.
	FindRef(t types.Tenant, ref types.NameHash, prior command.PriorOutcome) (s command.PriorOutcome, used bool)
}

// NoRefs are the methods of a plane whose records use no refs.
type NoRefs struct{}

// Refs returns 0.
func (NoRefs) Refs(*record.Record) int { return 0 }

// Ref is never called.
func (NoRefs) Ref(*record.Record, int) (types.NameHash, types.RequestHash) {
	panic("plane: no refs")
}

// A Spec describes a plane to core/state, which makes one for the node and one for the read model.
type Spec struct {
	ID    types.Plane
	Bytes int64 // memory that New takes; a plane never grows beyond it
	New   func(seed types.Hash64) Plane
}

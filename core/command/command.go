// Package command defines what every durable command has, whatever its plane. Idempotency,
// authorization and the wait for durability are decided from these fields alone.
package command

import "macronode/core/types"

// A Header is the part of a command that all planes share.
type Header struct {
	Ticket types.Ticket
	Permit types.Ticket // of the admitted request that gives the command; 0: none
	Caller types.KeyID
	Tenant types.Tenant      // of the caller
	Key    types.Name        // idempotency key
	Hash   types.RequestHash // digest of the parsed request, without the header

	// What the index reported: IndexedTo was read before Prior was looked up.
	IndexedTo types.LSN
	Prior     PriorOutcome // of Key; LSN 0 if the index has none

	Usage Usage // of the request itself, if the node meters requests; nil: it does not, or has counted this request
}

// A Usage is what a request counts as. It is recorded in the frame of the outcome, and is no part of the request: a retry has
// the same digest.
type Usage interface {
	Bytes() int // of the journal, at most
}

// Head returns h. A command that embeds a Header has this method of Command.
func (h *Header) Head() *Header { return h }

// A Command is one durable command. Its concrete type belongs to its plane.
type Command interface {
	Head() *Header
	Plane() types.Plane
	// ValidateFields returns why the fields of the command are invalid. It reads no text, so it is
	// cheap enough for the step.
	ValidateFields() error
}

// WithRefs is a command that uses refs. Refs passes each of them and where to put the outcome that the index has of
// it. The index must be read before such a command is decided, even if it has no idempotency key.
type WithRefs interface {
	Command
	Refs(each func(ref types.NameHash, prior *PriorOutcome))
}

// ByNode is a command that the node itself gives, if ByNode returns true and it has no caller: it records what the node has already done.
// It needs no API key that permits it. While the node drains, all other commands are rejected unless their request was admitted before.
type ByNode interface {
	Command
	ByNode() bool
}

// Cost is the space that a command reserves before it is decided.
type Cost struct {
	Rows  int // of the idempotency window: its key and its refs
	Bytes int // of the journal, at most

	// LowPriority is set if the rows leave a quarter of the window to other commands.
	LowPriority bool
}

// PriorOutcome is the outcome of an idempotency key: the digest of its request, the ID of its
// record, and when it was recorded.
type PriorOutcome struct {
	Hash types.RequestHash
	ID   types.TxID
	At   types.Time
}

// HashInto mixes all fields into h.
func (p PriorOutcome) HashInto(h types.Hash64) types.Hash64 {
	return p.ID.HashInto(p.Hash.HashInto(h)).Mix(uint64(p.At))
}

// Package types is the vocabulary: every concept of the node once, each with a
// type of its own, so that the compiler tells a Seq from a Nonce. A word that is
// not here is not ours yet.
package types

import (
	"encoding/binary"
	"fmt"
)

type (
	// LSN is the place of a frame in the journal, from 1, without gaps.
	LSN uint64
	// Seq is the place of a money record among its tenant's, from 1, without gaps.
	Seq uint64
	// Nonce is the number that an account must use next, exactly once; the first is 1.
	Nonce uint64
	// Tenant is whose ledger it is. Nothing crosses tenants.
	Tenant uint32
	// Ticket ties a reply to the request that waits for it. Its low half is a slot
	// of the shell, its high half the generation of that slot: a late word about
	// an earlier use of the slot is recognised and dropped.
	Ticket uint64
	// KeyID names an API key. It is random and never used twice.
	KeyID uint64
	// JournalID names a journal. It is random; a restored journal gets a new one.
	JournalID uint64
	// Epoch is the fence of a journal: a writer with a lower one is refused.
	Epoch uint64
	// NameHash is the digest of a name: tables hold it in the name's place.
	NameHash [16]byte
	// TxID names the record at a place of a journal, across nodes and restores: the
	// journal's id (64 bits), the LSN (48) and the index (16), big-endian. A hold is
	// named by the record that opened it.
	TxID [16]byte
	// RequestHash is the digest of a parsed request body: the same key may only ask the same.
	RequestHash [16]byte
	// Root is the chain's value after a frame.
	Root [32]byte
)

// Position is where a record stands: its frame and its index there.
type Position struct {
	LSN   LSN
	Index uint16
}

// DefaultTenant is the tenant of the bootstrap key, named "default" on the wire.
const DefaultTenant Tenant = 1

// Slot is the shell's place that t was given for.
func (t Ticket) Slot() uint32 { return uint32(t) }

// NewTicket is the generation-th use of a slot.
func NewTicket(slot, generation uint32) Ticket {
	return Ticket(uint64(generation)<<32 | uint64(slot))
}

// Prefix64 is a part of i, for where a few that share it do no harm.
func (i NameHash) Prefix64() uint64 { return binary.BigEndian.Uint64(i[:8]) }

// NewTxID names the record at p of a journal.
func NewTxID(j JournalID, p Position) (t TxID) {
	binary.BigEndian.PutUint64(t[:8], uint64(j))
	binary.BigEndian.PutUint64(t[8:], uint64(p.LSN)<<16|uint64(p.Index))
	return t
}

// Journal and Place are what t was made of; the LSN of no record is 0.
func (t TxID) Journal() JournalID { return JournalID(binary.BigEndian.Uint64(t[:8])) }
func (t TxID) Position() Position {
	n := binary.BigEndian.Uint64(t[8:])
	return Position{LSN: LSN(n >> 16), Index: uint16(n)}
}

func (l LSN) String() string { return fmt.Sprintf("@%d", uint64(l)) }

func (p Position) String() string { return fmt.Sprintf("@%d.%d", uint64(p.LSN), p.Index) }

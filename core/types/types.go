// Package types is the vocabulary of the core: each concept has one type, so that the compiler tells a
// Seq from a Nonce.
package types

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

type (
	// LSN is the number of a frame in the journal, from 1, without gaps.
	LSN uint64
	// Seq is the number of a movement of a tenant, from 1, without gaps.
	Seq uint64
	// Nonce numbers the debits of an account, from 1, without gaps. Each is used once.
	Nonce uint64
	// Tenant is the number of a tenant. No operation crosses tenants.
	Tenant uint32
	// Ticket connects a reply to the request that waits for it. Its low half is a slot of the
	// dispatcher, its high half the generation of that slot: a late event for an earlier use of the
	// slot is recognised and dropped.
	Ticket uint64
	// KeyID identifies an API key. It is random and never reused.
	KeyID uint64
	// JournalID identifies a journal. It is random; a restored journal gets a new one.
	JournalID uint64
	// Epoch is the fencing number of a journal: a writer with a lower one is rejected.
	Epoch uint64
	// NameHash is the digest of a name. Tables store it instead of the name.
	NameHash [16]byte
	// TxID identifies a record across nodes and restores: the journal's ID (64 bits), the LSN (48)
	// and the index (16), big-endian. A hold is identified by the record that opened it.
	TxID [16]byte
	// RequestHash is the digest of a parsed request. A repeated idempotency key must have the same.
	RequestHash [16]byte
	// Root is the value of the hash chain after a frame.
	Root [32]byte
)

// Position is the frame of a record and its index in it.
type Position struct {
	LSN   LSN
	Index uint16
}

// DefaultTenant is the tenant of the bootstrap key, and DefaultTenantText its name on the wire.
const (
	DefaultTenant     Tenant = 1
	DefaultTenantText        = "default"
)

// Text returns the name of a tenant on the wire.
func (t Tenant) Text() string {
	if t == DefaultTenant {
		return DefaultTenantText
	}
	return strconv.FormatUint(uint64(t), 10)
}

// ParseTenant returns the tenant with a text; false if Text returns it for no tenant.
func ParseTenant(text string) (Tenant, bool) {
	if text == DefaultTenantText {
		return DefaultTenant, true
	}
	n, err := strconv.ParseUint(text, 10, 32)
	t := Tenant(n)
	return t, err == nil && t > DefaultTenant && t.Text() == text
}

// Slot returns the slot of t.
func (t Ticket) Slot() uint32 { return uint32(t) }

// NewTicket returns the ticket of a use of a slot.
func NewTicket(slot, generation uint32) Ticket {
	return Ticket(uint64(generation)<<32 | uint64(slot))
}

// Prefix64 returns a part of i, for uses in which a collision does no harm.
func (i NameHash) Prefix64() uint64 { return binary.BigEndian.Uint64(i[:8]) }

// NewTxID returns the ID of the record at p of a journal.
func NewTxID(j JournalID, p Position) (t TxID) {
	binary.BigEndian.PutUint64(t[:8], uint64(j))
	binary.BigEndian.PutUint64(t[8:], uint64(p.LSN)<<16|uint64(p.Index))
	return t
}

// Journal and Position return the parts of t. LSN 0 is the position of no record.
func (t TxID) Journal() JournalID { return JournalID(binary.BigEndian.Uint64(t[:8])) }
func (t TxID) Position() Position {
	n := binary.BigEndian.Uint64(t[8:])
	return Position{LSN: LSN(n >> 16), Index: uint16(n)}
}

func (l LSN) String() string { return fmt.Sprintf("@%d", uint64(l)) }

func (p Position) String() string { return fmt.Sprintf("@%d.%d", uint64(p.LSN), p.Index) }

// Package record defines the records of the journal and their encoding. Version 1 is frozen: journals
// stay readable.
//
//	body:   version 1 · count 2 · LSN 8 · At 8 · records       little-endian
//	record: kind 1 · length 2 · fields by kind
//	        of a kind ≥ 16: tenant 4 · outcome 1 · [caller 8 · key · hash 16 · problem 1] · payload
//
// A frame without records is a heartbeat: it advances At and proves that the frame before it was durable.
package record

import (
	"encoding/binary"
	"errors"
	"strconv"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// Version is the first byte of every body.
const Version = 1

// ErrFrame reports bytes that are not a frame of a known version.
var ErrFrame = errors.New("record: not a frame")

// A Kind is the kind of a record. Its number is permanent.
type Kind uint8

const (
	Started             Kind = iota + 1 // the node started
	Posted                              // money moved
	Rejected                            // a rejection that its idempotency key keeps
	KeysForgotten                       // the idempotency keys of all frames ≤ Upto were evicted
	BootstrapKeyCreated                 // the bootstrap API key was created
	Restored                            // a backup was restored: another journal from here on
	Batched                             // a batch was decided; the records of its items follow in the frame
	HoldOpened                          // a hold was opened; its position identifies it
	HoldCaptured                        // a part of a hold was captured, the rest released
	HoldReleased                        // a hold was released
	HoldExpired                         // a hold expired
	FreezeChanged                       // an account was frozen or unfrozen
	KeyCreated                          // an API key was created
	KeyRevoked                          // an API key was revoked
	AllKeysRevoked                      // all API keys were revoked
	numKinds                            // of version 1; 16p to 16p+15 are the kinds of plane p
)

// kindsPerPlane is the size of the range of kinds that a plane owns.
const kindsPerPlane = 16

// PlaneKind returns the n-th kind of a plane, from 0. The plane encodes the payload of its records.
func PlaneKind(p types.Plane, n uint8) Kind {
	types.Assert(p > types.PlaneNode && p < types.NumPlanes && n < kindsPerPlane, "record: kind outside the range of its plane")
	return Kind(uint8(p)*kindsPerPlane + n)
}

// limit returns the size of the longest record of a kind.
func (k Kind) limit() int {
	if k.isOfPlane() {
		return types.MaxPlaneRecord
	}
	return types.MaxRecord
}

// isOfPlane reports whether k lies in the range of a plane: its record has a payload.
func (k Kind) isOfPlane() bool { return k >= kindsPerPlane }

// Plane returns the plane that applies records of kind k.
func (k Kind) Plane() types.Plane {
	switch {
	case k.isOfPlane():
		return types.Plane(k / kindsPerPlane)
	case k.isMovement(), k == Rejected, k == Batched:
		return types.PlaneWallet
	default:
		return types.PlaneNode
	}
}

func (k Kind) String() string {
	if k.isOfPlane() {
		return k.Plane().String() + " " + strconv.Itoa(int(k%kindsPerPlane))
	}
	return [numKinds]string{"", "started", "posted", "rejected", "keys_forgotten", "bootstrap_key_created", "restored",
		"batched", "hold_opened", "hold_captured", "hold_released", "hold_expired", "freeze_changed",
		"key_created", "key_revoked", "all_keys_revoked"}[k]
}

// mayRecord reports whether a record of kind k may be the outcome of o.
func (k Kind) mayRecord(o event.Op) bool {
	switch k {
	case Posted:
		return event.Issue <= o && o <= event.Burn
	case Batched:
		return o == event.Batch
	case HoldOpened:
		return o == event.Hold
	case HoldCaptured:
		return o == event.Capture
	case HoldReleased:
		return o == event.Release
	case FreezeChanged:
		return o == event.Freeze || o == event.Unfreeze
	case Rejected:
		return o.Known() && o != event.Batch
	default:
		return false
	}
}

// A Record is a fact with its outcome, not a command. One struct serves all kinds, so that none is
// boxed: a field is used only by the kinds that its comment names.
type Record struct {
	Kind Kind

	Journal    types.JournalID // Started, Restored: the journal from here on
	CutBytes   uint64          // Started: bytes of a torn tail that were cut off
	TailFrames uint32          // Started: frames after the last one known to be durable, made durable again
	Upto       types.LSN       // KeysForgotten; Restored: the last frame of the old journal
	Root       types.Root      // Restored: the root there
	APIKey     *event.Key      // BootstrapKeyCreated, KeyCreated; KeyRevoked: only its ID

	// The command: tenant, caller, idempotency key. The items of a batch have those of the batch.
	Op       event.Op
	Tenant   types.Tenant // HoldExpired as well
	Caller   types.KeyID  // KeyCreated, KeyRevoked as well; 0: the node itself
	Key      types.Name
	Hash     types.RequestHash
	Problem  event.Problem // Rejected; Batched: why the batch was rejected
	Nonce    types.Nonce   // the nonce that was used, or 0. Rejected, Batched: the expected nonce
	PriorRef types.TxID    // Rejected, Batched: the record that used the ref
	Items    uint16        // Batched: the number of items; with a problem, the item that has it
	Atomic   bool          // Batched

	From         types.Name // of a hold, its holder; empty for an issue
	To           types.Name // empty for a burn; of a hold, the optional beneficiary
	Asset        types.Name
	Amount       types.Amount // HoldReleased: of the hold
	Seq          types.Seq
	FromBalance  types.Amount // of From afterwards; of an issue, the total ever issued
	ToBalance    types.Amount // of To afterwards; of a burn, the total ever burned
	DebitedToday types.Amount // debits of From, or issues of the tenant, in this UTC day afterwards
	HeldBalance  types.Amount // hold kinds: held of the asset of From afterwards
	ExpiresAt    types.Time   // HoldOpened
	Hold         types.TxID   // HoldCaptured, HoldReleased, HoldExpired
	Ref          types.Name
	Memo         []byte // FreezeChanged: the reason

	Payload []byte // of a plane's own kind: encoded by the plane
}

// IsOutcome reports whether r is the outcome of an idempotency key or of an item of a batch.
func (r *Record) IsOutcome() bool {
	if r.Kind.isOfPlane() {
		return len(r.Key.Text) > 0
	}
	switch r.Kind {
	case Posted, Rejected, Batched, HoldOpened, HoldCaptured, HoldReleased, FreezeChanged:
		return true
	default:
		return false
	}
}

// IsMovement reports whether r is a movement: it has a Seq of its tenant.
func (r *Record) IsMovement() bool { return r.Kind.isMovement() }

func (k Kind) isMovement() bool {
	switch k {
	case Posted, HoldOpened, HoldCaptured, HoldReleased, HoldExpired, FreezeChanged:
		return true
	default:
		return false
	}
}

// Changes reports whether r changes the state of its plane. A rejection only occupies its
// idempotency key.
func (r *Record) Changes() bool {
	return r.IsMovement() || r.Kind.isOfPlane() && r.Problem == event.None
}

// Sealed is a frame with its place in the hash chain. Its Body is read-only.
type Sealed struct {
	Journal    types.JournalID
	LSN        types.LSN
	Body       []byte
	Prev, Root types.Root
}

// A Header is the header of a frame.
type Header struct {
	LSN   types.LSN
	At    types.Time
	Count uint16
}

const (
	headerSize = 1 + 2 + 8 + 8
	prefixSize = 1 + 2 // of a record
)

// Begin appends a frame without records. Like Add, it panics rather than write what Open and Next would
// reject: such a journal could not be read back.
func Begin(to []byte, lsn types.LSN, at types.Time) []byte {
	types.Assert(0 < lsn && lsn <= types.MaxLSN && at >= 0, "record: a frame that could not be read back")
	to = append(to, Version, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, uint64(lsn))
	return binary.LittleEndian.AppendUint64(to, uint64(at))
}

// Add appends r to the frame that starts at off, and returns its index there.
func Add(to []byte, off uint32, r *Record) (grown []byte, index uint16) {
	count := to[off+1 : off+3]
	index = binary.LittleEndian.Uint16(count)
	types.Assert(index < types.MaxRecords, "record: more than a frame takes")
	binary.LittleEndian.PutUint16(count, index+1)
	at := len(to)
	c := codec{b: append(to, byte(r.Kind), 0, 0)}
	c.record(r)
	size := len(c.b) - at - prefixSize
	types.Assert(!c.bad && size <= r.Kind.limit(), "record: one that could not be read back")
	binary.LittleEndian.PutUint16(c.b[at+1:], uint16(size))
	return c.b, index
}

// Count returns the number of records of the frame that starts at off. Truncate sets it after the last
// records were cut off.
func Count(arena []byte, off uint32) uint16 { return binary.LittleEndian.Uint16(arena[off+1:]) }
func Truncate(arena []byte, off uint32, records uint16) {
	binary.LittleEndian.PutUint16(arena[off+1:], records)
}

// Open parses the header of a body and returns the bytes of its records.
func Open(body []byte) (h Header, rest []byte, err error) {
	if len(body) < headerSize || len(body) > types.MaxFrame || body[0] != Version {
		return Header{}, nil, ErrFrame
	}
	h.Count = binary.LittleEndian.Uint16(body[1:])
	h.LSN = types.LSN(binary.LittleEndian.Uint64(body[3:]))
	h.At = types.Time(binary.LittleEndian.Uint64(body[11:]))
	if h.Count > types.MaxRecords || h.LSN == 0 || h.LSN > types.MaxLSN || h.At < 0 {
		return Header{}, nil, ErrFrame
	}
	return h, body[headerSize:], nil
}

// OpenWhole is Open of a body whose records are all valid: Next does not fail on it.
func OpenWhole(body []byte) (h Header, rest []byte, err error) {
	h, rest, err = Open(body)
	var r Record
	left := rest
	for range h.Count {
		if left, err = Next(left, &r); err != nil {
			return Header{}, nil, err
		}
	}
	if len(left) > 0 {
		return Header{}, nil, ErrFrame
	}
	return h, rest, err
}

// Next parses one record into r, whose texts point into from, and returns the bytes behind it. Identify
// computes the digests of its names.
func Next(from []byte, r *Record) ([]byte, error) {
	if len(from) < prefixSize {
		return nil, ErrFrame
	}
	size := int(binary.LittleEndian.Uint16(from[1:]))
	if size > Kind(from[0]).limit() || prefixSize+size > len(from) {
		return nil, ErrFrame
	}
	*r = Record{Kind: Kind(from[0])}
	end := prefixSize + size
	c := codec{b: from[prefixSize:end:end], reading: true}
	if c.record(r); c.bad || len(c.b) > 0 {
		return nil, ErrFrame
	}
	return from[end:], nil
}

// Seek returns the bytes of a body from the record with an index on.
func Seek(body []byte, index uint16) (h Header, rest []byte, err error) {
	h, rest, err = Open(body)
	if err != nil || index >= h.Count {
		return h, nil, ErrFrame
	}
	for range index { // skipped by their lengths
		if len(rest) < prefixSize {
			return h, nil, ErrFrame
		}
		end := prefixSize + int(binary.LittleEndian.Uint16(rest[1:]))
		if end > len(rest) {
			return h, nil, ErrFrame
		}
		rest = rest[end:]
	}
	return h, rest, nil
}

// KindAt returns the kind of the record with an index in a body.
func KindAt(body []byte, index uint16) (Kind, error) {
	_, rest, err := Seek(body, index)
	if err != nil || len(rest) < prefixSize {
		return 0, ErrFrame
	}
	return Kind(rest[0]), nil
}

// Read parses the record with an index in a body.
func Read(body []byte, index uint16, r *Record) (h Header, err error) {
	h, rest, err := Seek(body, index)
	if err == nil {
		_, err = Next(rest, r)
	}
	return h, err
}

// Identify computes the digests of the names of r, which Apply needs.
func (r *Record) Identify() {
	if !r.IsOutcome() {
		return
	}
	for _, n := range [...]*types.Name{&r.Key, &r.From, &r.To, &r.Asset, &r.Ref} {
		if len(n.Text) > 0 {
			n.ID = digest.Name(n.Text)
		}
	}
}

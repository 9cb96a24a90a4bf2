// Package record is what the journal remembers, and its bytes. Version 1 is
// frozen: journals are read for ever.
//
//	body:   version 1 · count 2 · LSN 8 · At 8 · records       little-endian
//	record: kind 1 · length 2 · fields by kind
//	        of a kind ≥ 16: tenant 4 · outcome 1 · [caller 8 · key · hash 16 · problem 1] · payload
//
// A frame without records is a time frame: it moves At and vouches for the frame
// before it.
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

// ErrFrame says that bytes are not a frame of a version that we know.
var ErrFrame = errors.New("record: not a frame")

// A Kind is what sort of fact a record is. Its number is for ever.
type Kind uint8

const (
	Started             Kind = iota + 1 // the node started
	Posted                              // money moved
	Rejected                            // a refusal that its key will show again
	KeysForgotten                       // the keys of all frames ≤ Upto have left the window
	BootstrapKeyCreated                 // an API key is known
	Restored                            // from here on this is another journal: a backup was brought back
	Batched                             // a batch was decided: its items' records follow in the frame
	HoldOpened                          // a hold was opened; its place names it
	HoldCaptured                        // some of a hold was paid, the rest let go
	HoldReleased                        // a hold was let go
	HoldExpired                         // a hold's time was over
	FreezeChanged                       // an account was frozen, or no longer is
	KeyCreated                          // an API key is known, with all that it covers
	KeyRevoked                          // an API key is nobody's any more
	AllKeysRevoked                      // no API key of before is anybody's any more
	numKinds                            // of version 1; 16p to 16p+15 are the kinds of plane p
)

// kindsPerPlane is the size of the range of kinds that a plane owns.
const kindsPerPlane = 16

// PlaneKind returns the n-th kind of a plane, from 0. The plane encodes the payload of its records.
func PlaneKind(p types.Plane, n uint8) Kind {
	types.Assert(p > types.PlaneNode && p < types.NumPlanes && n < kindsPerPlane, "record: kind outside the range of its plane")
	return Kind(uint8(p)*kindsPerPlane + n)
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
	return [numKinds]string{"", "booted", "moved", "refused", "forgot", "key_made", "restored",
		"batched", "held", "captured", "released", "lapsed", "frozen", "granted", "revoked", "disowned"}[k]
}

// mayRecord reports that a record of kind k may be what became of an o.
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

// A Record is a fact with its outcome, never the wish that led to it. One struct
// serves all kinds, so that none is boxed: a field is meant only where its kind
// says so.
type Record struct {
	Kind Kind

	Journal    types.JournalID // Booted, Restored: whose frames these are from here on
	CutBytes   uint64          // Booted: bytes of a torn tail given up
	TailFrames uint32          // Booted: frames beyond the known durable one, made durable again
	Upto       types.LSN       // Forgot; Restored: the last frame of the old journal
	Root       types.Root      // Restored: the chain's value there
	APIKey     *event.Key      // KeyMade, Granted; Revoked: its ID alone

	// What was asked, by whom, under which key: of a batch's items, the batch's.
	Op       event.Op
	Tenant   types.Tenant // Lapsed as well
	Caller   types.KeyID  // Granted, Revoked as well; 0: the node itself
	Key      types.Name
	Hash     types.RequestHash
	Problem  event.Problem // Refused; Batched: why nothing of it was done
	Nonce    types.Nonce   // used, 0 where none is. Refused, Batched: the expected one
	PriorRef types.TxID    // Refused, Batched: who has the ref
	Items    uint16        // Batched: how many follow; of a problem, whose it is
	Atomic   bool          // Batched

	From         types.Name // of a hold, whose it is; empty for an issue
	To           types.Name // empty for a burn; of a hold, the beneficiary, if there is one
	Asset        types.Name
	Amount       types.Amount // Released: of the hold
	Seq          types.Seq
	FromBalance  types.Amount // what From has after; for an issue, all that was ever issued
	ToBalance    types.Amount // what To has after; for a burn, all that was ever burned
	DebitedToday types.Amount // what From sent (or the tenant issued) of Asset this UTC day, after
	HeldBalance  types.Amount // Held, Captured, Released, Lapsed: what of From's Asset is held after
	ExpiresAt    types.Time   // Held
	Hold         types.TxID   // Captured, Released, Lapsed
	Ref          types.Name
	Memo         []byte // Frozen: the reason

	Payload []byte // of a plane's own kind: encoded by the plane
}

// IsOutcome reports that r is the outcome of an idempotency key, or of a batch's item.
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

// IsMovement reports that r has a place among its tenant's movements.
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

// Sealed is a frame in its place in the chain. Nobody writes to its Body.
type Sealed struct {
	Journal    types.JournalID
	LSN        types.LSN
	Body       []byte
	Prev, Root types.Root
}

// A Header is what a frame says of itself.
type Header struct {
	LSN   types.LSN
	At    types.Time
	Count uint16
}

const (
	headerSize = 1 + 2 + 8 + 8
	prefixSize = 1 + 2 // of a record
)

// Begin starts a frame without records. Like Add, it writes nothing that Open and
// Next would refuse: a journal must not be poisoned by what it was given.
func Begin(to []byte, lsn types.LSN, at types.Time) []byte {
	types.Assert(0 < lsn && lsn <= types.MaxLSN && at >= 0, "record: a frame that could not be read back")
	to = append(to, Version, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, uint64(lsn))
	return binary.LittleEndian.AppendUint64(to, uint64(at))
}

// Add puts r at the end of the frame that starts at off, and says which index it
// got there.
func Add(to []byte, off uint32, r *Record) (grown []byte, index uint16) {
	count := to[off+1 : off+3]
	index = binary.LittleEndian.Uint16(count)
	types.Assert(index < types.MaxRecords, "record: more than a frame takes")
	binary.LittleEndian.PutUint16(count, index+1)
	at := len(to)
	c := codec{b: append(to, byte(r.Kind), 0, 0)}
	c.record(r)
	size := len(c.b) - at - prefixSize
	types.Assert(!c.bad && size <= types.MaxRecord, "record: one that could not be read back")
	binary.LittleEndian.PutUint16(c.b[at+1:], uint16(size))
	return c.b, index
}

// Count is how many records the frame that starts at off has; Cut makes it that many,
// when those behind have been taken away.
func Count(arena []byte, off uint32) uint16 { return binary.LittleEndian.Uint16(arena[off+1:]) }
func Truncate(arena []byte, off uint32, records uint16) {
	binary.LittleEndian.PutUint16(arena[off+1:], records)
}

// Open reads the head of a body and returns its records, still as bytes.
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

// OpenWhole is Open of a body that is a frame to its last byte: Next will not fail on it.
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

// Next reads one record into r, whose texts are views of from, and returns what
// follows it. It leaves the names' digests to Identify.
func Next(from []byte, r *Record) ([]byte, error) {
	if len(from) < prefixSize {
		return nil, ErrFrame
	}
	size := int(binary.LittleEndian.Uint16(from[1:]))
	if size > types.MaxRecord || prefixSize+size > len(from) {
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

// Seek returns what stands in a body from the record with an index on.
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

// Read finds the record with an index in a body.
func Read(body []byte, index uint16, r *Record) (h Header, err error) {
	h, rest, err := Seek(body, index)
	if err == nil {
		_, err = Next(rest, r)
	}
	return h, err
}

// Identify computes the digests of r's names, for those who apply it.
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

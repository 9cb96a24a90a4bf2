// Package record is what the journal remembers, and its bytes. Version 1 is
// frozen: journals are read for ever.
//
//	body:   version 1 · count 2 · LSN 8 · At 8 · records       little-endian
//	record: kind 1 · length 2 · fields by kind
//
// A frame without records is a time frame: it moves At and vouches for the frame
// before it.
package record

import (
	"encoding/binary"
	"errors"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/words"
)

// Version is the first byte of every body.
const Version = 1

// ErrFrame says that bytes are not a frame of a version that we know.
var ErrFrame = errors.New("record: not a frame")

// A Kind is what sort of fact a record is. Its number is for ever.
type Kind uint8

const (
	Booted   Kind = iota + 1 // the node started
	Moved                    // money moved
	Refused                  // a refusal that its key will show again
	Forgot                   // the keys of all frames ≤ Upto have left the window
	KeyMade                  // an API key is known
	Restored                 // from here on this is another journal: a backup was brought back
	kinds                    // how many there are, and one
)

func (k Kind) String() string {
	return [kinds]string{"", "booted", "moved", "refused", "forgot", "key_made", "restored"}[k]
}

// A Record is a fact with its outcome, never the wish that led to it. One struct
// serves all kinds, so that none is boxed: a field is meant only where its kind
// says so.
type Record struct {
	Kind Kind

	Journal words.JournalID // Booted, Restored: whose frames these are from here on
	Cut     uint64          // Booted: bytes of a torn tail given up
	Tail    uint32          // Booted: frames beyond the known durable one, made durable again
	Upto    words.LSN       // Forgot; Restored: the last frame of the old journal
	Root    words.Root      // Restored: the chain's value there
	Grant   event.Key       // KeyMade

	Op      event.Op // Moved, Refused: what was asked, by whom, under which key
	Tenant  words.Tenant
	Caller  words.KeyID
	Key     words.Name
	Asked   words.Asked
	Problem event.Problem // Refused
	Nonce   words.Nonce   // Moved: used, 0 for an issue. Refused: the expected one

	From    words.Name // Moved; empty for an issue
	To      words.Name // Moved; empty for a burn
	Asset   words.Name
	Amount  words.Amount
	Seq     words.Seq
	FromNow words.Amount // what From has after; for an issue, all that was ever issued
	ToNow   words.Amount // what To has after; for a burn, all that was ever burned
	Spent   words.Amount // what From sent (or the tenant issued) of Asset this UTC day, after
	Memo    []byte
}

// Sealed is a frame in its place in the chain. Nobody writes to its Body.
type Sealed struct {
	Journal    words.JournalID
	LSN        words.LSN
	Body       []byte
	Prev, Root words.Root
}

// A Head is what a frame says of itself.
type Head struct {
	LSN   words.LSN
	At    words.Time
	Count uint16
}

const (
	headSize   = 1 + 2 + 8 + 8
	prefixSize = 1 + 2 // of a record
)

// Begin starts a frame without records. Like Add, it writes nothing that Open and
// Next would refuse: a journal must not be poisoned by what it was given.
func Begin(to []byte, lsn words.LSN, at words.Time) []byte {
	words.Assert(0 < lsn && lsn <= words.MaxLSN && at >= 0, "record: a frame that could not be read back")
	to = append(to, Version, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, uint64(lsn))
	return binary.LittleEndian.AppendUint64(to, uint64(at))
}

// Add puts r at the end of the frame that starts at off, and says which index it
// got there.
func Add(to []byte, off uint32, r *Record) (grown []byte, index uint16) {
	count := to[off+1 : off+3]
	index = binary.LittleEndian.Uint16(count)
	words.Assert(index < words.MaxRecords, "record: more than a frame takes")
	binary.LittleEndian.PutUint16(count, index+1)
	at := len(to)
	c := codec{b: append(to, byte(r.Kind), 0, 0)}
	c.record(r)
	size := len(c.b) - at - prefixSize
	words.Assert(!c.bad && size <= words.MaxRecord, "record: one that could not be read back")
	binary.LittleEndian.PutUint16(c.b[at+1:], uint16(size))
	return c.b, index
}

// Open reads the head of a body and returns its records, still as bytes.
func Open(body []byte) (h Head, rest []byte, err error) {
	if len(body) < headSize || len(body) > words.MaxFrame || body[0] != Version {
		return Head{}, nil, ErrFrame
	}
	h.Count = binary.LittleEndian.Uint16(body[1:])
	h.LSN = words.LSN(binary.LittleEndian.Uint64(body[3:]))
	h.At = words.Time(binary.LittleEndian.Uint64(body[11:]))
	if h.Count > words.MaxRecords || h.LSN == 0 || h.LSN > words.MaxLSN || h.At < 0 {
		return Head{}, nil, ErrFrame
	}
	return h, body[headSize:], nil
}

// Whole is Open of a body that is a frame to its last byte: Next will not fail on it.
func Whole(body []byte) (h Head, rest []byte, err error) {
	h, rest, err = Open(body)
	var r Record
	left := rest
	for range h.Count {
		if left, err = Next(left, &r); err != nil {
			return Head{}, nil, err
		}
	}
	if len(left) > 0 {
		return Head{}, nil, ErrFrame
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
	if size > words.MaxRecord || prefixSize+size > len(from) {
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

// Read finds the record with an index in a body.
func Read(body []byte, index uint16, r *Record) (h Head, err error) {
	h, rest, err := Open(body)
	if err != nil || index >= h.Count {
		return h, ErrFrame
	}
	for range index { // skipped by their lengths
		if len(rest) < prefixSize {
			return h, ErrFrame
		}
		end := prefixSize + int(binary.LittleEndian.Uint16(rest[1:]))
		if end > len(rest) {
			return h, ErrFrame
		}
		rest = rest[end:]
	}
	_, err = Next(rest, r)
	return h, err
}

// Identify computes the digests of r's names, for those who apply it.
func (r *Record) Identify() {
	if r.Kind != Moved && r.Kind != Refused {
		return
	}
	for _, n := range [...]*words.Name{&r.Key, &r.From, &r.To, &r.Asset} {
		if len(n.Text) > 0 {
			n.ID = digest.Name(n.Text)
		}
	}
}

package accounting

import (
	"encoding/binary"
	"math/bits"

	"macronode/core/record"
	"macronode/core/types"
)

// The kinds of the plane's records. Their numbers are permanent.
const (
	kindReported   uint8 = iota // a command recorded events; the usage that it recorded follows in the frame
	kindUsage                   // events of one row
	kindSlice                   // a slice was sealed
	kindMetered                 // usage of one row that the node counted itself
	kindPaid                    // lines as older journals have them, without their cost
	kindLineClosed              // no usage of the month of a line can be recorded any more
	kindLines                   // lines after usage or a payment; what was recorded follows in the frame
	numKinds
)

// recordPrefix is the number of bytes of a record before its payload: kind, length, tenant, outcome.
const recordPrefix = 1 + 2 + 4 + 1

// kindOf returns the kind of a record of the plane.
func kindOf(r *record.Record) (kind uint8, ok bool) {
	first := record.PlaneKind(types.PlaneAccounting, 0)
	if r.Kind < first || r.Kind >= first+record.Kind(numKinds) || len(r.Key.Text) > 0 {
		return 0, false
	}
	return uint8(r.Kind - first), true
}

// A Report is the outcome of a command: caller 8 · recorded 2 · duplicate 2 · late 2.
type Report struct {
	Caller    types.KeyID
	Recorded  uint16 // events that were new, the late ones among them
	Duplicate uint16 // events that were recorded before
	Late      uint16 // events whose window was sealed: they are in a correction
}

const reportSize = 8 + 3*2

func (r *Report) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Caller))
	for _, n := range [...]uint16{r.Recorded, r.Duplicate, r.Late} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

func parseReport(b []byte) (r Report, ok bool) {
	if len(b) != reportSize {
		return r, false
	}
	n := func(i int) uint16 { return binary.LittleEndian.Uint16(b[8+2*i:]) }
	r = Report{types.KeyID(binary.LittleEndian.Uint64(b)), n(0), n(1), n(2)}
	return r, r.Late <= r.Recorded
}

// usage is the payload of a record of usage. All integers are little-endian:
//
//	flags 1 · from 8 · to 8 · due 8 · dimension 1+n · labels 1+n · entries
//	entry: name of the event 16 · content 16 · value 8
//
// The flags are 1 for late and 2 for prepaid. Usage that the node counted itself has value 8 · events 8 in the place of the entries.
type usage struct {
	window            Window
	due               types.Time
	late, prepaid     bool
	dimension, labels []byte
	entries           []byte
}

const (
	usagePrefix = 1 + 3*8 + 1 + 1
	entrySize   = 16 + 16 + 8
	countSize   = 8 + 8

	flagLate, flagPrepaid = 1, 2
)

func (u *usage) appendPrefix(b []byte) []byte {
	flags := byte(0)
	if u.late {
		flags |= flagLate
	}
	if u.prepaid {
		flags |= flagPrepaid
	}
	b = append(b, flags)
	for _, at := range [...]types.Time{u.window.From, u.window.To, u.due} {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	b = append(append(b, byte(len(u.dimension))), u.dimension...)
	return append(append(b, byte(len(u.labels))), u.labels...)
}

func appendEntry(b []byte, name types.NameHash, content types.RequestHash, value uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(append(b, name[:]...), content[:]...), value)
}

// parseUsage reads the payload of a record. Its texts are views of it.
func parseUsage(b []byte) (u usage, ok bool) {
	u, ok = parsePrefix(b)
	return u, ok && len(u.entries) > 0 && len(u.entries)%entrySize == 0
}

// parseCount reads the payload of a record of either kind of usage, and what it adds up to; false also if that is too
// large.
func parseCount(kind uint8, b []byte) (u usage, c Count, ok bool) {
	if kind == kindUsage {
		if u, ok = parseUsage(b); ok {
			c, ok = u.sum()
		}
		return u, c, ok
	}
	if u, ok = parsePrefix(b); !ok || len(u.entries) != countSize {
		return u, c, false
	}
	c = Count{binary.LittleEndian.Uint64(u.entries), binary.LittleEndian.Uint64(u.entries[8:])}
	return u, c, c.Events > 0
}

// parsePrefix reads everything before the entries, which it returns as they are.
func parsePrefix(b []byte) (u usage, ok bool) {
	if len(b) < usagePrefix || b[0] > flagLate|flagPrepaid {
		return u, false
	}
	at := func(i int) types.Time { return types.Time(binary.LittleEndian.Uint64(b[1+8*i:])) }
	u.late, u.prepaid, u.window, u.due = b[0]&flagLate > 0, b[0]&flagPrepaid > 0, Window{at(0), at(1)}, at(2)
	b = b[1+3*8:]
	if u.dimension, b, ok = cutText(b); !ok {
		return u, false
	}
	if u.labels, u.entries, ok = cutText(b); !ok {
		return u, false
	}
	return u, 0 <= u.window.From && u.window.From < u.window.To && u.window.To <= u.due
}

// cutText reads a text after its length of one byte.
func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	return b[1:end:end], b[end:], true
}

func (u *usage) key(t types.Tenant, s *Series) rowKey {
	return rowKey{tenant: t, window: u.window, due: u.due, late: u.late, prepaid: u.prepaid, series: s.ID}
}

// usage is the payload of usage of a row, which is of a series, without entries.
func (k *rowKey) usage(s *Series) usage {
	return usage{window: k.window, due: k.due, late: k.late, prepaid: k.prepaid, dimension: s.Dimension, labels: s.Labels}
}

// sum returns what the entries add up to; false if that is too large.
func (u *usage) sum() (c Count, ok bool) {
	c.Events = uint64(len(u.entries) / entrySize)
	for b := u.entries; len(b) > 0; b = b[entrySize:] {
		var carry uint64
		if c.Value, carry = bits.Add64(c.Value, binary.LittleEndian.Uint64(b[32:]), 0); carry > 0 {
			return Count{}, false
		}
	}
	return c, true
}

// Refs returns the number of events that a record of the plane has, Ref the name and the content of one: they are
// refs of its tenant.
func (*Plane) Refs(r *record.Record) int {
	if kind, ok := kindOf(r); !ok || kind != kindUsage {
		return 0
	}
	u, _ := parseUsage(r.Payload)
	return len(u.entries) / entrySize
}

// Ref returns the i-th event.
func (*Plane) Ref(r *record.Record, i int) (types.NameHash, types.RequestHash) {
	u, _ := parseUsage(r.Payload)
	b := u.entries[i*entrySize:]
	return types.NameHash(b[:16]), types.RequestHash(b[16:32])
}

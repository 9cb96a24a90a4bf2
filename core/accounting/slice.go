package accounting

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

// A Digest is the BLAKE3 digest of a slice.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// HashInto mixes d into h.
func (d Digest) HashInto(h types.Hash64) types.Hash64 {
	for i := 0; i < len(d); i += 8 {
		h = h.Mix(binary.LittleEndian.Uint64(d[i:]))
	}
	return h
}

// A SliceKind says what a slice has.
type SliceKind uint8

const (
	SliceUsage             SliceKind = iota + 1 // usage that came before its window was sealed
	SliceCorrection                             // usage that came after
	SlicePrepaid                                // as SliceUsage, and paid when it was recorded
	SlicePrepaidCorrection                      // as SliceCorrection, and paid when it was recorded
	numSliceKinds
)

// SliceKinds returns all kinds.
func SliceKinds() [4]SliceKind {
	return [...]SliceKind{SliceUsage, SliceCorrection, SlicePrepaid, SlicePrepaidCorrection}
}

// sliceKind returns the kind of a slice of rows.
func sliceKind(late, prepaid bool) SliceKind {
	k := SliceUsage
	if late {
		k = SliceCorrection
	}
	if prepaid {
		k += SlicePrepaid - SliceUsage
	}
	return k
}

// IsLate reports whether the usage came after its window was sealed.
func (k SliceKind) IsLate() bool { return k == SliceCorrection || k == SlicePrepaidCorrection }

// IsPrepaid reports whether the usage was paid when it was recorded.
func (k SliceKind) IsPrepaid() bool { return k >= SlicePrepaid }

func (k SliceKind) String() string {
	return [...]string{"", "usage", "correction", "prepaid", "prepaid_correction"}[k]
}

// A Slice is sealed usage of a stream in a window. A window with more rows than a slice takes has several slices.
type Slice struct {
	Tenant    types.Tenant
	Dimension []byte
	Seq       uint64 // in its stream, from 1 without a gap
	Kind      SliceKind
	Window    Window
	Previous  Digest // of the slice with the seq before; zero for the first
	Digest    Digest
	Rows      []Row // in the order of their labels
}

// A Row is the usage of a series.
type Row struct {
	Labels []byte
	Count
}

// The payload of a slice, little-endian:
//
//	due 8 · kind 1 · seq 8 · from 8 · to 8 · previous 32 · dimension 1+n · rows 2 · row … · digest 32
//	row: labels 1+n · value 8 · events 8
//
// The digest covers slicePrefix, the tenant (4 bytes), and everything between due and the digest.
const (
	sliceFixed  = 8 + 1 + 3*8 + 32
	digestSize  = 32
	rowFixed    = 1 + 2*8
	slicePrefix = "macronode slice 1\n"
	maxSlice    = types.MaxPlaneRecord - recordPrefix
)

// Errors of a slice.
var (
	ErrSlice       = errors.New("accounting: not a slice")
	ErrSliceDigest = errors.New("accounting: the digest of a slice is not that of its content")
)

// check returns a *FieldError for a field with a value that no slice has. It does not compute the digest.
func (s *Slice) check() error {
	switch {
	case s.Seq == 0:
		return &FieldError{"seq", "must be at least 1"}
	case s.Kind == 0 || s.Kind >= numSliceKinds:
		return &FieldError{"kind", "must be usage, correction, prepaid or prepaid_correction"}
	case s.Window.From < 0 || s.Window.From >= s.Window.To:
		return &FieldError{"window_to", "must be after window_from"}
	case (s.Seq == 1) != (s.Previous == Digest{}):
		return &FieldError{"previous", "must be zeros for seq 1, and for no other"}
	case len(s.Rows) == 0:
		return &FieldError{"rows", "must not be empty"}
	}
	for i := range s.Rows[1:] {
		if bytes.Compare(s.Rows[i].Labels, s.Rows[i+1].Labels) >= 0 {
			return &FieldError{fmt.Sprintf("rows[%d].labels", i+1), "must come after the labels of the row before, byte by byte"}
		}
	}
	return nil
}

// header appends everything before the rows, with a number of rows that setRows corrects.
func (s *Slice) header(b []byte, due types.Time) []byte {
	b = append(binary.LittleEndian.AppendUint64(b, uint64(due)), byte(s.Kind))
	for _, n := range [...]uint64{s.Seq, uint64(s.Window.From), uint64(s.Window.To)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, s.Previous[:]...)
	b = append(append(b, byte(len(s.Dimension))), s.Dimension...)
	return append(b, 0, 0)
}

func appendRow(b, labels []byte, c Count) []byte {
	b = append(append(b, byte(len(labels))), labels...)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, c.Value), c.Events)
}

// finish sets the number of rows of a payload and appends its digest. It uses scratch.
func (s *Slice) finish(b []byte, rows int, scratch []byte) []byte {
	binary.LittleEndian.PutUint16(b[sliceFixed+1+len(s.Dimension):], uint16(rows))
	d := sliceDigest(s.Tenant, b[8:], scratch)
	return append(b, d[:]...)
}

// sliceDigest returns the digest of the content of a slice.
func sliceDigest(t types.Tenant, content, scratch []byte) Digest {
	scratch = binary.LittleEndian.AppendUint32(append(scratch[:0], slicePrefix...), uint32(t))
	return digest.Sum(append(scratch, content...))
}

// ReadSlice returns the slice of a record; false if the record is none. Texts are views of the record.
func ReadSlice(r *record.Record) (s Slice, ok bool) {
	if kind, ok := kindOf(r); !ok || kind != kindSlice {
		return s, false
	}
	_, s, err := parseSlice(r.Tenant, r.Payload)
	return s, err == nil
}

// DecodeSlice returns the slice of a tenant from the payload of its record, which it verifies.
func DecodeSlice(t types.Tenant, payload []byte) (Slice, error) {
	_, s, err := parseSlice(t, payload)
	if err == nil && sliceDigest(t, payload[8:len(payload)-digestSize], nil) != s.Digest {
		err = ErrSliceDigest
	}
	return s, err
}

// SliceDue returns when the rows of a slice were due, from the payload of its record.
func SliceDue(payload []byte) types.Time { return types.Time(binary.LittleEndian.Uint64(payload)) }

// parseSlice reads the payload of a record.
func parseSlice(t types.Tenant, b []byte) (due types.Time, s Slice, err error) {
	if len(b) < sliceFixed+1+2+digestSize || len(b) > maxSlice {
		return 0, s, ErrSlice
	}
	if end := sliceFixed + 1 + int(b[sliceFixed]); len(b) < end+2+digestSize {
		return 0, s, ErrSlice
	}
	count := binary.LittleEndian.Uint16(b[sliceFixed+1+int(b[sliceFixed]):])
	due, s, b = sliceRows(t, b)
	var ok bool
	s.Rows = make([]Row, count)
	for i := range s.Rows {
		row := &s.Rows[i]
		if row.Labels, b, ok = cutText(b); !ok || len(b) < 2*8 {
			return 0, s, ErrSlice
		}
		row.Count = Count{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
		b = b[16:]
	}
	if len(b) > 0 || s.Window.To > due || s.check() != nil {
		return 0, s, ErrSlice
	}
	return due, s, nil
}

// sliceRows is parseSlice for a valid payload: it returns the encoded rows, and allocates nothing.
func sliceRows(t types.Tenant, b []byte) (due types.Time, s Slice, rows []byte) {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(b[9+8*i:]) }
	due = types.Time(binary.LittleEndian.Uint64(b))
	s = Slice{Tenant: t, Kind: SliceKind(b[8]), Seq: n(0), Window: Window{types.Time(n(1)), types.Time(n(2))}, Previous: Digest(b[9+24 : 9+24+digestSize])}
	s.Digest = Digest(b[len(b)-digestSize:])
	s.Dimension, rows, _ = cutText(b[sliceFixed : len(b)-digestSize])
	return due, s, rows[2:]
}

package index

import (
	"bytes"
	"encoding/binary"

	"macronode/core/accounting"
	"macronode/core/types"
)

// A Stream is a sequence of a tenant that has a first element: the slices of a dimension, or the movements of money.
type Stream struct {
	Tenant    types.Tenant
	Dimension string // empty: the movements
}

// streamKey has one row for a stream, from its first element on.
func streamKey(b []byte, t types.Tenant, dimension []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, byte(ofStream)), uint32(t)), dimension...)
}

// sliceAtKey has one row for a slice: the begin of its window, which sliceKey needs.
func sliceAtKey(b []byte, t types.Tenant, dimension []byte, seq uint64) []byte {
	b = append(binary.BigEndian.AppendUint32(append(b, byte(ofSliceAt)), uint32(t)), dimension...)
	return binary.BigEndian.AppendUint64(append(b, 0), seq)
}

// begin appends the row of a stream.
func (x *reader) begin(d *draft, t types.Tenant, dimension []byte) {
	d.end(append(d.key(streamKey(d.arena, t, dimension)), 1), 0)
}

// Streams passes all streams of all tenants, by tenant and dimension, until each returns false.
func (x *Indexer) Streams(each func(Stream) bool) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	stem, from := []byte{byte(ofStream)}, []byte(nil)
	for more := true; more && v.err == nil; {
		from, more = v.merge(stem, nil, from, x.limits.Page, func(key, _ []byte) bool {
			if len(key) < 1+tenantSize {
				v.bad(key)
				return false
			}
			return each(Stream{types.Tenant(binary.BigEndian.Uint32(key[1:])), string(key[1+tenantSize:])})
		})
	}
	return v.close()
}

// JournalAt returns the journal that wrote a frame: one that was restored has another ID for its own frames only.
func (x *Indexer) JournalAt(frame types.LSN) (types.JournalID, error) {
	v, err := x.view()
	if err != nil {
		return 0, err
	}
	journal := v.mark.lives.of(frame)
	return journal, v.close()
}

// SliceAt returns a slice of a stream; false if the index has no such slice. Its texts stay valid.
func (x *Indexer) SliceAt(t types.Tenant, dimension string, seq uint64) (s accounting.SealedSlice, ok bool, err error) {
	v, err := x.view()
	if err != nil {
		return s, false, err
	}
	key := sliceAtKey(nil, t, []byte(dimension), seq)
	value, known := v.get(key)
	from, n := binary.Uvarint(value)
	if known && n <= 0 {
		v.bad(key)
	}
	if err := v.close(); err != nil || !known {
		return s, false, err
	}
	in := accounting.SliceRange{Dimension: []byte(dimension), From: types.Time(from), To: types.Time(from) + 1, Upto: types.MaxLSN,
		After: accounting.SliceCursor{Dimension: []byte(dimension), From: types.Time(from), Seq: seq - 1}}
	err = x.Slices(t, in, func(at accounting.SealedSlice) bool {
		ok = at.Seq == seq
		s = cloneSlice(at)
		return false
	})
	return s, ok, err
}

// cloneSlice copies the texts of a slice.
func cloneSlice(s accounting.SealedSlice) accounting.SealedSlice {
	s.Dimension = bytes.Clone(s.Dimension)
	for i := range s.Rows {
		s.Rows[i].Labels = bytes.Clone(s.Rows[i].Labels)
	}
	return s
}

package index

import (
	"bytes"
	"encoding/binary"

	"macronode/core/accounting"
	"macronode/core/types"
)

// sliceKey orders the slices of a dimension by their windows, then by their seq.
func sliceKey(b []byte, t types.Tenant, dimension []byte, from types.Time, seq uint64) []byte {
	b = append(dimensionKey(b, t, dimension), 0)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(from)), seq)
}

// dimensionKey is the beginning of the keys of a dimension.
func dimensionKey(b []byte, t types.Tenant, dimension []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, byte(ofSlice)), uint32(t)), dimension...)
}

// events appends the refs of a record: its events, each with the digest of its content.
func (x *reader) events(d *draft, p types.Position) {
	var plane *accounting.Plane // Refs and Ref read the record alone
	for i := range plane.Refs(&x.rec) {
		name, content := plane.Ref(&x.rec, i)
		d.end(append(appendPlace(d.key(refKey(d.arena, x.rec.Tenant, name)), p), content[:]...), 0)
	}
}

// usage appends the rows of a slice, one of which has its payload.
func (x *reader) usage(d *draft, p types.Position) {
	s, ok := accounting.ReadSlice(&x.rec)
	if !ok {
		return
	}
	b := binary.AppendUvarint(d.key(sliceKey(d.arena, s.Tenant, s.Dimension, s.Window.From, s.Seq)), uint64(p.LSN))
	d.end(append(b, x.rec.Payload...), 0)
	d.end(binary.AppendUvarint(d.key(sliceAtKey(d.arena, s.Tenant, s.Dimension, s.Seq)), uint64(s.Window.From)), 0)
	if s.Seq == 1 {
		x.begin(d, s.Tenant, s.Dimension)
	}
}

// Slices passes the slices of a range in the order of dimension, window and seq, until each returns false. Texts are
// valid until each returns.
func (x *Indexer) Slices(t types.Tenant, in accounting.SliceRange, each func(accounting.SealedSlice) bool) error {
	v, err := x.view()
	if err != nil {
		return err
	}
	stem := dimensionKey(nil, t, nil)
	var prefix, from []byte
	if len(in.Dimension) > 0 {
		prefix = append(bytes.Clone(in.Dimension), 0)
		from = sliceKey(nil, t, in.Dimension, in.From, 0)[len(stem):]
	}
	if a := &in.After; len(a.Dimension) > 0 {
		if after := sliceKey(nil, t, a.Dimension, a.From, a.Seq+1)[len(stem):]; bytes.Compare(after, from) > 0 {
			from = after
		}
	}
	for more := true; more && v.err == nil; {
		var skip []byte // where the next dimension, or the first window of this one, begins
		from, more = v.merge(stem, prefix, from, x.limits.Page, func(key, value []byte) bool {
			if skip != nil && bytes.Compare(key[len(stem):], skip) < 0 {
				return true
			}
			s, ok := readSlice(t, value)
			if !ok {
				v.bad(key)
				return false
			}
			switch {
			case s.Window.From < in.From:
				skip = sliceKey(nil, t, s.Dimension, in.From, 0)[len(stem):]
			case s.Window.From >= in.To:
				skip = append(bytes.Clone(s.Dimension), 1)
			case in.InTime(&s) && !each(s):
				return false
			}
			return true
		})
		if bytes.Compare(from, skip) < 0 {
			from = skip
		}
	}
	return v.close()
}

func readSlice(t types.Tenant, value []byte) (s accounting.SealedSlice, ok bool) {
	lsn, n := binary.Uvarint(value)
	if n <= 0 || lsn > types.MaxLSN {
		return s, false
	}
	slice, err := accounting.DecodeSlice(t, value[n:])
	if err != nil {
		return s, false
	}
	return accounting.SealedSlice{Slice: slice, LSN: types.LSN(lsn), Due: accounting.SliceDue(value[n:])}, true
}

package index

import (
	"encoding/binary"

	"macronode/core/record"
	"macronode/core/types"
)

// A View has the rows of a plane that this package does not know. They are a function of its records, so a rebuild
// makes them again. If the rows change in another version of the program, the index must be rebuilt.
type View struct {
	Plane types.Plane
	// Rows calls put for each row that a record sets in the view of its tenant. The last value of a key counts; an
	// empty one removes it. Keys have at most MaxViewKey bytes. Neither r nor its texts are kept.
	Rows func(r *record.Record, at types.Time, put func(key, value []byte))
}

// MaxViewKey is the length of a key of a View in bytes.
const MaxViewKey = 1 << 10

// newReader returns a reader of the records of all planes. width is that of the buckets of keys.
func newReader(width uint64, e eras, views []View, find func(types.Tenant, types.TxID) (hold, error)) *reader {
	r := &reader{width: width, eras: e, hold: find}
	r.views[types.PlaneStorage] = r.names
	r.views[types.PlaneAccounting] = func(d *draft, p types.Position, _ types.Time) {
		r.events(d, p)
		r.usage(d, p)
	}
	for _, v := range views {
		types.Assert(r.views[v.Plane] == nil && v.Plane > types.PlaneWallet, "index: a view of "+v.Plane.String()+", which has one")
		r.views[v.Plane] = func(d *draft, _ types.Position, at types.Time) {
			v.Rows(&r.rec, at, func(key, value []byte) {
				types.Assert(len(key) <= MaxViewKey, "index: a long key of "+v.Plane.String())
				d.end(append(d.key(append(planeKey(d.arena, v.Plane, r.rec.Tenant), key...)), value...), 0)
			})
		}
	}
	return r
}

// planeKey is the beginning of the keys of a tenant in the view of a plane.
func planeKey(b []byte, p types.Plane, t types.Tenant) []byte {
	return binary.BigEndian.AppendUint32(append(b, byte(ofPlane), byte(p)), uint32(t))
}

// PlaneRows passes the rows of a tenant in the view of a plane to each, in the order of their keys: those that begin
// with prefix and are not before from, at most limit. More reports that the list goes on at next; a page may be empty
// before the list ends. The bytes are valid until each returns; each returns false for a row that is not of this
// version, and the index is then rebuilt.
func (x *Indexer) PlaneRows(p types.Plane, t types.Tenant, prefix, from []byte, limit int, each func(key, value []byte) bool) (next []byte, more bool, err error) {
	v, err := x.view()
	if err != nil {
		return nil, false, err
	}
	stem := planeKey(nil, p, t)
	next, more = v.merge(stem, prefix, from, min(limit, x.limits.Page), func(key, value []byte) bool {
		ok := each(key[len(stem):], value)
		if !ok {
			v.bad(key)
		}
		return ok
	})
	return next, more, v.close()
}

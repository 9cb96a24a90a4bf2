package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// An ObjectName is an object in a bucket.
type ObjectName struct {
	Name    []byte
	Address storage.Address
	Size    uint64
	ETag    storage.ETag // zero if the object was stored under its address
	At      types.Time
}

// put appends the value of the row of o.
func (o *ObjectName) put(b []byte) []byte {
	b = append(append(b, o.Address[:]...), o.ETag.MD5[:]...)
	for _, n := range [...]uint64{uint64(o.ETag.Parts), o.Size, uint64(o.At)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (o *ObjectName) read(b []byte) bool {
	v := values{b: b}
	copy(o.Address[:], v.take(len(o.Address)))
	copy(o.ETag.MD5[:], v.take(len(o.ETag.MD5)))
	o.ETag.Parts, o.Size, o.At = uint16(v.uvar(math.MaxUint16)), v.uvar(storage.MaxObject), v.time()
	return v.whole()
}

func objectKey(b []byte, t types.Tenant, bucket types.NameHash, object []byte) []byte {
	return append(name(append(b, byte(ofObject)), t, bucket), object...)
}

// bucketKey has two rows for a bucket: one of its creation, one of the first object that was put into it
// without that.
func bucketKey(b []byte, t types.Tenant, bucket []byte, implicit byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(append(b, byte(ofBucket)), uint32(t)), bucket...), 0, implicit)
}

func uploadKey(b []byte, t types.Tenant, id storage.UploadID) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(ofUpload)), uint32(t))
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(b, uint64(id.LSN)), id.Index)
}

// isRemoval reports whether a row removes its key. A table has no row of it.
func isRemoval(key, value []byte) bool { return family(key[0]) >= ofObject && len(value) == 0 }

// names appends what a record of the storage plane changes.
func (x *reader) names(d *draft, p types.Position, at types.Time) {
	c := storage.ReadChange(p, &x.rec)
	bucket := digest.Name(c.Bucket)
	remove := func(key []byte) { d.end(d.key(key), 0) }
	switch c.Kind {
	case storage.EntryPut:
		o := ObjectName{Address: c.Address, Size: c.Size, ETag: c.ETag, At: at}
		d.end(o.put(d.key(objectKey(d.arena, c.Tenant, bucket, c.Name))), 0)
		if c.First {
			d.end(binary.AppendUvarint(d.key(bucketKey(d.arena, c.Tenant, c.Bucket, 1)), uint64(at)), 0)
		}
		if (c.Upload != storage.UploadID{}) {
			remove(uploadKey(d.arena, c.Tenant, c.Upload))
		}
	case storage.EntryRemoved:
		remove(objectKey(d.arena, c.Tenant, bucket, c.Name))
	case storage.BucketCreated:
		d.end(binary.AppendUvarint(d.key(bucketKey(d.arena, c.Tenant, c.Bucket, 0)), uint64(at)), 0)
	case storage.BucketDeleted:
		remove(bucketKey(d.arena, c.Tenant, c.Bucket, 0))
		remove(bucketKey(d.arena, c.Tenant, c.Bucket, 1))
	case storage.UploadBegun:
		b := append(d.key(uploadKey(d.arena, c.Tenant, c.Upload)), bucket[:]...)
		d.end(appendText(binary.AppendUvarint(b, uint64(at)), c.Name), 0)
	case storage.UploadEnded:
		remove(uploadKey(d.arena, c.Tenant, c.Upload))
	case storage.NoChange:
	}
}

// Objects lists the objects of a bucket whose names begin with prefix and are not before from, in the
// order of their bytes: at most limit. More reports that the list goes on at next; a page may be empty
// before the list ends.
func (x *Indexer) Objects(t types.Tenant, bucket types.NameHash, prefix, from []byte, limit int) (list []ObjectName, next []byte, more bool, err error) {
	v, err := x.view()
	if err != nil {
		return nil, nil, false, err
	}
	limit = min(limit, x.limits.Page)
	stem := objectKey(nil, t, bucket, nil)
	next, more = v.merge(stem, prefix, from, limit, func(key, value []byte) bool {
		var o ObjectName
		if !o.read(value) {
			v.bad(key)
			return false
		}
		o.Name = bytes.Clone(key[len(stem):])
		list = append(list, o)
		return true
	})
	return list, next, more, v.close()
}

// A BucketName is a bucket.
type BucketName struct {
	Name []byte
	At   types.Time // of its creation
}

// Buckets lists the buckets of a tenant that were created or held an object: all of them, also those that
// ended with their last object.
func (x *Indexer) Buckets(t types.Tenant) (list []BucketName, err error) {
	v, err := x.view()
	if err != nil {
		return nil, err
	}
	stem := bucketKey(nil, t, nil, 0)[:1+tenantSize]
	from, more := []byte(nil), true
	for more && v.err == nil {
		from, more = v.merge(stem, nil, from, x.limits.Page, func(key, value []byte) bool {
			r := values{b: value}
			at := r.time()
			if text := key[len(stem) : len(key)-2]; !r.whole() {
				v.bad(key)
			} else if n := len(list); n == 0 || !bytes.Equal(list[n-1].Name, text) { // that of the creation comes first
				list = append(list, BucketName{bytes.Clone(text), at})
			}
			return v.err == nil
		})
	}
	return list, v.close()
}

// An UploadName is an upload in parts.
type UploadName struct {
	Name []byte
	ID   storage.UploadID
	At   types.Time // of its begin
}

// Uploads lists the uploads in progress of a bucket, in the order of their names, then of their IDs.
func (x *Indexer) Uploads(t types.Tenant, bucket types.NameHash) (list []UploadName, err error) {
	v, err := x.view()
	if err != nil {
		return nil, err
	}
	stem := uploadKey(nil, t, storage.UploadID{})[:1+tenantSize]
	from, more := []byte(nil), true
	for more && v.err == nil {
		from, more = v.merge(stem, nil, from, x.limits.Page, func(key, value []byte) bool {
			r := values{b: value}
			of, at, text := r.take(idSize), r.time(), r.text(storage.MaxName)
			if !r.whole() || len(key) != len(stem)+8+2 {
				v.bad(key)
			} else if types.NameHash(of) == bucket {
				id := storage.UploadID{LSN: types.LSN(binary.BigEndian.Uint64(key[len(stem):])), Index: binary.BigEndian.Uint16(key[len(stem)+8:])}
				list = append(list, UploadName{bytes.Clone(text), id, at})
			}
			return v.err == nil
		})
	}
	slices.SortStableFunc(list, func(a, b UploadName) int { return bytes.Compare(a.Name, b.Name) })
	return list, v.close()
}

// A recentRow is a row of a tail; the newest of a key counts.
type recentRow struct {
	key, value []byte
	order      uint64
}

// merge passes the rows of the tails and the tables whose keys are a stem, a prefix and more, that are not
// before from, in order and at most limit: the newest of each key, if that does not remove it. More
// reports that there may be others, from next on.
func (v *view) merge(stem, prefix, from []byte, limit int, each func(key, value []byte) bool) (next []byte, more bool) {
	whole := append(bytes.Clone(stem), prefix...)
	first := append(bytes.Clone(stem), from...)
	if bytes.Compare(first, whole) < 0 {
		first = whole
	}
	recent, end := v.recentRows(whole, first, 4*limit+16)
	got, stopped := 0, []byte(nil)
	emit := func(key, value []byte) bool {
		if end != nil && bytes.Compare(key, end) >= 0 || got == limit {
			stopped = bytes.Clone(key)
			return false
		}
		if len(value) > 0 {
			got++
			return each(key, value)
		}
		return true
	}
	at := 0
	before := func(key []byte) bool { // passes the recent rows before a key; nil: all
		for ; at < len(recent) && (key == nil || bytes.Compare(recent[at].key, key) < 0); at++ {
			if !emit(recent[at].key, recent[at].value) {
				return false
			}
		}
		return true
	}
	goes := true
	v.under(whole, first, func(key, value []byte) bool {
		if goes = before(key); !goes {
			return false
		}
		if at < len(recent) && bytes.Equal(recent[at].key, key) {
			return true // the newer one comes with the next key
		}
		goes = emit(key, value)
		return goes
	})
	if goes {
		goes = before(nil)
	}
	switch {
	case stopped != nil:
		return stopped[len(stem):], true
	case goes && end != nil:
		return bytes.Clone(end[len(stem):]), true
	}
	return nil, false
}

// recentRows returns the newest rows of the tails by key, of those that begin with whole and are not before
// first. If there are more than limit, it returns the first of them, and the key that ends them.
func (v *view) recentRows(whole, first []byte, limit int) (list []recentRow, end []byte) {
	narrow := func() {
		slices.SortFunc(list, func(a, b recentRow) int {
			if c := bytes.Compare(a.key, b.key); c != 0 {
				return c
			}
			return cmp.Compare(b.order, a.order)
		})
		list = slices.CompactFunc(list, func(a, b recentRow) bool { return bytes.Equal(a.key, b.key) })
		if len(list) > limit {
			end = list[limit].key
			list = list[:limit]
		}
	}
	for i, head := range v.heads(whole) {
		for n := head; n > 0; n = v.tails[i].row(n).prev {
			key, value := v.tails[i].at(n)
			if !bytes.HasPrefix(key, whole) || bytes.Compare(key, first) < 0 || end != nil && bytes.Compare(key, end) >= 0 {
				continue
			}
			if list = append(list, recentRow{key, value, uint64(i)<<32 | uint64(n)}); len(list) > 4*limit {
				narrow()
			}
		}
	}
	narrow()
	return list, end
}

// AwaitFrame waits until a frame is in the index; false if ctx ends first, too many wait already, or the
// index stops.
func (x *Indexer) AwaitFrame(ctx context.Context, lsn types.LSN) bool {
	for x.Mark().LSN < lsn {
		moved := x.join()
		if moved == nil {
			return false
		}
		if x.Mark().LSN >= lsn { // it came between the two looks
			x.leave()
			return true
		}
		select {
		case <-moved:
			x.leave()
		case <-ctx.Done():
			x.leave()
			return false
		}
	}
	return true
}

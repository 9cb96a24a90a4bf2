package storage

import (
	"errors"
	"fmt"
	"strconv"

	"macronode/core/table"
	"macronode/core/types"
)

// Usage is what a tenant or a bucket holds.
type Usage struct {
	Bytes   uint64
	Objects uint64
}

// within reports whether u is within a quota.
func (u Usage) within(quota Usage) bool {
	return u.Bytes <= quota.Bytes && u.Objects <= quota.Objects
}

func (u Usage) plus(v Usage) Usage  { return Usage{u.Bytes + v.Bytes, u.Objects + v.Objects} }
func (u Usage) minus(v Usage) Usage { return Usage{u.Bytes - v.Bytes, u.Objects - v.Objects} }

// HashInto mixes u into h.
func (u Usage) HashInto(h types.Hash64) types.Hash64 { return h.Mix(u.Bytes).Mix(u.Objects) }

// An Object is the row of an object.
type Object struct {
	Size uint64
	File File
	refs uint32 // entries and parts
}

// HashInto mixes o into h.
func (o Object) HashInto(h types.Hash64) types.Hash64 {
	return h.Mix(o.Size).Mix(uint64(o.File)).Mix(uint64(o.refs))
}

// An owner is a bucket, or a tenant: then its bucket is zero.
type owner struct {
	tenant types.Tenant
	bucket types.NameHash
}

func (o owner) HashInto(h types.Hash64) types.Hash64 { return o.bucket.HashInto(o.tenant.HashInto(h)) }

// owned is the row of an owner. An owner with the zero value has no row.
type owned struct {
	Usage          // of its entries, and bytes of the parts of its uploads
	uploads uint32 // in progress
	made    bool   // the bucket exists while it is empty
}

// HashInto mixes o into h.
func (o owned) HashInto(h types.Hash64) types.Hash64 {
	return o.Usage.HashInto(h).Mix(uint64(o.uploads)).MixBool(o.made)
}

// A place is the name of an object in a bucket.
type place struct {
	owner
	name types.NameHash
}

func (k place) HashInto(h types.Hash64) types.Hash64 { return k.name.HashInto(k.owner.HashInto(h)) }

// An Entry is an object in a bucket.
type Entry struct {
	Address Address
	At      types.Position // of its record; zero if the snapshot does not have it
}

// HashInto mixes e into h.
func (e Entry) HashInto(h types.Hash64) types.Hash64 { return mixPosition(e.Address.HashInto(h), e.At) }

func mixPosition(h types.Hash64, p types.Position) types.Hash64 {
	return h.Mix(uint64(p.LSN)).Mix(uint64(p.Index))
}

// An UploadID identifies an upload in parts: the position of the record that began it.
type UploadID types.Position

// HashInto mixes u into h.
func (u UploadID) HashInto(h types.Hash64) types.Hash64 { return mixPosition(h, types.Position(u)) }

// uploadIDLen is the length of an UploadID as text.
const uploadIDLen = 16

// String returns the text of u: 16 hexadecimal digits.
func (u UploadID) String() string {
	return fmt.Sprintf("%0*x", uploadIDLen, uint64(u.LSN)<<16|uint64(u.Index))
}

// ErrUploadID reports a text that is not the ID of an upload.
var ErrUploadID = errors.New("upload: the ID must be 16 hexadecimal digits")

// ParseUploadID returns the ID that s is the text of.
func ParseUploadID(s string) (u UploadID, err error) {
	n, err := strconv.ParseUint(s, 16, 64)
	u = UploadID{LSN: types.LSN(n >> 16), Index: uint16(n)}
	if err != nil || u.String() != s || u.LSN == 0 {
		return UploadID{}, ErrUploadID
	}
	return u, nil
}

// An Upload is the row of an upload in parts. Its row remains after the upload has ended, until all
// of its parts are removed.
type Upload struct {
	place    place
	Bytes    uint64 // of its parts
	Revision uint32 // counts the parts that were put
	high     uint16 // the highest number of a part
	next     uint16 // no part has a lower number, once the upload has ended
	ended    bool
	Begun    types.Time
}

// HashInto mixes u into h.
func (u Upload) HashInto(h types.Hash64) types.Hash64 {
	return u.place.HashInto(h).Mix(u.Bytes).Mix(uint64(u.Revision)).Mix(uint64(u.high)).Mix(uint64(u.next)).MixBool(u.ended).Mix(uint64(u.Begun))
}

// partKey names a part of an upload.
type partKey struct {
	upload UploadID
	number uint16
}

func (k partKey) HashInto(h types.Hash64) types.Hash64 {
	return k.upload.HashInto(h).Mix(uint64(k.number))
}

// A Part is the row of a part of an upload.
type Part struct {
	Address Address
	Size    uint64
	MD5     [16]byte
	At      types.Time
}

// HashInto mixes p into h.
func (p Part) HashInto(h types.Hash64) types.Hash64 {
	return types.NameHash(p.MD5).HashInto(p.Address.HashInto(h)).Mix(p.Size).Mix(uint64(p.At))
}

// get returns the row of k.
func get[K, V table.Hashable](p *table.Pool[K, V], k K) (v V, ok bool) {
	at, ok := p.Find(k)
	if ok {
		_, v = p.Row(at)
	}
	return v, ok
}

// set replaces the row of k. Without has, there is none afterwards.
func set[K, V table.Hashable](p *table.Pool[K, V], k K, v V, has bool) {
	if at, known := p.Find(k); known {
		p.Drop(at)
	}
	if has {
		p.Put(k, v)
	}
}

package storage

import (
	"encoding/binary"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The kinds of the plane's records. Their numbers are permanent.
const (
	kindStored        uint8 = iota // a bucket holds an object under its address, and did not hold it
	kindKept                       // a Put found that the bucket holds the object already; it may have replaced the file
	kindDeleted                    // a bucket does not hold an object under its address any more
	kindNamed                      // a bucket holds an object under a name; another one may have been replaced
	kindRemoved                    // a bucket does not hold an object under a name any more
	kindBucketCreated              // a bucket exists
	kindBucketDeleted              // a bucket does not exist
	kindUploadBegun                // an upload in parts began
	kindPartPut                    // an upload has a part
	kindCompleted                  // an upload became an object with a name
	kindAborted                    // an upload ended without an object
	kindPartsRemoved               // parts of an upload that has ended were removed
	numKinds
)

// hasNames reports whether records of a kind have the extended payload.
func hasNames(kind uint8) bool { return kind >= kindNamed }

// A movement is the payload of a record. All integers are little-endian. Every kind begins with
//
//	address 32 · size 8 · file 8 · tenant bytes 8 · tenant objects 8 · bucket bytes 8 · bucket objects 8
//
// The kinds up to kindDeleted continue with the name of the bucket, the others with
//
//	upload 8+2 · number 2 · upto 2 · MD5 16 · parts 2 · bucket 1+n · name 2+n · metadata
//
// A field that a kind does not use is zero.
type movement struct {
	kind        uint8
	address     Address
	size        uint64
	file        File  // of the object
	tenantUsage Usage // afterwards
	bucketUsage Usage
	bucket      []byte // empty if the node itself ended the upload

	upload UploadID
	number uint16 // of a part; kindPartsRemoved: the first one
	upto   uint16 // kindPartsRemoved: the number behind the last one
	etag   ETag
	name   []byte
	meta   []byte
}

const (
	fixedPayload = 32 + 6*8
	namedPayload = fixedPayload + 8 + 2 + 2 + 2 + 16 + 2 + 1 + 2
	maxPayload   = namedPayload + MaxBucket + MaxName + MaxMeta
	_            = uint(types.MaxPlaneRecord - (maxPayload + 128)) // the header of the record has at most 128 bytes
)

func (m *movement) append(b []byte) []byte {
	b = append(b, m.address[:]...)
	for _, n := range [...]uint64{m.size, uint64(m.file), m.tenantUsage.Bytes, m.tenantUsage.Objects, m.bucketUsage.Bytes, m.bucketUsage.Objects} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	if !hasNames(m.kind) {
		return append(b, m.bucket...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(m.upload.LSN))
	for _, n := range [...]uint16{m.upload.Index, m.number, m.upto} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = binary.LittleEndian.AppendUint16(append(b, m.etag.MD5[:]...), m.etag.Parts)
	b = append(append(b, byte(len(m.bucket))), m.bucket...)
	b = append(binary.LittleEndian.AppendUint16(b, uint16(len(m.name))), m.name...)
	return append(b, m.meta...)
}

// parse reads the payload of r. Its texts are views of it.
func parse(r *record.Record) (m movement, ok bool) {
	first := record.PlaneKind(types.PlaneStorage, 0)
	if r.Kind < first || r.Kind >= first+record.Kind(numKinds) || r.Problem != event.None || len(r.Payload) < fixedPayload {
		return m, false
	}
	m.kind = uint8(r.Kind - first)
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(r.Payload[32+8*i:]) }
	m.address, m.size, m.file = Address(r.Payload[:32]), n(0), File(n(1))
	m.tenantUsage, m.bucketUsage = Usage{n(2), n(3)}, Usage{n(4), n(5)}
	rest := r.Payload[fixedPayload:]
	if m.size > MaxObject {
		return m, false
	}
	if hasNames(m.kind) {
		return m, m.parseNames(rest)
	}
	m.bucket = rest
	return m, len(rest) > 0 && len(rest) <= MaxBucket
}

// parseNames reads the extended part of a payload.
func (m *movement) parseNames(b []byte) (ok bool) {
	if len(b) < namedPayload-fixedPayload {
		return false
	}
	n := func(i int) uint16 { return binary.LittleEndian.Uint16(b[8+2*i:]) }
	m.upload = UploadID{LSN: types.LSN(binary.LittleEndian.Uint64(b)), Index: n(0)}
	m.number, m.upto = n(1), n(2)
	m.etag = ETag{[16]byte(b[14:30]), binary.LittleEndian.Uint16(b[30:])}
	bucket := int(b[32])
	if b = b[33:]; bucket > MaxBucket || len(b) < bucket+2 {
		return false
	}
	m.bucket, b = b[:bucket:bucket], b[bucket:]
	name := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; name > MaxName || len(b) < name {
		return false
	}
	m.name, m.meta = b[:name:name], b[name:]
	return len(m.meta) <= MaxMeta && m.number <= MaxPart && m.upto <= MaxPart+1 && m.hasFields()
}

// hasFields reports whether m has the fields that its kind requires.
func (m *movement) hasFields() bool {
	upload, named, bucket := m.upload != UploadID{}, len(m.name) > 0, len(m.bucket) > 0
	switch m.kind {
	case kindNamed:
		return bucket && named && !upload && m.file != 0
	case kindRemoved:
		return bucket && named && !upload
	case kindCompleted:
		return bucket && named && upload && m.file != 0
	case kindBucketCreated, kindBucketDeleted:
		return bucket && !named && !upload
	case kindUploadBegun:
		return bucket && named && !upload
	case kindPartPut:
		return bucket && named && upload && m.number > 0 && m.file != 0
	case kindAborted:
		return upload && bucket == named
	default: // kindPartsRemoved
		return upload && m.number > 0 && m.number < m.upto
	}
}

// place returns the place of the object that m is about. The name of an object without one is the text
// of its address.
func (m *movement) place(t types.Tenant) place {
	k := place{owner: owner{t, digest.Name(m.bucket)}}
	if hasNames(m.kind) {
		k.name = digest.Name(m.name)
		return k
	}
	k.name = addressName(m.address)
	return k
}

// completesAddress reports whether an upload became an object that is stored under its address.
func (m *movement) completesAddress() bool {
	a, err := parseAddress(m.name)
	return m.kind == kindCompleted && err == nil && a == m.address
}

// addressName returns the name of an object that is stored under its address.
func addressName(a Address) types.NameHash {
	var text [AddressLen]byte
	b, _ := a.AppendText(text[:0])
	return digest.Name(b)
}

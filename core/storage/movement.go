package storage

import (
	"encoding/binary"
	"strconv"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// The kinds of the plane's records. Their numbers are permanent.
const (
	kindStored  uint8 = iota // a bucket holds an object that it did not hold
	kindKept                 // a Put found that the bucket holds the object already; it may have replaced the file
	kindDeleted              // a bucket does not hold an object any more
	numKinds
)

// A movement is the payload of a record of any kind. All integers are little-endian:
//
//	address 32 · size 8 · file 8 · tenant bytes 8 · tenant objects 8 · bucket bytes 8 · bucket objects 8 · bucket name
type movement struct {
	kind        uint8
	address     Address
	size        uint64
	file        File  // of the object
	tenantUsage Usage // afterwards
	bucketUsage Usage
	bucket      []byte
}

const (
	fixedPayload = 32 + 6*8
	maxPayload   = fixedPayload + MaxBucket
)

func (m *movement) append(b []byte) []byte {
	b = append(b, m.address[:]...)
	for _, n := range [...]uint64{m.size, uint64(m.file), m.tenantUsage.Bytes, m.tenantUsage.Objects, m.bucketUsage.Bytes, m.bucketUsage.Objects} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, m.bucket...)
}

// parse reads the payload of r.
func parse(r *record.Record) (m movement, ok bool) {
	b := r.Payload
	if len(b) <= fixedPayload || len(b) > maxPayload || r.Problem != event.None {
		return m, false
	}
	for m.kind = range numKinds {
		if r.Kind == record.PlaneKind(types.PlaneStorage, m.kind) {
			ok = true
			break
		}
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(b[32+8*i:]) }
	m.address, m.size, m.file = Address(b[:32]), n(0), File(n(1))
	m.tenantUsage, m.bucketUsage, m.bucket = Usage{n(2), n(3)}, Usage{n(4), n(5)}, b[fixedPayload:]
	return m, ok && m.size <= MaxObject
}

// owner is the bucket of m.
func (m *movement) owner(t types.Tenant) owner { return owner{t, digest.Name(m.bucket)} }

// The HTTP statuses of answers.
const (
	statusOK      = 200
	statusCreated = 201
)

// Render appends the answer of a record.
func (*Plane) Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	m, ok := parse(&r)
	if !ok {
		return to, 0, 0, receipt.ErrNoAnswer
	}
	to, _ = m.address.AppendText(append(to, `{"address":"`...))
	to = append(append(to, `","bucket":"`...), m.bucket...)
	to = strconv.AppendUint(append(to, `","size":"`...), m.size, 10)
	status = statusOK
	switch m.kind {
	case kindStored:
		status = statusCreated
		to = append(to, `","created":true}`...)
	case kindKept:
		to = append(to, `","created":false}`...)
	default:
		to = append(to, `","deleted":true}`...)
	}
	return to, status, r.Tenant, nil
}

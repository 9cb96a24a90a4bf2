package sim

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"macronode/core/record"
	"macronode/core/types"
)

// The kinds of the records of the storage plane, repeated here independently of core.
const (
	recordStored = iota
	recordKept
	recordDeleted
	recordNamed
	recordRemoved
	recordBucketCreated
	recordBucketDeleted
	recordUploadBegun
	recordPartPut
	recordCompleted
	recordAborted
	recordPartsRemoved
	recordKinds
)

// A storageRecord is a record of the storage plane.
type storageRecord struct {
	kind                  int
	content               string // text of the address
	size, file            uint64
	tenantUsage, bucketed usage // afterwards
	upload                types.Position
	number, upto          uint16
	bucket, name          string
}

// usage is a number of bytes and of objects.
type usage struct{ bytes, objects uint64 }

// readStorageRecord reads a record; ok is false if it belongs to another plane.
func readStorageRecord(r *record.Record) (s storageRecord, ok bool, err error) {
	first := record.PlaneKind(types.PlaneStorage, 0)
	if r.Kind < first || r.Kind >= first+recordKinds {
		return s, false, nil
	}
	b := r.Payload
	if len(b) < 80 {
		return s, true, fmt.Errorf("a payload of %d bytes", len(b))
	}
	n := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	s = storageRecord{kind: int(r.Kind - first), content: "b3:" + hex.EncodeToString(b[:32]), size: n(32), file: n(40),
		tenantUsage: usage{n(48), n(56)}, bucketed: usage{n(64), n(72)}}
	if s.kind < recordNamed {
		s.bucket, s.name = string(b[80:]), s.content
		return s, true, nil
	}
	if len(b) < 115 {
		return s, true, fmt.Errorf("a payload of %d bytes", len(b))
	}
	half := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	s.upload = types.Position{LSN: types.LSN(n(80)), Index: half(88)}
	s.number, s.upto = half(90), half(92)
	rest := b[113:]
	if int(b[112])+2 > len(rest) {
		return s, true, fmt.Errorf("a bucket of %d bytes", b[112])
	}
	s.bucket, rest = string(rest[:b[112]]), rest[b[112]:]
	name := int(binary.LittleEndian.Uint16(rest))
	if name > len(rest)-2 {
		return s, true, fmt.Errorf("a name of %d bytes", name)
	}
	s.name = string(rest[2 : 2+name])
	return s, true, nil
}

// isOfNode reports whether the node made the record by itself, because of the time.
func (s *storageRecord) isOfNode() bool {
	return s.kind == recordPartsRemoved || s.kind == recordAborted && s.bucket == ""
}

// text describes what the record does, without the state around it.
func (s *storageRecord) text() string {
	return fmt.Sprintf("kind %d of %s/%s, content %.9s, upload %v, part %d", s.kind, s.bucket, s.name, s.content, s.upload, s.number)
}

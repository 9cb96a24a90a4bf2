// Package checksum computes and checks the checksums of S3 objects.
//
//	headers ─► Parse ─► Expected ─► NewVerifier ─► Write … ─► Check(trailer) ─► nil or *Error
//	parts   ─► Composite or FullObject ─► checksum of a multipart upload
//
// The value of a checksum in headers and XML is its big-endian bytes in base64.
package checksum

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"
)

// Algorithm is a checksum algorithm of S3.
type Algorithm uint8

// The algorithms. None stands for an absent one.
const (
	None Algorithm = iota
	CRC32
	CRC32C
	CRC64NVME
	SHA1
	SHA256
)

// Algorithms lists all algorithms except None.
var Algorithms = []Algorithm{CRC32, CRC32C, CRC64NVME, SHA1, SHA256}

// names has the name of each algorithm in S3.
var names = [...]string{None: "", CRC32: "CRC32", CRC32C: "CRC32C", CRC64NVME: "CRC64NVME", SHA1: "SHA1", SHA256: "SHA256"}

// sizes has the bytes of a checksum of each algorithm.
var sizes = [...]int{None: 0, CRC32: crc32.Size, CRC32C: crc32.Size, CRC64NVME: crc64.Size, SHA1: sha1.Size, SHA256: sha256.Size}

// nvme is the polynomial of NVMe in reversed bit order.
const nvme = 0x9a6c9329ac4bc9b5

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvmeTable  = crc64.MakeTable(nvme)
)

// String returns the name in S3, such as CRC64NVME.
func (a Algorithm) String() string { return names[a] }

// Size returns the bytes of a checksum.
func (a Algorithm) Size() int { return sizes[a] }

// HasFullObject reports whether the checksums of parts combine to that of the whole object.
func (a Algorithm) HasFullObject() bool { return a == CRC32 || a == CRC32C || a == CRC64NVME }

// HasComposite reports whether S3 defines a checksum of the checksums of parts.
func (a Algorithm) HasComposite() bool { return a != None && a != CRC64NVME }

// ParseAlgorithm returns the algorithm with a name, in any case. ok is false for an unknown name.
func ParseAlgorithm(name string) (a Algorithm, ok bool) {
	for _, a := range Algorithms {
		if strings.EqualFold(name, names[a]) {
			return a, true
		}
	}
	return None, false
}

// New returns a hash of an algorithm. None has no hash: New panics.
func New(a Algorithm) hash.Hash {
	switch a {
	case CRC32:
		return crc32.NewIEEE()
	case CRC32C:
		return crc32.New(castagnoli)
	case CRC64NVME:
		return crc64.New(nvmeTable)
	case SHA1:
		return sha1.New()
	case SHA256:
		return sha256.New()
	case None:
	}
	panic(fmt.Sprintf("checksum: no algorithm %d", a))
}

// Encode returns the value of a checksum in headers and XML.
func Encode(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

// Decode reads the value of a checksum. ok is false if it is not base64 or does not have the length
// of the algorithm.
func Decode(a Algorithm, text string) (sum []byte, ok bool) { return decode(text, a.Size()) }

func decode(text string, size int) (sum []byte, ok bool) {
	if len(text) != base64.StdEncoding.EncodedLen(size) {
		return nil, false
	}
	sum, err := base64.StdEncoding.Strict().DecodeString(text) // skips line ends: then sum is shorter
	return sum, err == nil && len(sum) == size
}

// Type tells how the checksum of an object with parts is computed.
type Type uint8

// The types. NoType stands for an absent one.
const (
	NoType     Type = iota
	Composite       // checksum of the checksums of the parts
	FullObject      // checksum of the content
)

// String returns the value of the header x-amz-checksum-type.
func (t Type) String() string {
	return [...]string{NoType: "", Composite: "COMPOSITE", FullObject: "FULL_OBJECT"}[t]
}

// ParseType returns the type with a name. ok is false for an unknown name.
func ParseType(name string) (t Type, ok bool) {
	for _, t := range []Type{Composite, FullObject} {
		if name == t.String() {
			return t, true
		}
	}
	return NoType, false
}

// Names of headers, in lower case.
const (
	TypeHeader         = "x-amz-checksum-type"          // response: COMPOSITE or FULL_OBJECT
	AlgorithmHeader    = "x-amz-checksum-algorithm"     // algorithm of a new multipart upload
	SDKAlgorithmHeader = "x-amz-sdk-checksum-algorithm" // algorithm that the SDK used
	TrailerHeader      = "x-amz-trailer"                // names in the trailer
	ModeHeader         = "x-amz-checksum-mode"          // ENABLED: the response has the checksum
	headerPrefix       = "x-amz-checksum-"
)

// Header returns the header with the checksum in requests and responses, such as x-amz-checksum-crc32.
func (a Algorithm) Header() string { return headerPrefix + strings.ToLower(names[a]) }

// Error is a rejection with the error code of S3.
type Error struct {
	Code    string // error code of S3, such as BadDigest
	Status  int    // HTTP status
	Message string // text for people
}

// Error returns the code and the message.
func (e *Error) Error() string { return "checksum: " + e.Code + ": " + e.Message }

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

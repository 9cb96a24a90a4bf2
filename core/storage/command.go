package storage

import (
	"encoding/binary"
	"errors"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

// MaxObject is the size of the largest object: 5 GiB.
const MaxObject = 5 << 30

// MaxBucket is the length of the longest bucket name in bytes.
const MaxBucket = 63

// Why a command is invalid.
var (
	ErrBucket = errors.New("bucket: must be 3..63 of a-z 0-9 . -, and must begin and end with a letter or a digit")
	ErrSize   = errors.New("object: must have at most 5 GiB")
	ErrFile   = errors.New("object: names no file")
)

// CheckBucket returns why s is not the name of a bucket.
func CheckBucket[T ~string | ~[]byte](s T) error {
	if len(s) < 3 || len(s) > MaxBucket {
		return ErrBucket
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case (c == '-' || c == '.') && i > 0 && i < len(s)-1:
		default:
			return ErrBucket
		}
	}
	return nil
}

// Bucket returns the bucket with a name.
func Bucket(name string) types.Name {
	return types.Name{ID: digest.Name([]byte(name)), Text: []byte(name)}
}

// A File is the number of a file with the content of an object. Every upload has its own number, which
// is never used again: a file that no row names and no upload is writing is garbage.
type File uint64

// Put stores an object in a bucket. Its content is already durable in a file. A bucket that holds the
// object already keeps it: the reply then says that nothing was created.
//
// Put needs no idempotency key, because its address says what it stores.
type Put struct {
	command.Header
	Bucket  types.Name
	Address Address
	Size    uint64 // bytes
	File    File
	Replace bool // the file of the object, because it is lost or damaged
}

// Delete removes an object from a bucket. Its reply is NotFound if the bucket does not hold it.
type Delete struct {
	command.Header
	Bucket  types.Name
	Address Address
}

// Plane is the storage plane.
func (*Put) Plane() types.Plane    { return types.PlaneStorage }
func (*Delete) Plane() types.Plane { return types.PlaneStorage }

// ValidateFields returns why c is invalid.
func (c *Put) ValidateFields() error {
	switch {
	case len(c.Bucket.Text) == 0 || len(c.Bucket.Text) > MaxBucket:
		return ErrBucket
	case c.Size > MaxObject:
		return ErrSize
	case c.File == 0:
		return ErrFile
	}
	return nil
}

// ValidateFields returns why c is invalid.
func (c *Delete) ValidateFields() error {
	if len(c.Bucket.Text) == 0 || len(c.Bucket.Text) > MaxBucket {
		return ErrBucket
	}
	return nil
}

// Seal computes the digests of c, outside of the step.
func (c *Put) Seal() { c.Header.Hash = seal(&c.Header, c.Bucket, c.Address, kindStored, c.Size) }

// Seal computes the digests of c, outside of the step.
func (c *Delete) Seal() { c.Header.Hash = seal(&c.Header, c.Bucket, c.Address, kindDeleted, 0) }

// seal returns the digest of a request. The number of the file and Replace are not part of it:
// a retry uploads to another file.
func seal(h *command.Header, bucket types.Name, a Address, kind uint8, size uint64) types.RequestHash {
	h.Key.ID = digest.Name(h.Key.Text)
	b := append(append([]byte{kind}, a[:]...), bucket.Text...)
	return digest.RequestHash(binary.LittleEndian.AppendUint64(b, size))
}

package storage

import (
	"encoding/binary"
	"errors"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/types"
)

// Limits that no configuration changes.
const (
	MaxObject = 5 << 30 // bytes of an object
	MaxBucket = 63      // bytes of the name of a bucket
	MaxName   = 1024    // bytes of the name of an object
	MaxMeta   = 4 << 10 // bytes of the metadata of an object
	MaxPart   = 10_000  // the highest number of a part of an upload
)

// Why a command is invalid.
var (
	ErrBucket   = errors.New("bucket: must be 3..63 of a-z 0-9 . -, and must begin and end with a letter or a digit")
	ErrName     = errors.New("object: the name must have 1..1024 bytes; a name that is an address must be that of the content")
	ErrSize     = errors.New("object: must have at most 5 GiB")
	ErrFile     = errors.New("object: names no file")
	ErrMeta     = errors.New("object: the metadata must have at most 4 KiB")
	ErrPart     = errors.New("part: the number must be 1..10000")
	ErrOffset   = errors.New("part: one without Append has no offset")
	ErrNoUpload = errors.New("upload: names no upload")
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
func Bucket(name string) types.Name { return ObjectName(name) }

// ObjectName returns the name of an object in a bucket.
func ObjectName(name string) types.Name {
	return types.Name{ID: digest.Name([]byte(name)), Text: []byte(name)}
}

// A File is the number of a file with the content of an object. Every upload has its own number, which
// is never used again: a file that no row names and no upload is writing is garbage.
type File uint64

// An ETag is the entity tag of an object with a name: the MD5 digest of its content, or of the
// digests of its parts.
type ETag struct {
	MD5   [16]byte
	Parts uint16 // 0: the object was stored in one piece
}

// A Match is a condition on the entry that a Put replaces.
type Match struct {
	Absent bool           // there is no object with the name
	At     types.Position // not zero: the object was stored by the record at this position
}

// Put stores an object in a bucket. Its content is already durable in a file.
//
// Without a name the object is stored under the text of its address, and the bucket is made if it does
// not exist. A bucket that holds the object already keeps it: the reply then says that nothing was
// created. With a name, the bucket must exist (NotFound), and an object with that name is replaced.
// PreconditionFailed reports that Match does not hold.
//
// A Put with an Upload completes it: all its parts are removed. InProgress reports that a part
// was put after Revision.
//
// Put needs no idempotency key: a retry stores the same content again.
type Put struct {
	command.Header
	Bucket  types.Name
	Name    types.Name // of the object; no text: the text of its address
	Address Address
	Size    uint64 // bytes
	File    File   // 0: that of an object that exists; NotFound if it does not
	Replace bool   // the file of the object, because it is lost or damaged

	ETag  ETag
	Meta  []byte // of an object with a name; the adapter encodes it
	Match Match

	Upload   UploadID // 0: none
	Revision uint32   // of the upload, when its parts were read
}

// Delete removes an object from a bucket. Its reply is NotFound if the bucket does not hold it.
type Delete struct {
	command.Header
	Bucket  types.Name
	Name    types.Name // no text: the text of Address
	Address Address    // of an object without a name
}

// CreateBucket makes a bucket that exists while it is empty. Its reply is PreconditionFailed if it
// exists already.
type CreateBucket struct {
	command.Header
	Bucket types.Name
}

// DeleteBucket removes an empty bucket. Its reply is NotFound if there is none, and
// PreconditionFailed if it holds an object or has an upload in progress.
type DeleteBucket struct {
	command.Header
	Bucket types.Name
}

// BeginUpload begins an object that is stored in parts. The position of its record is the ID of the
// upload. Its reply is NotFound if the bucket does not exist.
//
// BeginUpload needs no idempotency key: without one, a retry begins another upload.
//
// An upload whose name is an address becomes only the object with that address.
type BeginUpload struct {
	command.Header
	Bucket types.Name
	Name   types.Name
	Meta   []byte // of the object
}

// PutPart stores a part of an upload, whose content is already durable in a file. A part with the same
// number is replaced. Its reply is NotFound if there is no such upload of that name.
//
// With Append it continues the upload: UploadMoved reports that the upload does not have Offset bytes, or a part with
// the number or a higher one. So of several writers at one offset one succeeds.
type PutPart struct {
	command.Header
	Bucket  types.Name
	Name    types.Name
	Upload  UploadID
	Number  uint16
	Address Address
	Size    uint64
	File    File // 0: that of an object that exists; NotFound if it does not
	Replace bool
	ETag    ETag

	Append bool
	Offset uint64 // bytes of the parts before, with Append
}

// AbortUpload ends an upload and removes its parts. Its reply is NotFound if there is no such upload of
// that name.
type AbortUpload struct {
	command.Header
	Bucket types.Name
	Name   types.Name
	Upload UploadID
}

// Plane is the storage plane.
func (*Put) Plane() types.Plane          { return types.PlaneStorage }
func (*Delete) Plane() types.Plane       { return types.PlaneStorage }
func (*CreateBucket) Plane() types.Plane { return types.PlaneStorage }
func (*DeleteBucket) Plane() types.Plane { return types.PlaneStorage }
func (*BeginUpload) Plane() types.Plane  { return types.PlaneStorage }
func (*PutPart) Plane() types.Plane      { return types.PlaneStorage }
func (*AbortUpload) Plane() types.Plane  { return types.PlaneStorage }

// ValidateFields returns why c is invalid.
func (c *Put) ValidateFields() error {
	named := len(c.Name.Text) > 0
	switch {
	case !fits(c.Bucket, MaxBucket):
		return ErrBucket
	case c.Size > MaxObject:
		return ErrSize
	case c.File == 0 && !named:
		return ErrFile
	case named && !fits(c.Name, MaxName), !named && (len(c.Meta) > 0 || c.Upload != UploadID{} || c.Match != Match{}):
		return ErrName
	case len(c.Meta) > MaxMeta:
		return ErrMeta
	}
	if a, err := parseAddress(c.Name.Text); err == nil && a != c.Address {
		return ErrName
	}
	return nil
}

// ValidateFields returns why c is invalid.
func (c *Delete) ValidateFields() error {
	switch {
	case !fits(c.Bucket, MaxBucket):
		return ErrBucket
	case len(c.Name.Text) > MaxName:
		return ErrName
	}
	return nil
}

// ValidateFields returns why c is invalid.
func (c *CreateBucket) ValidateFields() error { return checkBucketText(c.Bucket) }

// ValidateFields returns why c is invalid.
func (c *DeleteBucket) ValidateFields() error { return checkBucketText(c.Bucket) }

// ValidateFields returns why c is invalid.
func (c *BeginUpload) ValidateFields() error {
	if len(c.Meta) > MaxMeta {
		return ErrMeta
	}
	return checkNames(c.Bucket, c.Name)
}

// ValidateFields returns why c is invalid.
func (c *PutPart) ValidateFields() error {
	switch {
	case c.Size > MaxObject:
		return ErrSize
	case c.Number == 0 || c.Number > MaxPart:
		return ErrPart
	case c.Upload == UploadID{}:
		return ErrNoUpload
	case !c.Append && c.Offset > 0:
		return ErrOffset
	case c.Offset > MaxObject-c.Size:
		return ErrSize
	}
	return checkNames(c.Bucket, c.Name)
}

// ValidateFields returns why c is invalid.
func (c *AbortUpload) ValidateFields() error {
	if (c.Upload == UploadID{}) {
		return ErrNoUpload
	}
	return checkNames(c.Bucket, c.Name)
}

func checkNames(bucket, name types.Name) error {
	if !fits(name, MaxName) {
		return ErrName
	}
	return checkBucketText(bucket)
}

func checkBucketText(bucket types.Name) error {
	if !fits(bucket, MaxBucket) {
		return ErrBucket
	}
	return nil
}

// fits reports whether a name has text of at most limit bytes.
func fits(n types.Name, limit int) bool { return len(n.Text) > 0 && len(n.Text) <= limit }

// Seal computes the digests of c, outside of the step. The number of the file and Replace are not part
// of the request: a retry uploads to another file.
func (c *Put) Seal() {
	c.Hash = seal(&c.Header, kindStored, c.Address, c.Size, c.Bucket, c.Name)
}

// Seal computes the digests of c, outside of the step.
func (c *BeginUpload) Seal() {
	c.Hash = seal(&c.Header, kindUploadBegun, Address{}, 0, c.Bucket, c.Name)
}

// Seal computes the digests of c, outside of the step.
func (c *Delete) Seal() { c.Hash = seal(&c.Header, kindDeleted, c.Address, 0, c.Bucket, c.Name) }

// seal returns the digest of a request. Names are separated by a zero byte; a request without the
// name of an object has the digest that it has always had.
func seal(h *command.Header, kind uint8, a Address, size uint64, bucket, name types.Name) types.RequestHash {
	h.Key.ID = digest.Name(h.Key.Text)
	b := append(append([]byte{kind}, a[:]...), bucket.Text...)
	if len(name.Text) > 0 {
		b = append(append(b, 0), name.Text...)
	}
	return digest.RequestHash(binary.LittleEndian.AppendUint64(b, size))
}

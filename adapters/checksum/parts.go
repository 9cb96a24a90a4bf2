package checksum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"strconv"
	"strings"
)

// MaxParts is the number of parts of a multipart upload.
const MaxParts = 10_000

// ErrParts reports parts that cannot be combined: none, too many, a checksum of another length or a
// negative size, or an algorithm that does not have the type.
var ErrParts = errors.New("checksum: the parts cannot be combined")

// Part is the checksum of one part of a multipart upload.
type Part struct {
	Sum  []byte
	Size int64 // bytes of the part
}

func checkParts(a Algorithm, parts []Part) error {
	if len(parts) == 0 || len(parts) > MaxParts {
		return fmt.Errorf("%w: %d parts", ErrParts, len(parts))
	}
	for i := range parts {
		if len(parts[i].Sum) != a.Size() || parts[i].Size < 0 {
			return fmt.Errorf("%w: part %d has %d bytes of %s and size %d", ErrParts, i+1, len(parts[i].Sum), a, parts[i].Size)
		}
	}
	return nil
}

// CombineComposite returns the checksum of the concatenated checksums of all parts, in their order.
// It returns an error that wraps ErrParts. The sizes of the parts are not used.
func CombineComposite(a Algorithm, parts []Part) ([]byte, error) {
	if !a.HasComposite() {
		return nil, fmt.Errorf("%w: %s has no composite checksum", ErrParts, a)
	}
	if err := checkParts(a, parts); err != nil {
		return nil, err
	}
	h := New(a)
	for i := range parts {
		h.Write(parts[i].Sum)
	}
	return h.Sum(nil), nil
}

// EncodeComposite returns the value of a composite checksum: "<base64>-<number of parts>".
func EncodeComposite(sum []byte, parts int) string { return Encode(sum) + "-" + strconv.Itoa(parts) }

// DecodeComposite reads the value of a composite checksum. ok is false if it is malformed, has the
// wrong length, or the number of parts is not from 1 to MaxParts.
func DecodeComposite(a Algorithm, text string) (sum []byte, parts int, ok bool) {
	value, count, found := strings.Cut(text, "-")
	n, err := strconv.ParseUint(count, 10, 16)
	if !found || err != nil || n < 1 || n > MaxParts || strconv.FormatUint(n, 10) != count {
		return nil, 0, false
	}
	sum, ok = Decode(a, value)
	return sum, int(n), ok
}

// CombineFullObject returns the checksum of the whole content from those of its parts, in their
// order. Only the CRCs have it. It returns an error that wraps ErrParts.
func CombineFullObject(a Algorithm, parts []Part) ([]byte, error) {
	if !a.HasFullObject() {
		return nil, fmt.Errorf("%w: %s has no full-object checksum", ErrParts, a)
	}
	if err := checkParts(a, parts); err != nil {
		return nil, err
	}
	f := fieldOf(a)
	sum, size, shift := f.load(parts[0].Sum), int64(0), f.one()
	for _, p := range parts[1:] {
		if p.Size != size { // most parts have the same size
			size, shift = p.Size, f.shift(p.Size)
		}
		sum = f.multiply(sum, shift) ^ f.load(p.Sum)
	}
	return f.store(sum), nil
}

// field computes with polynomials over GF(2) modulo that of a CRC. Bits are reversed: the highest of
// the width bits is the coefficient of x^0.
//
// The CRC of a followed by b is crc(a)·x^(8·len(b)) + crc(b): the initial and final inversions of both
// cancel out.
type field struct {
	polynomial uint64
	width      int // bits: 32 or 64
}

func fieldOf(a Algorithm) field {
	switch a {
	case CRC32:
		return field{crc32.IEEE, 32}
	case CRC32C:
		return field{crc32.Castagnoli, 32}
	case CRC64NVME:
		return field{nvme, 64}
	case None, SHA1, SHA256:
	}
	panic("checksum: not a CRC: " + a.String())
}

// one is the polynomial 1.
func (f field) one() uint64 { return 1 << (f.width - 1) }

// multiply returns a·b.
func (f field) multiply(a, b uint64) (product uint64) {
	for bit := f.one(); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		odd := b & 1
		b = b>>1 ^ f.polynomial&-odd
	}
	return product
}

// shift returns x^(8·size) by repeated squaring.
func (f field) shift(size int64) uint64 {
	result, power := f.one(), f.one()>>8 // power is x^(8·2^i)
	for n := uint64(size); n != 0; n >>= 1 {
		if n&1 != 0 {
			result = f.multiply(result, power)
		}
		power = f.multiply(power, power)
	}
	return result
}

func (f field) load(sum []byte) uint64 {
	if f.width == 32 {
		return uint64(binary.BigEndian.Uint32(sum))
	}
	return binary.BigEndian.Uint64(sum)
}

func (f field) store(sum uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, bits.RotateLeft64(sum, 64-f.width))[:f.width/8]
}

// Package coding divides an object into the shards of a Reed–Solomon code:
//
//	object:   group 0, group 1, …           each of digest.Group bytes, the last one may be shorter
//	stripe s: groups s·Data … s·Data+Data-1, and as many bytes of each parity shard as its longest group has
//	shard i:  i < Data: group s·Data+i of each stripe s; else: block s of parity for each stripe s, with its checksum
//
// Any Data shards of a stripe give the other ones. The shards of an object are numbered: first those of data, then those of parity.
package coding

import (
	"encoding/binary"
	"strconv"
	"strings"

	"macronode/core/digest"
	"macronode/core/placement"
)

// MaxShards is the largest number of shards of an object: each is in a provider of its own.
const MaxShards = placement.MaxProviders

// ChecksumLen is the number of bytes behind each block of parity.
const ChecksumLen = 32

// A Scheme is how many shards an object has. The zero value is none: the object has copies.
type Scheme struct{ Data, Parity uint8 }

// Parse reads a scheme such as 6+3. It has at least two shards of data, one of parity, and at most MaxShards.
func Parse(text string) (s Scheme, ok bool) {
	data, parity, _ := strings.Cut(text, "+")
	d, err := strconv.ParseUint(data, 10, 8)
	p, failed := strconv.ParseUint(parity, 10, 8)
	s = Scheme{uint8(d), uint8(p)}
	if err != nil || failed != nil || !s.valid() || s.String() != text {
		return Scheme{}, false
	}
	return s, true
}

func (s Scheme) valid() bool {
	return s.Data >= 2 && s.Parity >= 1 && s.Shards() <= MaxShards
}

// String returns s as Parse reads it.
func (s Scheme) String() string {
	return strconv.Itoa(int(s.Data)) + "+" + strconv.Itoa(int(s.Parity))
}

// IsSet reports whether s has shards.
func (s Scheme) IsSet() bool { return s.Data > 0 }

// Shards returns the number of shards of an object.
func (s Scheme) Shards() int { return int(s.Data) + int(s.Parity) }

// IsData reports whether a shard has groups of the object.
func (s Scheme) IsData(shard int) bool { return shard < int(s.Data) }

// Stripe returns the most bytes of an object in one stripe.
func (s Scheme) Stripe() uint64 { return uint64(s.Data) * digest.Group }

// Applies reports whether an object of a size has shards: it is larger than a stripe.
func (s Scheme) Applies(size uint64) bool { return s.IsSet() && size > s.Stripe() }

// Stripes returns the number of stripes of an object.
func (s Scheme) Stripes(size uint64) uint64 { return (size + s.Stripe() - 1) / s.Stripe() }

// Groups returns the number of groups in a stripe.
func (s Scheme) Groups(size, stripe uint64) int {
	return int(min(uint64(s.Data), digest.Groups(size)-stripe*uint64(s.Data)))
}

// BlockLen returns how many bytes of parity a stripe has in each parity shard, without the checksum.
func (s Scheme) BlockLen(size, stripe uint64) int {
	return int(min(digest.Group, size-stripe*s.Stripe()))
}

// At returns where a stripe begins in the file of a shard, and how many bytes it has there, with the checksum of parity.
func (s Scheme) At(size, stripe uint64, shard int) (off uint64, length int) {
	if !s.IsData(shard) {
		return stripe * (digest.Group + ChecksumLen), s.BlockLen(size, stripe) + ChecksumLen
	}
	begin := min(size, (stripe*uint64(s.Data)+uint64(shard))*digest.Group)
	return stripe * digest.Group, int(min(digest.Group, size-begin))
}

// ShardLen returns the number of bytes of a shard, without the nodes of the hash tree.
func (s Scheme) ShardLen(size uint64, shard int) uint64 {
	off, length := s.At(size, s.Stripes(size)-1, shard)
	return off + uint64(length)
}

// Checksum returns the checksum of a block of parity. It says of which upload, shard and stripe the block is.
func (s Scheme) Checksum(file, stripe uint64, shard int, block []byte) [ChecksumLen]byte {
	sum := digest.Sum(block)
	var of [ChecksumLen + 19]byte
	n := copy(of[:], sum[:])
	binary.LittleEndian.PutUint64(of[n:], file)
	binary.LittleEndian.PutUint64(of[n+8:], stripe)
	of[n+16], of[n+17], of[n+18] = s.Data, s.Parity, uint8(shard)
	return digest.Sum(of[:])
}

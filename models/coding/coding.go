// Package coding is the reference model of shards: what each file of an object with a Reed–Solomon code contains, but for the nodes behind
// it. It interpolates polynomials, byte by byte, and shares no code with adapters/erasure and core/coding.
package coding

import "encoding/binary"

// group is the number of bytes in a group.
const group = 64 << 10

// A Hash returns the digest of some bytes.
type Hash func([]byte) [32]byte

// An Object is a content that is divided into shards. The first shards have the data, the others the parity.
type Object struct {
	data, parity int
	hash         Hash
	stripes      []stripe
}

// A stripe has what each shard has of it.
type stripe struct {
	blocks [][]byte
	sums   [][32]byte // of the blocks of parity
}

// New divides a content.
func New(content []byte, data, parity int, hash Hash) *Object {
	o := &Object{data: data, parity: parity, hash: hash}
	for len(content) > 0 {
		part := content[:min(len(content), data*group)]
		content = content[len(part):]
		var s stripe
		for i := range data {
			from, to := min(len(part), i*group), min(len(part), (i+1)*group)
			s.blocks = append(s.blocks, part[from:to])
		}
		for i := range parity {
			s.blocks = append(s.blocks, Parity(data+i, s.blocks[:data]))
			s.sums = append(s.sums, hash(s.blocks[data+i]))
		}
		o.stripes = append(o.stripes, s)
	}
	return o
}

// Shards returns the number of shards, Needed how many of them give the others, and Stripes the number of stripes.
func (o *Object) Shards() int  { return o.data + o.parity }
func (o *Object) Needed() int  { return o.data }
func (o *Object) Stripes() int { return len(o.stripes) }

// Block returns what a shard has of a stripe. file is the number of the upload.
func (o *Object) Block(shard, stripe int, file uint64) (block, checksum []byte) {
	s := &o.stripes[stripe]
	if shard < o.data {
		return s.blocks[shard], nil
	}
	of := binary.LittleEndian.AppendUint64(s.sums[shard-o.data][:], file)
	of = binary.LittleEndian.AppendUint64(of, uint64(stripe))
	sum := o.hash(append(of, byte(o.data), byte(o.parity), byte(shard)))
	return s.blocks[shard], sum[:]
}

// File returns the content of the file of a shard. file is the number of the upload.
func (o *Object) File(shard int, file uint64) (all []byte) {
	for i := range o.stripes {
		block, checksum := o.Block(shard, i, file)
		all = append(append(all, block...), checksum...)
	}
	return all
}

// Parity returns the block of a shard of parity. At each place it has the value at the number of the shard of the polynomial through the points
// (0, data[0]), (1, data[1]), … A short block of data ends with zeros.
func Parity(shard int, data [][]byte) []byte {
	sum := make([]byte, len(data[0]))
	for i, block := range data {
		weight := byte(1)
		for j := range data {
			if i != j {
				weight = times(times(weight, byte(shard^j)), inverse(byte(i^j)))
			}
		}
		var products [256]byte
		for b := range products {
			products[b] = times(weight, byte(b))
		}
		for at, b := range block {
			sum[at] ^= products[b]
		}
	}
	return sum
}

// times multiplies in GF(2^8) with the polynomial x^8+x^4+x^3+x^2+1.
func times(a, b byte) (sum byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			sum ^= a
		}
		carry := a >> 7
		a = a<<1 ^ carry*0x1d
	}
	return sum
}

// inverse returns 1/a.
func inverse(a byte) byte {
	for b := range 256 {
		if times(a, byte(b)) == 1 {
			return byte(b)
		}
	}
	panic("0 has no inverse")
}

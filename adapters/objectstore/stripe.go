package objectstore

import (
	"sync"

	"macronode/adapters/erasure"
	"macronode/core/coding"
	"macronode/core/digest"
)

// stripe is the memory of one stripe: a group or a block of each shard.
type stripe struct {
	scheme coding.Scheme
	full   int // groups of an upload that are complete, besides the one that is filled
	memory []byte
	shards [coding.MaxShards][]byte // what each shard has; an empty one is missing
}

// shardMemory is the memory of one shard in a stripe: a group, or a block with its checksum. Each begins at a multiple of 64 bytes.
const shardMemory = digest.Group + 2*coding.ChecksumLen

// StripeBytes returns the memory of one stripe.
func StripeBytes(s coding.Scheme) int64 { return int64(s.Shards()) * shardMemory }

// stripes are those that are not in use.
var stripes = sync.Pool{New: func() any { return new(stripe) }}

func newStripe(s coding.Scheme) *stripe {
	t := stripes.Get().(*stripe)
	if need := int(StripeBytes(s)); len(t.memory) < need {
		t.memory = make([]byte, need)
	}
	t.scheme, t.full = s, 0
	return t
}

func (t *stripe) free() { stripes.Put(t) }

// group returns the memory of a group or a block.
func (t *stripe) group(shard int) []byte {
	return t.memory[shard*shardMemory:][:digest.Group:digest.Group]
}

// withChecksum returns the memory of a block of parity and its checksum.
func (t *stripe) withChecksum(shard, block int) []byte {
	return t.memory[shard*shardMemory:][: block+coding.ChecksumLen : shardMemory]
}

// setData sets the bytes that a data shard has. What it has less than the block of parity counts as zeros.
func (t *stripe) setData(shard, length, block int) {
	t.shards[shard] = t.group(shard)[:block]
	clear(t.shards[shard][length:])
}

// encode computes the parity of a stripe whose data is set, and its checksums.
func (t *stripe) encode(code *erasure.Codec, file, number uint64) error {
	block := len(t.shards[0])
	for i := int(t.scheme.Data); i < t.scheme.Shards(); i++ {
		t.shards[i] = t.group(i)[:block]
	}
	if err := code.Encode(t.shards[:t.scheme.Shards()]); err != nil {
		return err
	}
	for i := int(t.scheme.Data); i < t.scheme.Shards(); i++ {
		sum := t.scheme.Checksum(file, number, i, t.shards[i])
		copy(t.withChecksum(i, block)[block:], sum[:])
	}
	return nil
}

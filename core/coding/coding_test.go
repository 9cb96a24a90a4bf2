package coding_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/coding"
	"macronode/core/digest"
)

// TestParse: a scheme has one spelling, at least two shards of data and one of parity, and at most one shard for each provider.
func TestParse(t *testing.T) {
	for text, want := range map[string]coding.Scheme{"6+3": {Data: 6, Parity: 3}, "2+1": {Data: 2, Parity: 1}, "10+6": {Data: 10, Parity: 6}} {
		if s, ok := coding.Parse(text); !ok || s != want || s.String() != text {
			t.Errorf("%s: %v, %v", text, s, ok)
		}
	}
	for _, text := range []string{"", "6", "6+", "+3", "6+0", "1+2", "0+0", "06+3", "6+3 ", "6+3+1", "6-3", "11+6", "256+1", "+6+3"} {
		if s, ok := coding.Parse(text); ok || s.IsSet() {
			t.Errorf("%q is %v", text, s)
		}
	}
}

func drawScheme(t *rapid.T) coding.Scheme {
	data := rapid.IntRange(2, coding.MaxShards-1).Draw(t, "data")
	return coding.Scheme{Data: uint8(data), Parity: uint8(rapid.IntRange(1, coding.MaxShards-data).Draw(t, "parity"))}
}

// TestShardsHaveEachByteOnce: the groups of the data shards are those of the object, each file is read without gaps, and a block of parity is as long
// as the longest group of its stripe.
func TestShardsHaveEachByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScheme(t)
		size := s.Stripe() + uint64(rapid.IntRange(1, 3*int(s.Stripe())).Draw(t, "more"))
		if rapid.Bool().Draw(t, "whole groups") {
			size = max(s.Stripe()+digest.Group, size/digest.Group*digest.Group)
		}
		var ends [coding.MaxShards]uint64
		sum, groups := uint64(0), 0
		for stripe := range s.Stripes(size) {
			longest := 0
			groups += s.Groups(size, stripe)
			for shard := range s.Shards() {
				off, length := s.At(size, stripe, shard)
				if length > 0 && off != ends[shard] {
					t.Fatalf("shard %d: stripe %d begins at %d, want %d", shard, stripe, off, ends[shard])
				}
				ends[shard] += uint64(length)
				if s.IsData(shard) {
					if has := shard < s.Groups(size, stripe); has != (length > 0) {
						t.Fatalf("stripe %d of shard %d has %d bytes", stripe, shard, length)
					}
					sum += uint64(length)
					longest = max(longest, length)
				} else if length != longest+coding.ChecksumLen || s.BlockLen(size, stripe) != longest {
					t.Fatalf("stripe %d has %d bytes of parity, want %d", stripe, length, longest)
				}
			}
		}
		if sum != size || uint64(groups) != digest.Groups(size) {
			t.Fatalf("the shards have %d bytes of %d in %d groups", sum, size, groups)
		}
		for shard := range s.Shards() {
			if got := s.ShardLen(size, shard); got != ends[shard] {
				t.Fatalf("shard %d has %d bytes, want %d", shard, got, ends[shard])
			}
		}
	})
}

// TestObjectsOfOneStripeHaveCopies: an object that fits into a stripe is not divided.
func TestObjectsOfOneStripeHaveCopies(t *testing.T) {
	s := coding.Scheme{Data: 6, Parity: 3}
	if s.Applies(6*digest.Group) || !s.Applies(6*digest.Group+1) || (coding.Scheme{}).Applies(1<<40) {
		t.Error("the limit is not one stripe")
	}
}

// TestChecksumNamesItsBlock: another upload, stripe, shard, scheme or content has another checksum.
func TestChecksumNamesItsBlock(t *testing.T) {
	s, block := coding.Scheme{Data: 6, Parity: 3}, []byte("parity")
	seen := map[[coding.ChecksumLen]byte]int{}
	for i, sum := range [][coding.ChecksumLen]byte{
		s.Checksum(1, 2, 6, block), s.Checksum(3, 2, 6, block), s.Checksum(1, 3, 6, block), s.Checksum(1, 2, 7, block),
		coding.Scheme{Data: 6, Parity: 2}.Checksum(1, 2, 6, block), coding.Scheme{Data: 5, Parity: 3}.Checksum(1, 2, 6, block), s.Checksum(1, 2, 6, []byte("Parity")), s.Checksum(1, 2, 6, nil),
	} {
		if before, again := seen[sum]; again {
			t.Errorf("%d and %d have one checksum", before, i)
		}
		seen[sum] = i
	}
	if s.Checksum(1, 2, 6, block) != s.Checksum(1, 2, 6, []byte("parity")) {
		t.Error("a checksum is not a function")
	}
}

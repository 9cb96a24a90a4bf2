package digest_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
)

// tree returns the digest and the nodes of an object.
func tree(data []byte) (sum digest.Value, nodes [][digest.NodeLen]byte) {
	var t digest.Tree
	keep := func(n [digest.NodeLen]byte) { nodes = append(nodes, n) }
	for part := range slices.Chunk(data, digest.Group) {
		t.Add(part, keep)
	}
	return t.Sum(keep), nodes
}

func random(size int, seed uint64) []byte {
	data, r := make([]byte, size), rand.New(rand.NewPCG(seed, 1))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// sizes are the sizes at which a tree changes its shape.
func sizes() []int {
	const g = digest.Group
	return []int{0, 1, 1023, 1024, 1025, 16 << 10, 16<<10 + 1, g - 1, g, g + 1, 2 * g, 2*g + 1, 3 * g, 4*g - 1, 4 * g, 4*g + 1, 5*g + 7, 7 * g, 8*g + 1, 13*g + 999}
}

// TestTreeIsBLAKE3 compares the digest with another implementation.
func TestTreeIsBLAKE3(t *testing.T) {
	for _, size := range sizes() {
		data := random(size, 1)
		sum, nodes := tree(data)
		if sum != digest.Sum(data) {
			t.Errorf("%d bytes: %x, want %x", size, sum, digest.Sum(data))
		}
		if groups := digest.Groups(uint64(size)); uint64(len(nodes)) != groups-1 {
			t.Errorf("%d bytes: %d nodes of %d groups", size, len(nodes), groups)
		}
	}
}

var errBad = errors.New("a group that does not belong to the object")

// read verifies a range of data and returns its groups.
func read(r digest.Range, data []byte, nodes [][digest.NodeLen]byte) (got []byte, err error) {
	ok, err := r.Verify(func(place uint64, n *[digest.NodeLen]byte) error {
		*n = nodes[place]
		return nil
	}, func(i uint64, valid func([]byte) bool) error {
		part := data[min(i*digest.Group, uint64(len(data))):min((i+1)*digest.Group, uint64(len(data)))]
		if !valid(part) {
			return errBad
		}
		got = append(got, part...)
		return nil
	})
	if !ok {
		err = errBad
	}
	return got, err
}

// TestRangesAreVerified reads ranges of objects of all shapes, whole and with one bit changed somewhere.
func TestRangesAreVerified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom(sizes()).Draw(t, "size")
		data := random(size, 2)
		sum, nodes := tree(data)
		last := digest.Groups(uint64(size)) - 1
		r := digest.Range{Digest: sum, Size: uint64(size)}
		r.First = rapid.Uint64Range(0, last).Draw(t, "first")
		r.Last = rapid.Uint64Range(r.First, last).Draw(t, "last")
		want := data[r.First*digest.Group : min((r.Last+1)*digest.Group, uint64(size))]
		if got, err := read(r, data, nodes); err != nil || string(got) != string(want) {
			t.Fatalf("groups %d to %d of %d bytes: %d bytes, %v", r.First, r.Last, size, len(got), err)
		}
		if size == 0 {
			return
		}
		spoilt := slices.Clone(data)
		at := rapid.IntRange(0, size-1).Draw(t, "byte")
		spoilt[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		group := uint64(at) / digest.Group
		if _, err := read(r, spoilt, nodes); (err != nil) != (r.First <= group && group <= r.Last) {
			t.Fatalf("groups %d to %d, a bit of group %d changed: %v", r.First, r.Last, group, err)
		}
		longer := digest.Range{Digest: sum, Size: uint64(size) + 1, First: last, Last: last}
		if longer.Size <= (last+1)*digest.Group {
			if _, err := read(longer, append(slices.Clone(data), 0), nodes); err == nil {
				t.Fatal("a byte more is the object as well")
			}
		}
	})
}

// TestNodesAreVerified changes one bit of each node: the whole object cannot be read.
func TestNodesAreVerified(t *testing.T) {
	data := random(5*digest.Group+7, 3)
	sum, nodes := tree(data)
	r := digest.Range{Digest: sum, Size: uint64(len(data)), Last: digest.Groups(uint64(len(data))) - 1}
	for i := range nodes {
		for _, at := range []int{0, 31, 32, 63} {
			spoilt := slices.Clone(nodes)
			spoilt[i][at] ^= 4
			if _, err := read(r, data, spoilt); err == nil {
				t.Errorf("node %d may have another byte %d", i, at)
			}
		}
	}
}

func BenchmarkTree(b *testing.B) {
	data := random(8<<20, 1)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		tree(data)
	}
}

func BenchmarkSum(b *testing.B) {
	data := random(8<<20, 1)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		digest.Sum(data)
	}
}

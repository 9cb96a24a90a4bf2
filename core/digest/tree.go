package digest

import (
	"encoding/binary"
	"math/bits"

	"lukechampine.com/blake3/guts"
)

// Group is the number of bytes that are verified together: a range of an object is verified in groups,
// without reading the rest of the object.
const Group = 64 << 10

// NodeLen is the size of an encoded node of a tree: the chaining values of its two children.
const NodeLen = 64

// A Value is a BLAKE3 chaining value, or a digest.
type Value [32]byte

// Groups returns the number of groups of an object of a size. An empty object has one.
func Groups(size uint64) uint64 { return max(1, (size+Group-1)/Group) }

// A Tree computes the BLAKE3 digest of an object from its groups, and the nodes of its hash tree in
// post-order: the left subtree, the right subtree, their parent. It keeps one chaining value per level.
// The zero value is an empty object.
type Tree struct {
	size    uint64
	groups  uint64 // number of groups whose chaining values are in the stack
	stack   []Value
	pending guts.Node // the last group: it may be the root
	any     bool
}

// Size returns the number of bytes that were added.
func (t *Tree) Size() uint64 { return t.size }

// Add adds the next group. Only the last group may be shorter than Group. Each node that is complete is
// passed to node.
func (t *Tree) Add(group []byte, node func(n [NodeLen]byte)) {
	if t.any {
		t.push(node)
	}
	t.pending, t.any = subtree(group, t.groups*(Group/guts.ChunkSize)), true
	t.size += uint64(len(group))
}

// push moves the pending group to the stack and merges what is complete.
func (t *Tree) push(node func(n [NodeLen]byte)) {
	t.stack = append(t.stack, chainingValue(t.pending))
	t.groups++
	for complete := t.groups; complete%2 == 0; complete /= 2 {
		left, right := t.stack[len(t.stack)-2], t.stack[len(t.stack)-1]
		node(encodeNode(left, right))
		t.stack = append(t.stack[:len(t.stack)-2], chainingValue(parent(left, right)))
	}
}

// Sum ends the object, passes the last nodes to node and returns the digest.
func (t *Tree) Sum(node func(n [NodeLen]byte)) Value {
	if !t.any {
		t.Add(nil, node)
	}
	last := t.pending
	for i := len(t.stack) - 1; i >= 0; i-- {
		right := chainingValue(last)
		node(encodeNode(t.stack[i], right))
		last = parent(t.stack[i], right)
	}
	last.Flags |= guts.FlagRoot
	return chainingValue(last)
}

// A Range is a part of an object that is to be verified.
type Range struct {
	Digest      Value  // of the object
	Size        uint64 // of the object
	First, Last uint64 // groups
}

// Verify passes the groups of r to group, in order, each with the function that checks its bytes.
// It reads the nodes on the path from node, by their place in post-order. It stops at the first
// error. It returns false if a node does not belong to the object.
func (r Range) Verify(node func(place uint64, n *[NodeLen]byte) error, group func(i uint64, valid func([]byte) bool) error) (ok bool, err error) {
	return r.verify(span{count: Groups(r.Size), value: r.Digest, root: guts.FlagRoot}, node, group)
}

// A span is a subtree: count groups from start, whose nodes in post-order begin at place.
type span struct {
	start, count, place uint64
	value               Value
	root                uint32 // the flag of the root, or 0
}

func (r Range) verify(s span, node func(uint64, *[NodeLen]byte) error, group func(uint64, func([]byte) bool) error) (ok bool, err error) {
	if s.start > r.Last || s.start+s.count <= r.First {
		return true, nil
	}
	if s.count == 1 {
		return true, group(s.start, func(b []byte) bool {
			n := subtree(b, s.start*(Group/guts.ChunkSize))
			n.Flags |= s.root
			return chainingValue(n) == s.value
		})
	}
	var raw [NodeLen]byte
	if err := node(s.place+s.count-2, &raw); err != nil {
		return true, err
	}
	left, right := Value(raw[:32]), Value(raw[32:])
	n := parent(left, right)
	n.Flags |= s.root
	if chainingValue(n) != s.value {
		return false, nil
	}
	half := uint64(1) << (bits.Len64(s.count-1) - 1)
	if ok, err := r.verify(span{start: s.start, count: half, place: s.place, value: left}, node, group); !ok || err != nil {
		return ok, err
	}
	return r.verify(span{start: s.start + half, count: s.count - half, place: s.place + half - 1, value: right}, node, group)
}

// subtree returns the node above the chunks of p, the first of which has a number in the object.
func subtree(p []byte, chunk uint64) guts.Node {
	const most = guts.MaxSIMD * guts.ChunkSize
	switch {
	case len(p) <= guts.ChunkSize:
		return guts.CompressChunk(p, &guts.IV, chunk, 0)
	case len(p) < most:
		return partialSubtree(p, chunk)
	case len(p) == most:
		return guts.CompressBuffer((*[most]byte)(p), most, &guts.IV, chunk, 0)
	}
	half := 1 << (bits.Len(uint(len(p)-1)) - 1)
	return parent(chainingValue(subtree(p[:half], chunk)), chainingValue(subtree(p[half:], chunk+uint64(half/guts.ChunkSize))))
}

// partialSubtree is subtree for several chunks, but fewer than CompressBuffer takes. Its buffer would otherwise be on the stack once for each
// level of subtree, and the stack of every goroutine that hashes would grow to 64 KiB.
//
//go:noinline
func partialSubtree(p []byte, chunk uint64) guts.Node {
	var buf [guts.MaxSIMD * guts.ChunkSize]byte
	return guts.CompressBuffer(&buf, copy(buf[:], p), &guts.IV, chunk, 0)
}

func parent(left, right Value) guts.Node {
	return guts.ParentNode(words(left), words(right), &guts.IV, 0)
}

func chainingValue(n guts.Node) (v Value) {
	for i, w := range guts.ChainingValue(n) {
		binary.LittleEndian.PutUint32(v[4*i:], w)
	}
	return v
}

func words(v Value) (w [8]uint32) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(v[4*i:])
	}
	return w
}

func encodeNode(left, right Value) (n [NodeLen]byte) {
	copy(n[copy(n[:], left[:]):], right[:])
	return n
}

package index

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
)

const blockSize = 1 << 20

// A tail has the rows that are in no table yet, in order of arrival. Each row is linked to the
// previous row of its group, and by skips to earlier ones, so that a row in a long group is found
// in few steps.
//
//	slots: hash of a group ──► its last row ──prev──► … ──prev──► its first
//	                                └────────skip────────►
//
// One goroutine adds rows, under the index's lock. Rows do not change until the tail is reused,
// so a copy of the slices made under the lock can be read without it.
type tail struct {
	seed   maphash.Seed
	blocks [][]byte   // of blockSize each; a row is in one block
	used   int        // number of used blocks
	fill   int        // used bytes of the last block
	rows   [][]linked // in blocks, so that growing does not copy
	count  uint32     // of rows plus one: row 0 means none
	slots  []uint32   // open addressing; 0: empty
	groups int

	frames  int
	keys    int          // idempotency keys and refs: the node has them in memory until they are in a table
	last    mark         // after the last frame
	readers atomic.Int32 // the tail is not reused while it has readers
}

type linked struct {
	pos        uint64
	off        uint32 // block and offset
	prev, skip uint32
	depth      uint32 // number of rows of the group up to this one
	hash       uint32
	klen, vlen uint16
}

const (
	linkedSize = 32
	rowBits    = 15
	rowBlock   = 1 << rowBits
)

func newTail() *tail {
	return &tail{seed: maphash.MakeSeed(), rows: [][]linked{make([]linked, rowBlock)}, count: 1, slots: make([]uint32, 1<<12)}
}

// reset empties t, and keeps its memory.
func (t *tail) reset(m mark) {
	t.used, t.fill, t.count, t.groups, t.frames, t.keys, t.last = 0, 0, 1, 0, 0, 0, m
	clear(t.slots)
}

// bytes returns the used memory of t.
func (t *tail) bytes() int64 {
	return int64(t.used)*blockSize + int64(t.count>>rowBits+1)*rowBlock*linkedSize + int64(len(t.slots))*4
}

func (t *tail) row(n uint32) *linked { return &t.rows[n>>rowBits][n%rowBlock] }

// link adds a row.
func (t *tail) link(key, value []byte, pos uint64) {
	size := len(key) + len(value)
	if of := family(key[0]); of == ofKey || of == ofRef {
		t.keys++
	}
	if t.used == 0 || t.fill+size > blockSize {
		if t.used == len(t.blocks) {
			t.blocks = append(t.blocks, make([]byte, blockSize))
		}
		t.used++
		t.fill = 0
	}
	b := t.blocks[t.used-1][t.fill:]
	copy(b[copy(b, key):], value)
	r := linked{pos: pos, off: uint32(t.used-1)*blockSize + uint32(t.fill), depth: 1,
		klen: uint16(len(key)), vlen: uint16(len(value)), hash: t.hash(key)}
	t.fill += size
	slot := t.slot(key, r.hash)
	if r.prev = t.slots[slot]; r.prev > 0 {
		p := t.row(r.prev)
		r.depth, r.skip = p.depth+1, r.prev
		if s := t.row(p.skip); p.depth-s.depth == s.depth-t.row(s.skip).depth {
			r.skip = s.skip // two skips of one length become one
		}
	} else {
		t.groups++
	}
	t.slots[slot] = t.count
	if t.count>>rowBits == uint32(len(t.rows)) {
		t.rows = append(t.rows, make([]linked, rowBlock))
	}
	*t.row(t.count) = r
	t.count++
	if t.groups*4 > len(t.slots)*3 {
		t.grow()
	}
}

func (t *tail) hash(key []byte) uint32 {
	return uint32(maphash.Bytes(t.seed, group(key))) ^ uint32(key[0])*0x9e3779b9
}

// slot returns the slot of a key's group, or the free slot for it.
func (t *tail) slot(key []byte, hash uint32) uint32 {
	mask := uint32(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		head := t.slots[at]
		if head == 0 {
			return at
		}
		if r := t.row(head); r.hash == hash {
			if k := t.blocks[r.off/blockSize][r.off%blockSize:][:r.klen]; k[0] == key[0] && bytes.Equal(group(k), group(key)) {
				return at
			}
		}
	}
}

func (t *tail) grow() {
	old := t.slots
	t.slots = make([]uint32, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, head := range old {
		if head == 0 {
			continue
		}
		at := t.row(head).hash & mask
		for t.slots[at] > 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = head
	}
}

// A glimpse is a tail as it was at a moment.
type glimpse struct {
	tail   *tail
	rows   [][]linked
	blocks [][]byte
	count  uint32
}

func (t *tail) glimpse() glimpse { return glimpse{t, t.rows, t.blocks, t.count} }

func (g *glimpse) row(n uint32) *linked { return &g.rows[n>>rowBits][n%rowBlock] }

func (g *glimpse) at(n uint32) (key, value []byte) {
	r := g.row(n)
	b := g.blocks[r.off/blockSize][r.off%blockSize:]
	return b[:r.klen:r.klen], b[r.klen : r.klen+r.vlen : r.klen+r.vlen]
}

// head returns the last row of the group of a key; 0 if there is none. The caller holds the lock.
func (g *glimpse) head(key []byte) uint32 {
	n := g.tail.slots[g.tail.slot(key, g.tail.hash(key))]
	for n >= g.count { // added later
		n = g.tail.row(n).prev
	}
	return n
}

// before returns the last row of a group, from one of its rows on, whose pos is at most pos.
func (g *glimpse) before(n uint32, pos uint64) uint32 {
	for n > 0 && g.row(n).pos > pos {
		if s := g.row(n).skip; g.row(s).pos > pos {
			n = s
		} else {
			n = g.row(n).prev
		}
	}
	return n
}

// rank returns the row of a group with a number of rows up to it, or the given one if the group
// is shorter.
func (g *glimpse) rank(n, depth uint32) uint32 {
	for g.row(n).depth > depth {
		if s := g.row(n).skip; g.row(s).depth >= depth {
			n = s
		} else {
			n = g.row(n).prev
		}
	}
	return n
}

// after yields the first rows of a group whose pos is more than pos, in reverse order.
func (g *glimpse) after(head uint32, pos uint64, limit int, each func(key, value []byte)) {
	from := g.before(head, pos)
	last := g.rank(head, g.row(from).depth+uint32(limit))
	for n := last; n != from; n = g.row(n).prev {
		each(g.at(n))
	}
}

// get returns the value of a key: of its only row, or of the last one.
func (g *glimpse) get(key []byte) (value []byte, ok bool) {
	n := g.head(key)
	if n == 0 {
		return nil, false
	}
	_, value = g.at(n)
	return value, true
}

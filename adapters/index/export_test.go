package index

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// On moves x to another disk, with eras of a number of bits.
func (x *Indexer) On(fs vfs.FS, bits uint8) *Indexer {
	x.fs, x.eras = fs, eras(bits)
	return x
}

// Rows counts what a reader sees in the tables of one family.
func (x *Indexer) Rows(of byte) (n int) {
	c, err := x.store.lend()
	if err != nil {
		return -1
	}
	for ok := c.SeekGE([]byte{of}); ok && c.Key()[0] == of; ok = c.Next() {
		n++
	}
	if x.store.back(c) != nil { // no concurrent reader
		return -1
	}
	return n
}

// Waiting returns the number of waiting readers.
func (x *Indexer) Waiting() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.waits
}

// Taken returns the memory of the tails and its bound.
func (x *Indexer) Taken() (taken, most int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, t := range [...]*tail{x.tail, x.frozen, x.spare} {
		if t != nil {
			taken += int64(len(t.blocks))*blockSize + int64(len(t.rows))*rowBlock*linkedSize + int64(cap(t.slots))*4
		}
	}
	return taken, 2 * (x.limits.Tail + tailOver)
}

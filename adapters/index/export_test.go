package index

import (
	"context"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/core/types"
)

// MaxEngineFailures is how many engines may stop in one process.
const MaxEngineFailures = maxEngineFailures

// On puts x on another disk, with eras of so many bits.
func (x *Indexer) On(fs vfs.FS, bits uint8) *Indexer {
	x.fs, x.eras = fs, eras(bits)
	return x
}

// AwaitMark waits until x has come to a frame; false when it stops before.
func (x *Indexer) AwaitMark(ctx context.Context, lsn types.LSN) bool {
	for {
		moved := x.join()
		if moved == nil {
			return false
		}
		done := x.Mark().LSN >= lsn
		if !done {
			select {
			case <-moved:
			case <-ctx.Done():
				x.leave()
				return false
			}
		}
		x.leave()
		if done {
			return true
		}
	}
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
	if x.store.back(c) != nil { // nobody reads beside it
		return -1
	}
	return n
}

// Waiting is how many wait.
func (x *Indexer) Waiting() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.waits
}

// Taken is the memory that the tails have, and the bound that they were given.
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

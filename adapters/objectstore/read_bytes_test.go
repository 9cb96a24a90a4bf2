package objectstore_test

import (
	"bytes"
	"math/bits"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/core/digest"
	"macronode/core/storage"
)

// countingFS counts the bytes that are read from its files: those of contents, which end at the offset size, and those of nodes behind them.
type countingFS struct {
	fs.FS
	size            int64
	contents, nodes int
}

type countingFile struct {
	fs.File
	of *countingFS
}

func (c *countingFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	return &countingFile{f, c}, err
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.of.size {
		f.of.contents += len(p)
	} else {
		f.of.nodes += len(p)
	}
	return f.File.ReadAt(p, off)
}

// TestRangeReadsOneGroup: a range of 4 KiB within one group reads that group, whatever the size of the object, the nodes of its path, and at
// most two blocks of 64 nodes beside them.
func TestRangeReadsOneGroup(t *testing.T) {
	const length, nodesBeside = 4 << 10, 2 * 64 * digest.NodeLen
	for _, size := range []int{1 << 20, 64 << 20} {
		disk := &countingFS{FS: fs.Dir(t.TempDir()), size: int64(size)}
		s := objectstore.New(disk, objectstore.Limits{Uploads: 1, Object: storage.MaxObject})
		whole := bytes.Repeat(content(4)[:1<<16], size>>16)
		u, a, err := put(s, whole, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		u.Done()
		path := bits.Len(uint(size/digest.Group)) - 1
		for _, off := range []int{0, digest.Group, size/2 - length, size/2 + 100, size - length} {
			disk.contents, disk.nodes = 0, 0
			got, err := read(s, a, storage.Object{Size: uint64(size), File: u.File()}, uint64(off), length)
			if err != nil || !bytes.Equal(got, whole[off:off+length]) {
				t.Errorf("%d of %d: %v, %d bytes", off, size, err, len(got))
			}
			if disk.contents != digest.Group || disk.nodes < path*digest.NodeLen || disk.nodes > path*digest.NodeLen+nodesBeside {
				t.Errorf("%d of %d: %d bytes of the content and %d of nodes were read, the path has %d nodes", off, size, disk.contents, disk.nodes, path)
			}
		}
	}
}

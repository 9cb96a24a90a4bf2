package archive_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"macronode/chaos/world"
)

// FuzzArchive opens any bytes as a kept file. Either the file is read to its size, with the same
// result in one piece and in small ones, or it is rejected.
func FuzzArchive(f *testing.F) {
	for _, size := range []int{0, 100, 3000} {
		live, kept := world.NewDisk(), world.NewDisk()
		put(f, live, "a", text(size))
		must(f, over(f, live, kept).Move([]string{"a"}, nil, quiet))
		packed := read(f, kept, "a.zst")
		f.Add(packed)
		f.Add(packed[:len(packed)-5])
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		kept := world.NewDisk()
		put(t, kept, "a.zst", packed)
		file, err := over(t, world.NewDisk(), kept).Open("a")
		if err != nil {
			return
		}
		defer file.Close()
		size, err := file.Size()
		must(t, err)
		if size > 16<<20 {
			return // a small text may claim a large size
		}
		all := make([]byte, size)
		if n, err := file.ReadAt(all, 0); int64(n) != size || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes of %d: %v", n, size, err)
		}
		for off := int64(0); off < size; off += 100_001 {
			part := make([]byte, min(70_000, size-off))
			if _, err := file.ReadAt(part, off); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(part, all[off:off+int64(len(part))]) {
				t.Fatalf("at %d of %d: %v", off, size, err)
			}
		}
	})
}

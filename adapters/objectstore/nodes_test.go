package objectstore_test

import (
	"bytes"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// TestUploadsKeepNodesApart stores pairs of objects, whose groups arrive by turns, with few nodes, with as many as an upload keeps in memory, and
// with more. Buffers go from one upload to the next one.
func TestUploadsKeepNodesApart(t *testing.T) {
	s := objectstore.New(fs.Dir(t.TempDir()), objectstore.Limits{Uploads: 4, Object: 1 << 30})
	for _, groups := range []int{20, 21, 22, 60, 1025, 1026, 1100} {
		group := make([]byte, digest.Group)
		var trees [2]digest.Tree
		var ups [2]*objectstore.Upload
		for i := range ups {
			up, err := s.Begin(types.Tenant(i + 1))
			if err != nil {
				t.Fatal(err)
			}
			ups[i] = up
		}
		fill := func(i, n int) []byte {
			group[0], group[1], group[2], group[digest.Group-1] = byte(i), byte(n), byte(n>>8), byte(groups)
			return group
		}
		for n := range groups {
			for i, up := range ups {
				part := fill(i, n)
				trees[i].Add(part, func([digest.NodeLen]byte) {})
				if _, err := up.Write(part); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, up := range ups {
			a, err := up.Sum()
			if err == nil {
				err = up.Store(a)
			}
			if want := storage.Address(trees[i].Sum(func([digest.NodeLen]byte) {})); err != nil || a != want {
				t.Fatalf("%d groups: %v, want %v: %v", groups, a, want, err)
			}
			up.Done()
		}
		for i, up := range ups {
			a, size, n := storage.Address(trees[i].Sum(func([digest.NodeLen]byte) {})), uint64(groups)*digest.Group, 0
			x, err := s.Get(a, storage.Object{Size: size, File: up.File()})
			if err != nil {
				t.Fatal(err)
			}
			err = x.WriteRange(0, size, func(part []byte) error {
				if !bytes.Equal(part, fill(i, n)) {
					t.Errorf("%d groups: group %d is wrong", groups, n)
				}
				n++
				return nil
			})
			if x.Close(); err != nil || n != groups {
				t.Fatalf("%d of %d groups: %v", n, groups, err)
			}
		}
	}
}

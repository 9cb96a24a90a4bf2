package objectstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// redundancies are compared by the benchmarks: one copy, copies that may lose two disks, and shards that may lose three.
var redundancies = []struct {
	name string
	objectstore.Copies
}{
	{"1-copy", objectstore.Copies{Count: 1, Required: 1}},
	{"3-copies", objectstore.Copies{Count: 3, Required: 1}},
	{"6+3", objectstore.Copies{Count: 4, Required: 1, Coding: coding.Scheme{Data: 6, Parity: 3}}},
}

// ninePlaces returns a store of nine directories.
func ninePlaces(b *testing.B, c objectstore.Copies) (*objectstore.Store, []string) {
	b.Helper()
	var list []objectstore.Provider
	var dirs []string
	for i := range 9 {
		dir, name := b.TempDir(), fmt.Sprintf("disk%d", i)
		dirs = append(dirs, dir)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: fs.Dir(dir)}})
	}
	return objectstore.NewCopies(list, c, objectstore.Limits{Uploads: 1, Object: storage.MaxObject}), dirs
}

// stored returns the bytes in directories.
func stored(dirs []string) (sum int64) {
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range names {
			if is, err := os.Stat(name); err == nil {
				sum += is.Size()
			}
		}
	}
	return sum
}

// BenchmarkPutRedundant stores an object of 8 MiB durably, and reports how many bytes are stored for each of its bytes.
func BenchmarkPutRedundant(b *testing.B) {
	content := random(8 << 20)
	for _, c := range redundancies {
		b.Run(c.name, func(b *testing.B) {
			s, dirs := ninePlaces(b, c.Copies)
			b.SetBytes(int64(len(content)))
			n := int64(0)
			for b.Loop() {
				u, _, err := put(s, content, 1<<16)
				if err != nil {
					b.Fatal(err)
				}
				u.Done()
				n++
			}
			b.ReportMetric(float64(stored(dirs))/float64(n)/float64(len(content)), "stored/byte")
		})
	}
}

// BenchmarkGetRedundant reads an object of 8 MiB, whole and without the first shards or copies.
func BenchmarkGetRedundant(b *testing.B) {
	content := random(8 << 20)
	for _, c := range redundancies {
		for lost := 0; lost <= 3 && lost < c.Count; lost++ {
			b.Run(fmt.Sprintf("%s/%d-lost", c.name, lost), func(b *testing.B) {
				s, dirs := ninePlaces(b, c.Copies)
				u, a, err := put(s, content, 1<<16)
				if err != nil {
					b.Fatal(err)
				}
				u.Done()
				o := storage.Stored{Address: a, Object: storage.Object{Size: uint64(len(content)), File: u.File()}}
				files, err := s.Files()
				if err != nil {
					b.Fatal(err)
				}
				parts := files.Parts(o)
				for n, p := range parts.List() {
					if p.Scheme.IsSet() && p.Shard < lost || !p.Scheme.IsSet() && n < lost {
						if err := os.RemoveAll(dirs[p.Provider]); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					x, err := s.Get(a, o.Object)
					if err == nil {
						err = x.WriteRange(0, o.Size, func([]byte) error { return nil })
						x.Close()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package objectstore_test

import (
	"fmt"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/core/storage"
)

// BenchmarkPut stores objects durably, BenchmarkGet reads them with verification.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := objectstore.New(fs.Dir(b.TempDir()), objectstore.Limits{Uploads: 1, Object: storage.MaxObject})
			content := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				u, _, err := put(s, content, 1<<16)
				if err != nil {
					b.Fatal(err)
				}
				u.Done()
			}
		})
	}
}

// BenchmarkPutAtOnce stores objects in 16 uploads at once.
func BenchmarkPutAtOnce(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := objectstore.New(fs.Dir(b.TempDir()), objectstore.Limits{Uploads: 64, Object: storage.MaxObject})
			b.SetBytes(int64(size))
			b.SetParallelism(8)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				content := make([]byte, size)
				for p.Next() {
					u, _, err := put(s, content, 1<<16)
					if err != nil {
						b.Error(err)
						return
					}
					u.Done()
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := objectstore.New(fs.Dir(b.TempDir()), objectstore.Limits{Uploads: 1, Object: storage.MaxObject})
			u, a, err := put(s, make([]byte, size), 1<<16)
			if err != nil {
				b.Fatal(err)
			}
			u.Done()
			b.SetBytes(int64(size))
			for b.Loop() {
				x, err := s.Get(a, storage.Object{Size: uint64(size), File: u.File()})
				if err == nil {
					err = x.WriteRange(0, uint64(size), func([]byte) error { return nil })
					x.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

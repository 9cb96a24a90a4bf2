package provider_test

import (
	"strconv"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
)

// BenchmarkRead measures what a time limit costs: an open, a size, reads of groups and a close of a file in the cache of the system.
func BenchmarkRead(b *testing.B) {
	dir := provider.Dir{FS: fs.Dir(b.TempDir())}
	f, err := dir.Create("a")
	if err == nil {
		_, err = f.WriteAt(make([]byte, 1<<20), 0)
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]provider.Port{"direct": dir, "timed": provider.NewTimed(dir, provider.Answer)} {
		for _, groups := range []int{1, 16} {
			b.Run(name+"/groups="+strconv.Itoa(groups), func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					buf := make([]byte, 64<<10)
					for pb.Next() {
						f, err := p.Open("a")
						if err != nil {
							b.Fatal(err)
						}
						if _, err := f.Size(); err != nil {
							b.Fatal(err)
						}
						for i := range groups {
							if _, err := f.ReadAt(buf, int64(i)<<16); err != nil {
								b.Fatal(err)
							}
						}
						_ = f.Close()
					}
				})
			})
		}
	}
}

package digest_test

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"macronode/core/digest"
)

// TestHashingNeedsLittleStack: the stack of a goroutine keeps its largest size until a collection, and each connection has a goroutine. One
// that has hashed whole groups has a stack of 16 KiB at most.
func TestHashingNeedsLittleStack(t *testing.T) {
	const goroutines, most = 64, 16 << 10
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection shrinks stacks
	group := random(digest.Group, 1)
	var before, after runtime.MemStats
	var hashed, ended sync.WaitGroup
	hold := make(chan struct{})
	runtime.ReadMemStats(&before)
	for range goroutines {
		hashed.Add(1)
		ended.Go(func() {
			var tree digest.Tree
			for range 3 {
				tree.Add(group, func([digest.NodeLen]byte) {})
			}
			hashed.Done()
			<-hold
		})
	}
	hashed.Wait()
	runtime.ReadMemStats(&after)
	close(hold)
	ended.Wait()
	if grown := after.StackInuse - before.StackInuse; grown > goroutines*most*3/2 { // smaller stacks that they had before may be unused
		t.Errorf("the stacks of %d goroutines take %d KiB each", goroutines, grown/goroutines>>10)
	}
}

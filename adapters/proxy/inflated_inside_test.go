package proxy

import (
	"context"
	"testing"
	"time"

	"macronode/core/types"
)

// TestInflatersAreShared: callers without a key leave places to others, and each caller leaves some to the next one.
func TestInflatersAreShared(t *testing.T) {
	i := NewInflaters()
	all := map[types.Flow][]*inflater{}
	takes := func(class types.Class, id uint64, want int) {
		t.Helper()
		by, got := types.Flow{Class: class, ID: id}, 0
		for range MaxInflaters + 1 {
			if p := i.take(t.Context(), by, 0, nil); p != nil {
				all[by] = append(all[by], p)
				got++
			}
		}
		if got != want {
			t.Errorf("%v %d has %d more places, want %d", class, id, got, want)
		}
	}
	takes(types.ClassAnon, 1, 4)     // a peer has a quarter
	takes(types.ClassAnon, 2, 2)     // half of what is left to peers
	takes(types.ClassAnon, 3, 1)     //
	takes(types.ClassAnon, 4, 1)     // all peers have a half
	takes(types.ClassAnon, 5, 0)     //
	takes(types.ClassAuthed, 1, 3)   // half of what is left to tenants
	takes(types.ClassAuthed, 2, 2)   //
	takes(types.ClassAuthed, 3, 1)   //
	takes(types.ClassAuthed, 4, 0)   // two are left
	takes(types.ClassInternal, 1, 2) // for internal callers
	if taken, of := i.Depth(); taken != of || of != MaxInflaters {
		t.Errorf("%d of %d are taken", taken, of)
	}
	for _, p := range all[types.Flow{Class: types.ClassAnon, ID: 1}] {
		p.give()
	}
	takes(types.ClassAnon, 5, 2) // half of the places of the first peer
	if len(i.all) != MaxInflaters-2 {
		t.Errorf("%d places are remembered, want %d", len(i.all), MaxInflaters-2)
	}
}

// TestFlowWithoutInflaterGetsOne: a caller that has no place waits for it. It gets one that is given back meanwhile; else the oldest
// request of the caller with the most ends. A wait ends with its request, and leaves nothing behind.
func TestFlowWithoutInflaterGetsOne(t *testing.T) {
	i, ended := NewInflaters(), make(chan int, MaxInflaters)
	var first []*inflater
	for peer := range 4 {
		for n := range 4 {
			if p := i.take(t.Context(), types.Flow{Class: types.ClassAnon, ID: uint64(peer)}, 0, func() { ended <- 10*peer + n }); p != nil {
				first = append(first, p)
			}
		}
	}
	type wait struct {
		cancel context.CancelFunc
		came   chan *inflater
	}
	waits := func(peer uint64, patience time.Duration) wait {
		ctx, cancel := context.WithCancel(t.Context())
		w := wait{cancel: cancel, came: make(chan *inflater, 1)}
		before := i.last
		go func() { w.came <- i.take(ctx, types.Flow{Class: types.ClassAnon, ID: peer}, patience, nil) }()
		for begun := false; !begun; time.Sleep(time.Millisecond) {
			i.mu.Lock()
			begun = i.last > before
			i.mu.Unlock()
		}
		if n, _ := i.Waiting(); patience == time.Hour && n != 1 {
			t.Errorf("%d requests wait, want 1", n)
		}
		return w
	}
	free := waits(10, time.Hour)
	first[7].give()
	if p := <-free.came; p == nil {
		t.Fatal("a place that is given back goes to no request")
	}
	first[0].ends = func() { ended <- 0; first[0].give() }
	taken := waits(11, time.Millisecond)
	if n := <-ended; n != 0 {
		t.Errorf("request %d ends, want the oldest of the peer with the most", n)
	}
	if p := <-taken.came; p == nil {
		t.Fatal("the request for which another one has ended has no place")
	}
	left := waits(12, time.Hour)
	left.cancel()
	if p := <-left.came; p != nil {
		t.Error("a request that has ended has a place")
	}
	if taken, _ := i.Depth(); taken != MaxInflaters/2 || len(i.all) != taken {
		t.Errorf("%d places are held, %d remembered, want %d", taken, len(i.all), MaxInflaters/2)
	}
	first[1].ends, first[2].ends, first[4].ends = func() {}, func() {}, func() {} // they hang
	hangs := waits(13, time.Millisecond)
	if p := <-hangs.came; p != nil {
		t.Error("a request has the place of one that has not ended")
	}
	if taken, _ := i.Depth(); taken != MaxInflaters/2 || len(i.all) != taken {
		t.Errorf("%d places are held, %d remembered, want %d", taken, len(i.all), MaxInflaters/2)
	}
}

package snapshot_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/state"
	"macronode/core/types"
)

// making is a maker over books, and its reports.
type making struct {
	*snapshot.Maker
	made  []snapshot.Made
	doubt []error
	rests int
}

func maker(d *world.Disk, b *books) *making {
	m := &making{}
	m.Maker = snapshot.New(snapshot.Config{Every: 1000, Limits: limits(), Seed: 5, Tick: time.Millisecond,
		Made:  func(made snapshot.Made) { m.made = append(m.made, made) },
		Doubt: func(err error) { m.doubt = append(m.doubt, err) },
		Rest:  func(ctx context.Context, _ time.Duration) error { m.rests++; return context.Cause(ctx) },
	}, d, b.source())
	return m
}

// TestSnapshotIsFunctionOfJournal: a snapshot has the same bytes whether it is made from the
// previous one or from the beginning.
func TestSnapshotIsFunctionOfJournal(t *testing.T) {
	b, d := newBooks(11), world.NewDisk()
	m := maker(d, b)
	for n := range 12 {
		for range 7 + n {
			b.add(t)
		}
		must(t, m.Make(t.Context()))
		alone := world.NewDisk()
		must(t, maker(alone, b).Make(t.Context()))
		if !same(read(t, d, b.state.LSN), read(t, alone, b.state.LSN)) || !same(read(t, d, b.state.LSN), written(t, b)) {
			t.Fatalf("%v: another, made from the one before", b.state.LSN)
		}
		if got := m.made[n]; got.Head != b.head() || got.Frames != uint64(7+n) || got.Bytes != int64(len(written(t, b))) {
			t.Fatalf("reported %+v for %+v", got, b.head())
		}
	}
	if all := listed(t, d); len(all) != 2 || all[0] != b.state.LSN || all[1] != b.state.LSN-18 {
		t.Fatalf("%v are kept", all)
	}
	if len(m.doubt) != 0 || m.rests < 20 || d.Handles() != 0 {
		t.Fatalf("%v, %d rests, %d files open", m.doubt, m.rests, d.Handles())
	}
	must(t, m.Make(t.Context())) // no new frame
	if len(m.made) != 12 || len(listed(t, d)) != 2 {
		t.Fatalf("%d were made", len(m.made))
	}
}

// TestDueAfterGrowth: a snapshot is due when the journal has grown by Every, or by the size of
// the last one.
func TestDueAfterGrowth(t *testing.T) {
	b, d := newBooks(11), world.NewDisk()
	m := maker(d, b)
	due := func() (frames int) {
		for ; !m.Due(); frames++ {
			b.add(t)
		}
		return frames
	}
	if n := due(); n != 10 {
		t.Fatalf("due after %d frames of 100 bytes, want 10", n)
	}
	must(t, m.Make(t.Context()))
	size := len(read(t, d, 10))
	if n := due(); n != max(10, (size+99)/100) {
		t.Fatalf("due again after %d frames, the last one has %d bytes", n, size)
	}
	b = newBooks(11)
	if m := maker(world.NewDisk(), b); m.Make(t.Context()) != nil || len(m.made) != 0 {
		t.Fatalf("made without a frame: %+v", m.made)
	}
}

// TestInvalidSnapshotsAreSkipped: an invalid snapshot is reported, an older one or none is used
// instead, and it is removed when there are newer ones.
func TestInvalidSnapshotsAreSkipped(t *testing.T) {
	b := newBooks(11)
	d := world.NewDisk()
	for n := range 3 {
		for range 10 {
			b.add(t)
		}
		_, err := snapshot.Write(d, b.head(), &b.state, nil)
		must(t, err)
		_ = n
	}
	for range 5 {
		b.add(t)
	}
	want := written(t, b)
	spoil := func(d *world.Disk, lsns ...types.LSN) *world.Disk {
		d = d.Copy()
		for _, lsn := range lsns {
			text := read(t, d, lsn)
			text[len(text)/2] ^= 1
			must(t, d.Remove(snapshot.Name(lsn)))
			put(t, d, snapshot.Name(lsn), text)
		}
		return d
	}
	apart := d.Copy()
	must(t, apart.Remove(snapshot.Name(30)))
	was := b.as(t, 30)
	was.root[0]++
	_, err := snapshot.Write(apart, was.head(), &was.state, nil)
	must(t, err)
	later := d.Copy()
	put(t, later, snapshot.Name(99), nil)
	for what, c := range map[string]struct {
		d      *world.Disk
		doubts int
		frames uint64
		kept   []types.LSN
	}{
		"none":                        {d, 0, 5, []types.LSN{35, 30}},
		"the newest":                  {spoil(d, 30), 1, 15, []types.LSN{35, 20}},
		"two":                         {spoil(d, 30, 20), 2, 25, []types.LSN{35, 10}},
		"all":                         {spoil(d, 30, 20, 10), 3, 35, []types.LSN{35}},
		"one of another past":         {apart, 1, 15, []types.LSN{35, 20}},
		"one after the journal's end": {later, 1, 5, []types.LSN{99, 35, 30}},
	} {
		m := maker(c.d, b)
		must(t, m.Make(t.Context()))
		if len(m.doubt) != c.doubts || len(m.made) != 1 || m.made[0].Frames != c.frames || !slices.Equal(listed(t, c.d), c.kept) {
			t.Errorf("%s: doubts %v, made %+v, kept %v", what, m.doubt, m.made, listed(t, c.d))
		}
		for _, err := range m.doubt {
			if !errors.Is(err, snapshot.ErrDoubt) && !errors.Is(err, snapshot.ErrApart) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if !same(read(t, c.d, 35), want) {
			t.Errorf("%s: made another", what)
		}
	}
}

// TestRandomFaultsAndCrashes: with every kind of fault, a file with its final name is valid, and
// a snapshot is removed only for newer ones.
func TestRandomFaultsAndCrashes(t *testing.T) {
	for seed := range uint64(60) {
		c, b, d := world.NewSeeded(seed), newBooks(seed), world.NewDisk()
		newest := types.LSN(0)
		for range 10 {
			for range 1 + c.Choose("frames", 6) {
				b.add(t)
			}
			if c.Choose("dies", 3) > 0 {
				d.Fuse = c.Choose("fuse", 40)
			}
			d.FailWrite, d.FailSync, d.FailDir = c.Choose("write", 9) == 8, c.Choose("sync", 9) == 8, c.Choose("dir", 9) == 8
			m := maker(d, b)
			if err := m.Make(t.Context()); err == nil && !d.Dead() {
				newest = b.state.LSN
			}
			if c.Choose("power", 2) == 1 || d.Dead() {
				d.Crash(c)
			}
			d.FailWrite, d.FailSync, d.FailDir, d.Fuse = false, false, false, -1
			all := listed(t, d)
			for _, lsn := range all {
				b.loaded(t, d, lsn)
			}
			if newest > 0 && (len(all) == 0 || all[0] < newest) {
				t.Fatalf("seed %d: %v are there, %v was made", seed, all, newest)
			}
		}
	}
}

// TestCancelLeavesNoFile cancels in the middle of the work.
func TestCancelLeavesNoFile(t *testing.T) {
	b, d := kept(t, 30), world.NewDisk()
	m := maker(d, b)
	rests := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.Rest = func(ctx context.Context, _ time.Duration) error {
		if rests++; rests == 4 {
			cancel()
		}
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	if err := <-done; err != nil || len(listed(t, d)) != 0 || rests != 4 {
		t.Fatalf("%v, %v, %d rests", err, listed(t, d), rests)
	}
}

// TestRunEndsOnError runs until a snapshot fails.
func TestRunEndsOnError(t *testing.T) {
	b, d := kept(t, 30), world.NewDisk()
	m := maker(d, b)
	m.Limits.Ledger.Accounts = 1
	if err := m.Run(t.Context()); !errors.Is(err, state.ErrRoom) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m = maker(d, b)
	m.Made = func(snapshot.Made) { cancel() }
	if err := m.Run(ctx); err != nil || !slices.Equal(listed(t, d), []types.LSN{30}) {
		t.Fatalf("%v, %v", err, listed(t, d))
	}
}

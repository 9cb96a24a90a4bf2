package journalfile_test

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"testing"

	"macronode/adapters/epochs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

var (
	seeds = flag.Int("seeds", 400, "random runs of a journal")
	seed  = flag.Int("seed", -1, "run only this seed, with its log")
)

// part returns a disk with two synced batches and a third of two frames that is written and not
// synced, and all written frames.
func part(t *testing.T) (d *world.Disk, wrote []record.Sealed) {
	t.Helper()
	d = world.NewDisk()
	j := open(t, d, types.MaxSegment)
	wrote = append(add(t, j, 2), add(t, j, 2)...)
	arena, batch := frames(5, 2, 0)
	sealed, err := j.Write(arena, batch)
	must(t, err)
	return d, append(wrote, sealed...)
}

// shown recovers and checks that all synced frames are there, and nothing that was not written. A
// power loss right after takes nothing that was delivered.
func shown(t *testing.T, d *world.Disk, wrote []record.Sealed, durable int) {
	t.Helper()
	_, _, back := recovered(t, d)
	if len(back) < durable || !slices.EqualFunc(back, wrote[:len(back)], same) {
		t.Fatalf("%d frames back, of %d synced and %d written", len(back), durable, len(wrote))
	}
	d.Crash(world.Dull{})
	if _, found, again := recovered(t, d); !slices.EqualFunc(again, back, same) || found.TailFrames != 0 || found.CutBytes != 0 {
		t.Fatalf("%d frames were shown, after a power loss %d; found %+v", len(back), len(again), found)
	}
}

// TestCrashInBatchKeepsSyncedFrames: whatever part of a batch a crash leaves, recovery finds all
// synced frames, and what it delivers is durable.
func TestCrashInBatchKeepsSyncedFrames(t *testing.T) {
	d, wrote := part(t)
	for every := (world.Odometer{}); every.Next(); {
		after := d.Copy()
		after.Crash(&every)
		shown(t, after, wrote, 4)
	}
}

// TestCrashInRecovery: recovery may be interrupted at any operation, with any part of its writes
// kept, and is run again. A kill keeps the page cache, a power loss does not. The tail is on
// disk, or only in the page cache.
func TestCrashInRecovery(t *testing.T) {
	for _, failed := range []bool{false, true} {
		d, wrote := part(t)
		durable := 4
		if d.FailSync = failed; !failed {
			durable = 6
		}
		f, err := d.Open(first)
		must(t, err)
		if err := f.Sync(); failed != (err != nil) {
			t.Fatal(err)
		}
		must(t, f.Close())
		ops := d.Copy()
		recovered(t, ops)
		for fuse := range ops.Ops - d.Ops {
			killed := d.Copy()
			killed.Fuse = fuse
			if _, _, err := journalfile.Recover(killed, ours, nil); !errors.Is(err, world.ErrDead) {
				t.Fatalf("with %d operations: %v", fuse, err)
			}
			for every := (world.Odometer{}); every.Next(); {
				after := killed.Copy()
				after.Crash(&every)
				shown(t, after, wrote, durable)
			}
			killed.Fuse = -1
			shown(t, killed, wrote, durable)
		}
	}
}

// TestCrashInRoll does the same for a new segment.
func TestCrashInRoll(t *testing.T) {
	life := func(d *world.Disk) (acked int, wrote []record.Sealed) {
		j, _, err := journalfile.Recover(d, ours, nil)
		if err != nil {
			return 0, nil
		}
		j.Roll = startSize + 1
		for range 3 {
			arena, batch := frames(types.LSN(len(wrote)+1), 1, 0)
			sealed, err := j.Write(arena, batch)
			if err != nil {
				break
			}
			wrote = append(wrote, sealed...)
			if _, err := j.Sync(); err != nil {
				break
			}
			acked = len(wrote)
		}
		return acked, wrote
	}
	whole := world.NewDisk()
	if acked, _ := life(whole); acked != 3 {
		t.Fatalf("%d frames", acked)
	}
	for fuse := range whole.Ops {
		for every := (world.Odometer{}); every.Next(); {
			d := world.NewDisk()
			d.Fuse = fuse
			acked, wrote := life(d)
			d.Crash(&every)
			shown(t, d, wrote, acked)
		}
	}
}

// TestRecoveryRewritesTailAfterFailedSync: the next start can read pages that a failed sync left
// in the cache, so it must write them again.
func TestRecoveryRewritesTailAfterFailedSync(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	wrote := add(t, j, 2)
	arena, batch := frames(3, 2, 0)
	sealed, err := j.Write(arena, batch)
	must(t, err)
	d.FailSync = true
	if _, err := j.Sync(); !errors.Is(err, world.ErrSync) {
		t.Fatal(err)
	}
	must(t, j.Close())
	_, found, back := recovered(t, d)
	if len(back) != 4 || found.TailFrames != 2 {
		t.Fatalf("%d frames back, found %+v", len(back), found)
	}
	shown(t, d, append(wrote, sealed...), 4)
}

// A history is a random run of one journal.
type history struct {
	t      *testing.T
	c      *world.Seeded
	d      *world.Disk
	beside *world.Disk // has the writers
	j      *journalfile.Journal
	wrote  [][]byte // every frame of this branch
	safe   int      // frames that were synced or delivered
	known  types.LSN
	lives  uint64
	seed   int
}

// TestRandomFaultsAndCrashes runs journals with every kind of fault.
func TestRandomFaultsAndCrashes(t *testing.T) {
	from, to := 0, *seeds
	if testing.Short() {
		to /= 5
	}
	if *seed >= 0 {
		from, to = *seed, *seed+1
	}
	for n := from; n < to; n++ {
		h := &history{t: t, c: world.NewSeeded(uint64(n)), d: world.NewDisk(), seed: n}
		h.beside = h.d.Beside()
		for range 12 {
			h.begin()
			h.live()
			h.end()
		}
		if t.Failed() {
			t.Fatalf("go test ./adapters/journalfile -run TestRandomFaultsAndCrashes -seed %d\n%v", n, h.d)
		}
	}
}

// begin recovers, with random crashes in between.
func (h *history) begin() {
	for {
		h.d.Fuse = h.c.Choose("fuse", 60)
		if h.c.Choose("fuse at all", 2) == 0 {
			h.d.Fuse = -1
		}
		h.d.FailSync = h.c.Choose("sync fails in recovery", 8) == 7
		var k kept
		r := journalfile.Reading{Each: k.each}
		if h.c.Choose("from a snapshot", 2) == 1 { // of durable frames
			r.From = h.from(h.c.Choose("snapshot", h.safe+1))
			h.known = max(h.known, r.From.LSN)
		}
		if h.c.Choose("known from elsewhere", 2) == 1 {
			r.Known = h.known
		}
		j, found, err := h.recover(r)
		switch {
		case err == nil && !h.d.Dead():
			h.d.Fuse, h.j = -1, j
			h.compare(append(h.chained(int(r.From.LSN)), k.frames...), found)
			return
		case err == nil || errors.Is(err, world.ErrDead):
			h.d.Crash(h.c)
		case !errors.Is(err, world.ErrSync) && !errors.Is(err, world.ErrFull):
			h.t.Fatalf("-seed %d: recovery: %v", h.seed, err)
		}
		h.d.Full = false
	}
}

// recover opens the journal as a node does: a segment of its own is never hidden.
func (h *history) recover(r journalfile.Reading) (j *journalfile.Journal, found journalfile.Found, err error) {
	writers, err := epochs.Load(h.beside)
	if err != nil {
		return nil, found, err
	}
	writers.Random = func() uint64 { return uint64(h.c.Choose("epoch", 9)) }
	own, foreign, err := journalfile.Own(h.d, writers.All)
	if err != nil {
		return nil, found, err
	}
	if len(foreign) > 0 {
		h.t.Fatalf("-seed %d: hidden is %+v", h.seed, foreign)
	}
	r.Epoch = writers.Next
	return r.Recover(own, ours)
}

// chained returns the first n frames of this branch, as they were sealed.
func (h *history) chained(n int) (all []record.Sealed) {
	var prev types.Root
	for i, body := range h.wrote[:n] {
		root, _ := digest.Chain(nil, prev, body)
		all = append(all, record.Sealed{Journal: ours, LSN: types.LSN(i + 1), Body: body, Prev: prev, Root: root})
		prev = root
	}
	return all
}

func (h *history) from(n int) (f journalfile.From) {
	if n > 0 {
		f = after(h.chained(n)[n-1])
	}
	return f
}

func (h *history) compare(back []record.Sealed, found journalfile.Found) {
	whole(h.t, back)
	if len(back) < h.safe || len(back) > len(h.wrote) || found.Last != types.LSN(len(back)) {
		h.t.Errorf("%d frames back, of %d safe and %d written; found %+v", len(back), h.safe, len(h.wrote), found)
		return
	}
	for i, s := range back {
		if !bytes.Equal(s.Body, h.wrote[i]) {
			h.t.Errorf("frame %d is another", i+1)
		}
	}
	h.wrote, h.safe = h.wrote[:len(back)], len(back)
}

// live writes until something fails, or a random end.
func (h *history) live() {
	h.lives++
	h.j.Roll = int64(200 + h.c.Choose("roll", 2000))
	if h.c.Choose("fuse at all", 2) == 1 {
		h.d.Fuse = h.c.Choose("fuse", 60)
	}
	for h.c.Choose("go on", 20) > 0 {
		h.d.FailSync = h.c.Choose("sync fails", 20) == 19
		h.d.FailWrite = h.c.Choose("write fails", 20) == 19
		h.d.FailDir = h.c.Choose("directory fails", 40) == 39
		h.d.Full = h.c.Choose("full", 20) == 19
		arena, batch := frames(types.LSN(len(h.wrote)+1), 1+h.c.Choose("frames", 4), h.lives)
		for _, f := range batch { // they were written, whatever happens next
			h.wrote = append(h.wrote, arena[f.Off:f.Off+f.Len])
		}
		if _, err := h.j.Write(arena, batch); err != nil {
			return
		}
		if _, err := h.j.Sync(); err != nil {
			return
		}
		h.safe = len(h.wrote)
		lsn := types.LSN(1 + h.c.Choose("read", h.safe))
		if s, err := h.j.Read(lsn); err == nil && !bytes.Equal(s.Body, h.wrote[lsn-1]) || err != nil && !h.d.Dead() {
			h.t.Errorf("reading %v of %d: %v", lsn, h.safe, err)
		}
	}
}

// end kills the process, which keeps the page cache, or cuts the power.
func (h *history) end() {
	h.d.FailSync, h.d.FailWrite, h.d.FailDir, h.d.Full = false, false, false, false
	if h.d.Dead() || h.c.Choose("end", 2) == 1 {
		h.d.Crash(h.c)
		return
	}
	h.d.Fuse = -1
	must(h.t, h.j.Close())
}

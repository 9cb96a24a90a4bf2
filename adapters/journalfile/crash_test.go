package journalfile_test

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

var (
	seeds = flag.Int("seeds", 400, "lives of a journal to live")
	seed  = flag.Int("seed", -1, "the one seed to live, with its story")
)

// part makes a disk on which two batches are synced and a third of two frames is
// written and not synced, and says what was written.
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

// shown recovers, and checks that what was synced is there and nothing else than what
// was written. Power that goes at once takes nothing that was shown.
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

// TestEveryImage: whatever part of a batch a crash leaves, recovery finds what was
// synced, and what it shows stays.
func TestEveryImage(t *testing.T) {
	d, wrote := part(t)
	for every := (world.Odometer{}); every.Next(); {
		after := d.Copy()
		after.Crash(&every)
		shown(t, after, wrote, 4)
	}
}

// TestEveryImageOfARecovery: recovery may end at any of its operations, whatever part
// of what it did is kept, and be begun again. A kill leaves the pages, a loss of power
// does not. The tail that it meets is on the disk, or in the pages alone.
func TestEveryImageOfARecovery(t *testing.T) {
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

// TestEveryImageOfARoll: the same for a segment that is begun.
func TestEveryImageOfARoll(t *testing.T) {
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

// TestShownAfterAFailedSync: pages that a failed sync left behind are read by the next
// start, so it must write them anew.
func TestShownAfterAFailedSync(t *testing.T) {
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

// A history is what one journal lived through.
type history struct {
	t     *testing.T
	c     *world.Seeded
	d     *world.Disk
	j     *journalfile.Journal
	wrote [][]byte // every frame of this past
	safe  int      // frames that were synced or shown
	known types.LSN
	lives uint64
	seed  int
}

// TestLives: at random, with every fault there is, many times over.
func TestLives(t *testing.T) {
	from, to := 0, *seeds
	if testing.Short() {
		to /= 5
	}
	if *seed >= 0 {
		from, to = *seed, *seed+1
	}
	for n := from; n < to; n++ {
		h := &history{t: t, c: world.NewSeeded(uint64(n)), d: world.NewDisk(), seed: n}
		for range 12 {
			h.begin()
			h.live()
			h.end()
		}
		if t.Failed() {
			t.Fatalf("go test ./adapters/journalfile -run TestLives -seed %d\n%v", n, h.d)
		}
	}
}

// begin recovers, dying on the way as often as chance likes.
func (h *history) begin() {
	for {
		h.d.Fuse = h.c.Choose("fuse", 40)
		if h.c.Choose("fuse at all", 2) == 0 {
			h.d.Fuse = -1
		}
		h.d.FailSync = h.c.Choose("sync fails in recovery", 8) == 7
		var k kept
		r := journalfile.Reading{Each: k.each}
		if h.c.Choose("from a snapshot", 2) == 1 { // which is of what was durable
			r.From = h.from(h.c.Choose("snapshot", h.safe+1))
			h.known = max(h.known, r.From.LSN)
		}
		if h.c.Choose("known from elsewhere", 2) == 1 {
			r.Known = h.known
		}
		j, found, err := r.Recover(h.d, ours)
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

// chained is the first n frames of this past, as they were sealed.
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

// live writes until something fails, or chance ends it.
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
		for _, f := range batch { // whatever becomes of them
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

// end kills the process, which leaves the pages, or takes the power.
func (h *history) end() {
	h.d.FailSync, h.d.FailWrite, h.d.FailDir, h.d.Full = false, false, false, false
	if h.d.Dead() || h.c.Choose("end", 2) == 1 {
		h.d.Crash(h.c)
		return
	}
	h.d.Fuse = -1
	must(h.t, h.j.Close())
}

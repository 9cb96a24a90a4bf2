package journalfile_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// reads reads every frame, each with few operations: the table points near it. The first time, all segments are compared with the next one.
func reads(t *testing.T, d *world.Disk, j *journalfile.Journal, wrote []record.Sealed) {
	t.Helper()
	if len(wrote) > 0 {
		_, err := j.Read(min(wrote[0].LSN, wrote[len(wrote)-1].LSN))
		must(t, err)
	}
	for _, want := range wrote {
		before := d.Ops
		if got, err := j.Read(want.LSN); err != nil || !same(got, want) {
			t.Fatalf("reading %v: %v, %v", want.LSN, got, err)
		}
		if ops := d.Ops - before; ops > 7 { // open, the size twice, the start and what the segment repeats, and a read or two
			t.Fatalf("reading %v took %d operations", want.LSN, ops)
		}
	}
	for _, lsn := range []types.LSN{0, types.LSN(len(wrote)) + 1, types.MaxLSN + 9} {
		if _, err := j.Read(lsn); !errors.Is(err, journalfile.ErrGone) {
			t.Fatalf("reading %v, which is not there: %v", lsn, err)
		}
	}
}

// large makes n frames of several KB, so that segments have many spots.
func large(t *testing.T, j *journalfile.Journal, n int) []record.Sealed {
	t.Helper()
	var arena []byte
	var batch []event.Frame
	memo := make([]byte, types.MaxMemo)
	for i := range n {
		lsn, off := j.Durable()+types.LSN(i)+1, uint32(len(arena))
		arena = record.Begin(arena, lsn, types.Time(lsn))
		for range 20 {
			arena, _ = record.Add(arena, off, &record.Record{Kind: record.Posted, Op: event.Transfer, Memo: memo, Seq: types.Seq(lsn)})
		}
		batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off})
	}
	sealed, err := j.Write(arena, batch)
	must(t, err)
	_, err = j.Sync()
	must(t, err)
	return sealed
}

// TestReadFindsEveryFrame: over many segments with many spots, written in this run or earlier
// ones, with at most shelf files open.
func TestReadFindsEveryFrame(t *testing.T) {
	d := world.NewDisk()
	var wrote []record.Sealed
	for life := range 3 {
		j, _, _ := recovered(t, d)
		reads(t, d, j, wrote)
		j.Roll = int64(1000 * (1 + 200*life))
		for range 40 {
			wrote = append(wrote, add(t, j, 3)...)
			wrote = append(wrote, large(t, j, 3)...)
		}
		reads(t, d, j, wrote)
		slices.Reverse(wrote)
		reads(t, d, j, wrote)
		slices.Reverse(wrote)
		if n := d.Handles(); n < 2 || n > 9 {
			t.Fatalf("%d files open", n)
		}
		must(t, j.Close())
	}
	if n := len(names(t, d)); n < 40 {
		t.Fatalf("only %d segments", n)
	}
}

// TestReadReturnsDurableFramesOnly: a written frame is not found before it is synced.
func TestReadReturnsDurableFramesOnly(t *testing.T) {
	j := open(t, world.NewDisk(), types.MaxSegment)
	arena, batch := frames(1, 1, 0)
	_, err := j.Write(arena, batch)
	must(t, err)
	if _, err := j.Read(1); !errors.Is(err, journalfile.ErrGone) {
		t.Fatalf("read before it was durable: %v", err)
	}
	_, err = j.Sync()
	must(t, err)
	if _, err := j.Read(1); err != nil {
		t.Fatal(err)
	}
}

// TestReadOfMovedSegmentReturnsErrGone: only the frames of the removed segment are gone.
func TestReadOfMovedSegmentReturnsErrGone(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, startSize+1)
	for range 4 {
		add(t, j, 2)
	}
	must(t, d.Remove("00000002.seg"))
	for lsn := types.LSN(1); lsn <= 8; lsn++ {
		_, err := j.Read(lsn)
		if gone := lsn == 3 || lsn == 4; gone != errors.Is(err, journalfile.ErrGone) || !gone && err != nil {
			t.Fatalf("reading %v: %v", lsn, err)
		}
	}
}

// TestReadDetectsRot: a frame with a bad checksum is not returned. Damage before a frame loses
// only the root there, which is part of its receipt.
func TestReadDetectsRot(t *testing.T) {
	image, things, sealed := tiny(t)
	one, two := things[2], things[3]
	for off := things[1].off; off < things[4].off; off++ {
		d := disk(t, map[string][]byte{first: image})
		j, _, _ := recovered(t, d)
		d.Rot(fixed{"disk/rot/byte": off})
		s, err := j.Read(2)
		damage := (*journalfile.Damage)(nil)
		root := one.off + one.size - 4 - 32
		switch lost := off >= two.off || off >= root && off < root+32; {
		case lost && (!errors.As(err, &damage) || damage.Segment != first || damage.From > 2 || damage.To < 2):
			t.Fatalf("byte %d: %v", off, err)
		case !lost && (err != nil || !same(s, sealed[1])):
			t.Fatalf("byte %d, not of the frame: %+v, %v", off, s, err)
		}
		must(t, j.Close())
	}
}

// fixed returns fixed choices for some sites, and 0 for others.
type fixed map[string]int

func (f fixed) Choose(site string, _ int) int { return f[site] }

// TestReadWhileWriting: readers get every durable frame as it was sealed, while segments are
// added and removed.
func TestReadWhileWriting(t *testing.T) {
	dir, err := fs.Make(t.TempDir())
	must(t, err)
	j, _, err := journalfile.Recover(dir, ours, nil)
	must(t, err)
	j.Roll = 4000
	defer func() { must(t, j.Close()) }()
	add(t, j, 3)
	var readers sync.WaitGroup
	written := make(chan struct{})
	defer readers.Wait()
	defer close(written)
	for n := range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for dice := types.NewRand(uint64(n)); ; {
				lsn := types.LSN(1 + dice.Uint64n(uint64(j.Durable())))
				body, _ := frames(lsn, 1, 0)
				if s, err := j.Read(lsn); err != nil || s.LSN != lsn || !bytes.Equal(s.Body, body) {
					t.Errorf("reading %v of %v: %v", lsn, j.Durable(), err)
					return
				}
				select {
				case <-written:
					return
				default:
				}
			}
		}()
	}
	for range 200 {
		add(t, j, 3)
	}
}

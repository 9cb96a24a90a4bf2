package journalfile_test

import (
	"errors"
	"slices"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// still is a directory that rejects changes.
type still struct{ fs.FS }

var errChanged = errors.New("a scan changed the directory")

func (still) Create(string) (fs.File, error) { return nil, errChanged }
func (still) Rename(string, string) error    { return errChanged }
func (still) Remove(string) error            { return errChanged }
func (still) SyncDir() error                 { return errChanged }

// TestScanReportsWithoutChanges returns what recovery would find, with or without a torn tail.
func TestScanReportsWithoutChanges(t *testing.T) {
	d, wrote := part(t)
	for every := (world.Odometer{}); every.Next(); {
		after := d.Copy()
		after.Crash(&every)
		var k kept
		scanned, err := journalfile.Scan(still{after}, k.each, nil)
		must(t, err)
		if !slices.EqualFunc(k.frames, wrote[:len(k.frames)], same) {
			t.Fatalf("%d frames that were never written", len(k.frames))
		}
		if _, found, back := recovered(t, after); found != scanned || len(back) != len(k.frames) {
			t.Fatalf("scanned %+v, recovered %+v", scanned, found)
		}
	}
	if found, err := journalfile.Scan(still{world.NewDisk()}, nil, nil); err != nil || found != (journalfile.Found{}) {
		t.Fatalf("an empty directory: %+v, %v", found, err)
	}
}

// TestProgressReachesTotal counts from 0 to all bytes.
func TestProgressReachesTotal(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, 100_000)
	for range 100 {
		large(t, j, 5)
	}
	must(t, j.Close())
	var last journalfile.Progress
	steps := 0
	found, err := journalfile.Scan(d, nil, func(p journalfile.Progress) {
		if p.Done < last.Done || p.Last < last.Last || p.Done > p.Total || p.Segment < last.Segment {
			t.Fatalf("%+v after %+v", p, last)
		}
		last, steps = p, steps+1
	})
	must(t, err)
	if steps < 3 || last.Done != last.Total || last.Total != found.Bytes || last.Last != found.Last {
		t.Fatalf("%d steps, the last %+v; found %+v", steps, last, found)
	}
}

// TestScanDeliversInPieces: memory is bounded by the size of a delivery, and delivered frames
// stay valid.
func TestScanDeliversInPieces(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	var wrote []record.Sealed
	for range 60 {
		wrote = append(wrote, large(t, j, 10)...)
	}
	must(t, j.Close())
	var pieces [][]record.Sealed
	_, err := journalfile.Scan(d, func(all []record.Sealed) error {
		pieces = append(pieces, all)
		return nil
	}, nil)
	must(t, err)
	for _, p := range pieces {
		bytes := 0
		for _, s := range p {
			bytes += len(s.Body)
		}
		if bytes > 2<<20 {
			t.Fatalf("a piece of %d bytes", bytes)
		}
	}
	if back := slices.Concat(pieces...); len(pieces) < 3 || !slices.EqualFunc(back, wrote, same) {
		t.Fatalf("%d frames in %d pieces, want %d", len(back), len(pieces), len(wrote))
	}
}

// TestCallbackErrorStopsRecovery: if the callback returns an error, recovery ends and the disk is
// unchanged.
func TestCallbackErrorStopsRecovery(t *testing.T) {
	d := world.NewDisk()
	add(t, open(t, d, types.MaxSegment), 3)
	before := files(t, d)
	no := errors.New("not mine")
	_, _, err := journalfile.Recover(d, ours, func([]record.Sealed) error { return no })
	if !errors.Is(err, no) || errors.Is(err, journalfile.ErrDamaged) || files(t, d) != before {
		t.Fatalf("%v\n%s", err, files(t, d))
	}
}

// TestReadErrorIsNotDamage: a disk that does not read is not a damaged journal.
func TestReadErrorIsNotDamage(t *testing.T) {
	d := world.NewDisk()
	add(t, open(t, d, types.MaxSegment), 3)
	d.FailRead = true
	_, _, err := journalfile.Recover(d, ours, nil)
	if !errors.Is(err, world.ErrRead) || errors.Is(err, journalfile.ErrDamaged) {
		t.Fatal(err)
	}
	if d.Handles() != 1 { // of the first journal
		t.Fatalf("%d files are still open", d.Handles())
	}
}

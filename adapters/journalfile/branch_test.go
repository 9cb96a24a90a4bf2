package journalfile_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// branched returns a journal whose frames after one belong to another history; frames and
// segments are at the same places as in every other.
func branched(t *testing.T, behind types.LSN) (d *world.Disk, sealed []record.Sealed) {
	t.Helper()
	d = world.NewDisk()
	j := open(t, d, 600)
	for range 7 {
		lsn := j.Durable() + 1
		arena, batch := frames(lsn, 1, salted(lsn, behind))
		more, next := frames(lsn+1, 1, salted(lsn+1, behind))
		next[0].Off = uint32(len(arena))
		all, err := j.Write(append(arena, more...), append(batch, next...))
		must(t, err)
		_, err = j.Sync()
		must(t, err)
		sealed = append(sealed, all...)
	}
	must(t, j.Close())
	if len(names(t, d)) < 3 {
		t.Fatal("too few segments to tell")
	}
	return d, sealed
}

func salted(lsn, behind types.LSN) uint64 {
	if lsn > behind {
		return 77
	}
	return 66
}

// TestReadingContinuesAcrossBranch: if a journal branches, a reading at a frame of one branch
// continues in the other if both have the frame, and nowhere else.
func TestReadingContinuesAcrossBranch(t *testing.T) {
	whole, sealed := branched(t, types.MaxLSN)
	for behind := range types.LSN(len(sealed)) {
		_, other := branched(t, behind)
		for _, s := range other {
			var k kept
			_, err := journalfile.Reading{From: after(s), Each: k.each}.Scan(still{whole})
			if s.LSN <= behind && (err != nil || !slices.EqualFunc(k.frames, sealed[s.LSN:], same)) {
				t.Fatalf("branched behind %v, at %v: %d frames, %v", behind, s.LSN, len(k.frames), err)
			}
			if s.LSN > behind && (!errors.Is(err, journalfile.ErrApart) || len(k.frames) > 0) {
				t.Fatalf("branched behind %v, at %v: %d frames, %v", behind, s.LSN, len(k.frames), err)
			}
		}
	}
}

// TestForeignFrameIsNotDelivered: if a frame, other than the first, is replaced by a frame of
// another history with a valid checksum, neither it nor any later frame is delivered.
func TestForeignFrameIsNotDelivered(t *testing.T) {
	whole, sealed := branched(t, types.MaxLSN)
	foreign, others := branched(t, 0)
	for i := 1; i < len(sealed); i++ {
		s := sealed[i]
		d, swapped := whole.Copy(), 0
		for _, name := range names(t, d) {
			text, theirs := read(t, d, name), read(t, foreign, name)
			at := bytes.Index(text, s.Body)
			if at < 0 {
				continue
			}
			from, to := at-8, at+len(s.Body)+32+4 // magic and length; root and sum
			copy(text[from:to], theirs[from:to])
			if !bytes.Contains(text, others[i].Body) {
				t.Fatalf("frame %v is not there", s.LSN)
			}
			d = disk(t, spoilt(t, d, name, text))
			swapped++
		}
		if swapped != 1 {
			t.Fatalf("frame %v was swapped %d times", s.LSN, swapped)
		}
		var k kept
		_, err := journalfile.Scan(still{d}, k.each, nil)
		last := i >= len(sealed)-2 // its batch is not proved durable
		if !slices.EqualFunc(k.frames, sealed[:i], same) || errors.Is(err, journalfile.ErrDamaged) == last {
			t.Fatalf("foreign frame %v: %d are delivered, %v", s.LSN, len(k.frames), err)
		}
	}
}

// spoilt returns the files of a disk with one of them replaced.
func spoilt(t *testing.T, d *world.Disk, name string, text []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{name: text}
	for _, other := range names(t, d) {
		if other != name {
			all[other] = read(t, d, other)
		}
	}
	return all
}

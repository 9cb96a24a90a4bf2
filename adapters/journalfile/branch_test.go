package journalfile_test

import (
	"bytes"
	"encoding/binary"
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
	return branchedInto(t, behind, 600)
}

func branchedInto(t *testing.T, behind types.LSN, roll int64) (d *world.Disk, sealed []record.Sealed) {
	t.Helper()
	d = world.NewDisk()
	j := open(t, d, roll)
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

// TestSegmentOfBranchIsNotFolded: if a segment is replaced by that of a copy that went on otherwise, with as many frames or with fewer, no
// frame of it is delivered or read. All before it are delivered.
func TestSegmentOfBranchIsNotFolded(t *testing.T) {
	whole, sealed := branchedInto(t, types.MaxLSN, 300)
	all := names(t, whole)
	for n := 1; n < len(all)-2; n++ {
		name := all[n]
		first := types.LSN(binary.LittleEndian.Uint64(read(t, whole, name)[20:]))
		other, _ := branchedInto(t, first-1, 300)
		theirs := read(t, other, name)
		second := startSize + 4 + bytes.Index(theirs[startSize+4:], []byte("MNB1"))
		for what, text := range map[string][]byte{"as many frames": theirs, "fewer": theirs[:second]} {
			d := disk(t, spoilt(t, whole, name, text))
			var k kept
			j, _, err := journalfile.Recover(d, ours, k.each)
			if !errors.Is(err, journalfile.ErrDamaged) || !slices.EqualFunc(k.frames, sealed[:first-1], same) {
				t.Fatalf("%s with %s: %d frames are delivered, want %d; %v", name, what, len(k.frames), first-1, err)
			}
			if s, err := j.Read(first); !errors.Is(err, journalfile.ErrDamaged) {
				t.Errorf("%s with %s: read %+v, %v", name, what, s, err)
			}
			must(t, j.Close())
		}
	}
}

// TestProofs: the latest proof decides of whose frame there is a segment, and an older one only of segments that do not lead to it.
func TestProofs(t *testing.T) {
	whole, sealed := branchedInto(t, types.MaxLSN, 300)
	all := names(t, whole)
	first := func(n int) types.LSN { return types.LSN(binary.LittleEndian.Uint64(read(t, whole, all[n])[20:])) }
	last, end := len(all)-1, sealed[len(sealed)-1]
	proof := func(lsn types.LSN) journalfile.Proof {
		return journalfile.Proof{LSN: lsn, Root: sealed[lsn-1].Root, Source: "a file"}
	}
	wrong := proof(2)
	wrong.Root[0]++
	missing := journalfile.Proof{LSN: end.LSN + 9, Root: types.Root{1}, Source: "a mark"}
	tail, _ := branchedInto(t, first(last)-1, 300)
	middle, _ := branchedInto(t, first(1)-1, 300)
	two, _ := branchedInto(t, first(last-1)-1, 300)
	before, _ := branchedInto(t, first(last-1)-2, 300)
	for what, c := range map[string]struct {
		disk   *world.Disk
		proofs []journalfile.Proof
		lost   []types.LSN // the first and the last
	}{
		"the end is proven": {whole, []journalfile.Proof{proof(end.LSN)}, nil},
		"the end is proven, and an older one contradicts": {whole, []journalfile.Proof{wrong, proof(end.LSN)}, nil},
		"the last segment is of a branch": {disk(t, spoilt(t, whole, all[last], read(t, tail, all[last]))), []journalfile.Proof{proof(first(last)), missing},
			[]types.LSN{first(last), end.LSN + 9}},
		"the last two segments are of a branch, and the proof is of the first": {disk(t, spoilt(t, disk(t, spoilt(t, whole, all[last], read(t, two, all[last]))), all[last-1], read(t, two, all[last-1]))),
			[]journalfile.Proof{proof(first(last - 1))}, []types.LSN{first(last - 1), first(last) - 1}},
		"the last two segments are of a branch, and the proof is before them": {disk(t, spoilt(t, disk(t, spoilt(t, whole, all[last], read(t, before, all[last]))), all[last-1], read(t, before, all[last-1]))),
			[]journalfile.Proof{proof(first(last-1) - 1)}, []types.LSN{first(last - 1), first(last) - 1}},
		"a segment is of a branch, and nothing shows what is before": {disk(t, spoilt(t, whole, all[1], read(t, middle, all[1]))), []journalfile.Proof{proof(end.LSN)},
			[]types.LSN{1, first(2) - 1}},
		"a segment is of a branch, and what is before is proven": {disk(t, spoilt(t, whole, all[1], read(t, middle, all[1]))), []journalfile.Proof{proof(1), proof(end.LSN)},
			[]types.LSN{first(1), first(2) - 1}},
		"a segment is of a branch, and proven to be": {disk(t, spoilt(t, whole, all[1], read(t, middle, all[1]))), []journalfile.Proof{proof(first(1)), proof(end.LSN)},
			[]types.LSN{1, first(2) - 1}},
	} {
		var r journalfile.Reading
		var err error
		if r.Proof, r.Older, err = journalfile.Reached(c.disk, c.proofs); err != nil {
			t.Fatal(err)
		}
		r.Known = c.proofs[len(c.proofs)-1].LSN
		var lost []types.LSN
		_, err = r.Inspect(c.disk, func(d *journalfile.Damage) error {
			if lost == nil {
				lost = []types.LSN{d.From, 0}
			}
			lost[1] = d.To
			return nil
		})
		if err != nil || !slices.Equal(lost, c.lost) {
			t.Errorf("%s: lost %v, want %v; %v", what, lost, c.lost, err)
		}
		if c.lost == nil {
			continue
		}
		j, _, _ := r.Recover(c.disk, ours) // damaged
		for _, s := range sealed {
			got, err := j.Read(s.LSN)
			if isLost := c.lost[0] <= s.LSN && s.LSN <= c.lost[1]; err == nil && (isLost || !same(got, s)) || err != nil && !isLost && s.LSN < c.lost[0] {
				t.Errorf("%s: reading %v: %v", what, s.LSN, err)
			}
		}
		must(t, j.Close())
	}
}

// TestProofBehindSnapshot: a start after a frame that a segment has does not pass over a later one of it that a proof contradicts.
func TestProofBehindSnapshot(t *testing.T) {
	whole, sealed := branched(t, types.MaxLSN)
	at, next := sealed[0], sealed[2] // of one segment
	wrong := journalfile.Proof{LSN: next.LSN, Root: types.Root{1}, Source: "a mark"}
	var k kept
	_, err := journalfile.Reading{From: after(at), Proof: wrong, Each: k.each}.Scan(still{whole})
	if !errors.Is(err, journalfile.ErrDamaged) || len(k.frames) != int(next.LSN-at.LSN)-1 {
		t.Errorf("%d frames, %v", len(k.frames), err)
	}
}

// TestSnapshotOfCopy: a snapshot of a copy that went on otherwise does not prove the segment of the copy that has its frame, if the segments after
// it do not continue that, or it ends too early.
func TestSnapshotOfCopy(t *testing.T) {
	whole, sealed := branchedInto(t, types.MaxLSN, 300)
	all := names(t, whole)
	first := types.LSN(binary.LittleEndian.Uint64(read(t, whole, all[2])[20:]))
	other, theirs := branchedInto(t, first-1, 300)
	text := read(t, other, all[2])
	last := sealed[len(sealed)-1]
	mark := journalfile.Proof{LSN: last.LSN, Root: last.Root, Source: "a mark"}
	earlier, begun := branchedInto(t, first-2, 300)
	r := journalfile.Reading{From: after(begun[first-2]), Proof: mark}
	if _, err := r.Scan(disk(t, spoilt(t, whole, all[2], read(t, earlier, all[2])))); !errors.Is(err, journalfile.ErrApart) {
		t.Errorf("a snapshot in front of the segment: %v", err)
	}
	for what, text := range map[string][]byte{"as many frames": text, "fewer": text[:bytes.LastIndex(text, []byte("MNB1"))]} {
		r := journalfile.Reading{From: after(theirs[first-1])}
		d := disk(t, spoilt(t, whole, all[2], text))
		var err error
		r.Proof, r.Older, err = journalfile.Reached(d, []journalfile.Proof{{LSN: r.From.LSN, Root: r.From.Root, Source: "a snapshot"}, mark})
		must(t, err)
		if _, err := r.Scan(d); !errors.Is(err, journalfile.ErrApart) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCopyOfLastSegment: a copy of the last segment that was made earlier, and a segment that a copy of the node began behind it, take no frames
// from the last one, which has more. Nothing outside of the segments is needed to see that.
func TestCopyOfLastSegment(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	sealed := add(t, j, 3)
	sealed = append(sealed, add(t, j, 2)...)
	copied := d.Copy()
	sealed = append(sealed, add(t, j, 4)...)
	must(t, j.Close())
	older := bytes.TrimRight(read(t, copied, first), "\x00")
	other, _, _ := recovered(t, copied)
	addSalted(t, other, 6, 9)
	must(t, other.Close())
	for what, text := range map[string][]byte{"an older copy": older, "a branch": read(t, copied, "00000002.seg")} {
		t.Run(what, func(t *testing.T) {
			mixed := disk(t, map[string][]byte{first: read(t, d, first), "00000002.seg": text})
			damage, lost := agree(t, mixed, sealed)
			if len(damage) != 1 || damage[0].Segment != "00000002.seg" || len(lost) > 0 {
				t.Errorf("damage: %v", damage)
			}
			var k kept
			j, _, err := journalfile.Recover(mixed, ours, k.each)
			if !errors.Is(err, journalfile.ErrDamaged) || !slices.EqualFunc(k.frames, sealed, same) {
				t.Errorf("%d frames are delivered, want %d: %v", len(k.frames), len(sealed), err)
			}
			var ranged []record.Sealed
			must(t, j.Range(1, func(s record.Sealed) error { ranged = append(ranged, s); return nil }))
			if !slices.EqualFunc(ranged, sealed, same) {
				t.Errorf("%d frames are read, want %d", len(ranged), len(sealed))
			}
			must(t, j.Close())
		})
	}
}

// TestOwnedRangeIsNotCompared: a range of frames that the node has read at its start or written is read without a look at proofs, as it is often.
func TestOwnedRangeIsNotCompared(t *testing.T) {
	whole, sealed := branchedInto(t, types.MaxLSN, 300)
	last := sealed[len(sealed)-1]
	operations := func(p journalfile.Proof) (count int) {
		d := whole.Copy()
		j, _, err := journalfile.Reading{Known: last.LSN, Proof: p}.Recover(d, ours)
		must(t, err)
		d.OnOperation = func(string, string) { count++ }
		must(t, j.Range(last.LSN, func(record.Sealed) error { return nil }))
		d.OnOperation = nil
		must(t, j.Close())
		return count
	}
	without, with := operations(journalfile.Proof{}), operations(journalfile.Proof{LSN: last.LSN, Root: last.Root, Source: "a file"})
	if without == 0 || with != without {
		t.Errorf("%d operations with a proof, %d without", with, without)
	}
}

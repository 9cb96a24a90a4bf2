package journalfile_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// TestRebuildLastBatchHeader: only evidence from outside proves the last batch. With it, the batch is
// rebuilt; without it, the batch is a torn tail.
func TestRebuildLastBatchHeader(t *testing.T) {
	image, things, sealed := tiny(t)
	image[things[7].off+9] ^= 1
	for _, c := range []struct {
		name    string
		reading journalfile.Reading
		frames  int
	}{
		{"no evidence", journalfile.Reading{}, 4},
		{"known", journalfile.Reading{Known: 6}, 6},
		{"evidence", journalfile.Reading{Evidence: 6}, 6},
		{"evidence of a part", journalfile.Reading{Evidence: 5}, 4},
	} {
		var k kept
		var places []journalfile.Damage
		c.reading.Each = k.each
		c.reading.Repaired = func(d *journalfile.Damage) { places = append(places, *d) }
		found, err := c.reading.Scan(disk(t, map[string][]byte{first: image}))
		if err != nil || !slices.EqualFunc(k.frames, sealed[:c.frames], same) || found.Repaired != len(places) {
			t.Fatalf("%s: %d frames, found %+v, %v", c.name, len(k.frames), found, err)
		}
		if c.frames == 6 && (len(places) != 1 || places[0].Segment != first || places[0].Offset != int64(things[7].off) || places[0].From != 5 || places[0].To != 4) {
			t.Fatalf("%s: %v", c.name, places)
		}
	}
}

// TestRebuildTwoHeaders: two damaged headers, one after the other.
func TestRebuildTwoHeaders(t *testing.T) {
	image, things, sealed := tiny(t)
	image[things[1].off] ^= 1
	image[things[4].off+4] ^= 1
	_, found, back := recovered(t, disk(t, map[string][]byte{first: image}))
	if !slices.EqualFunc(back, sealed, same) || found.Repaired != 2 {
		t.Fatalf("%d frames, found %+v", len(back), found)
	}
}

// TestResumeInRebuiltBatch: a reading begins after any frame of a batch with a damaged header.
func TestResumeInRebuiltBatch(t *testing.T) {
	image, things, sealed := tiny(t)
	image[things[4].off+20] ^= 1
	for _, s := range sealed {
		var k kept
		found, err := journalfile.Reading{From: after(s), Each: k.each}.Scan(disk(t, map[string][]byte{first: image}))
		if err != nil || !slices.EqualFunc(k.frames, sealed[s.LSN:], same) || found.Last != types.LSN(len(sealed)) {
			t.Fatalf("after %v: %d frames, found %+v, %v", s.LSN, len(k.frames), found, err)
		}
	}
}

// TestRebuildNeverTakesStaleFrame: recovery discarded a whole frame behind a torn header, and wrote
// another frame 2 in a segment whose start is damaged. Evidence of frame 2 must not prove the stale one.
func TestRebuildNeverTakesStaleFrame(t *testing.T) {
	f := &forge{}
	f.start(1, 0, 1)
	f.batch(0, 1, 1, forged, 1)
	f.frames(1)
	root := f.prev
	torn := f.Len()
	f.batch(1, 1, 2, forged, 1)
	f.frames(2)
	stale := bytes.Clone(f.Bytes())
	stale[torn+10] ^= 1

	f.Reset()
	f.prev = root
	f.start(2, 1, 2)
	f.batch(1, 2, 2, forged, 1)
	f.frames(2)
	for _, edit := range []int{0, 20, startSize + 3} {
		later := bytes.Clone(f.Bytes())
		later[10], later[edit] = later[10]^1, later[edit]^1
		d := disk(t, map[string][]byte{first: stale, "00000002.seg": later})
		found, err := journalfile.Reading{Known: 2, Evidence: 2}.Scan(d)
		switch isRebuilt := edit < startSize; { // the start, not the header
		case isRebuilt && (err != nil || found.Root != f.prev || found.Repaired != 1),
			!isRebuilt && (!errors.Is(err, journalfile.ErrDamaged) || found.Last != 1 || found.Repaired != 0):
			t.Fatalf("byte %d: found %+v, %v", edit, found, err)
		}
	}
}

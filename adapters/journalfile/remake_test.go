package journalfile_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// TestDamagedStartIsRebuilt: a start that is damaged or lost costs no frame, in any segment. Each start of the node, an inspection and reads
// rebuild it. Two starts in a row are rebuilt from what is left of them.
func TestDamagedStartIsRebuilt(t *testing.T) {
	segments, sealed := several(t)
	flipped := func(text []byte, n int) []byte { text[n] ^= 4; return text }
	lost := func(text []byte, _ int) []byte { clear(text[:startSize]); return text }
	for _, name := range slices.Sorted(maps.Keys(segments)) {
		for n := range startSize + 1 {
			edit := flipped
			if n == startSize {
				edit = lost
			}
			m := changed(segments, name, edit(slices.Clone(segments[name]), n))
			d := disk(t, m)
			damage, lost, _ := inspected(t, d)
			if len(damage) != 1 || damage[0].Segment != name || len(lost) > 0 {
				if name == "00000008.seg" && len(lost) == 0 { // it has no frame
					continue
				}
				t.Fatalf("%s, byte %d: %v", name, n, damage)
			}
			var k kept
			j, found, err := journalfile.Recover(d, ours, k.each)
			if err != nil || found.Repaired != 1 || !slices.EqualFunc(k.frames, sealed, same) {
				t.Fatalf("%s, byte %d: %d frames, %+v, %v", name, n, len(k.frames), found, err)
			}
			for lsn := types.LSN(1); lsn <= found.Last; lsn++ {
				if s, err := j.Read(lsn); err != nil || !same(s, sealed[lsn-1]) {
					t.Fatalf("%s, byte %d: reading %v: %v", name, n, lsn, err)
				}
			}
			must(t, j.Close())
		}
	}
	two := changed(segments, "00000003.seg", flipped(slices.Clone(segments["00000003.seg"]), 20))
	two = changed(two, "00000004.seg", flipped(slices.Clone(segments["00000004.seg"]), 20))
	if found, err := journalfile.Scan(disk(t, two), nil, nil); err != nil || found.Repaired != 2 {
		t.Errorf("two starts: %+v, %v", found, err)
	}
}

// TestStartIsNotRebuiltFromAnother: without the root before its first frame, a start is not rebuilt.
func TestStartIsNotRebuiltFromAnother(t *testing.T) {
	segments, _ := several(t)
	text := slices.Clone(segments["00000004.seg"])
	clear(text[:startSize])
	m := changed(segments, "00000004.seg", text)
	delete(m, "00000003.seg") // it has that root
	if found, err := journalfile.Scan(disk(t, m), nil, nil); !errors.Is(err, journalfile.ErrDamaged) || found.Repaired != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	salted := disk(t, segments)
	j := open(t, salted, types.MaxSegment)
	addSalted(t, j, 1, 9)
	must(t, j.Close())
	last := read(t, salted, "00000009.seg")
	clear(last[:startSize])
	m = changed(segments, "00000009.seg", last)
	delete(m, "00000008.seg") // and the segment before ends elsewhere
	m["00000007.seg"] = m["00000007.seg"][:startSize+batchSize]
	if found, err := journalfile.Scan(disk(t, m), nil, nil); !errors.Is(err, journalfile.ErrDamaged) {
		t.Errorf("%+v, %v", found, err)
	}
}

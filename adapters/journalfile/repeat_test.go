package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

const second = "00000002.seg"

// repeating returns a journal whose second segment begins with the last frames of the first, more of them behind that, and where these
// frames are in the second.
func repeating(t *testing.T, more int) (segments map[string][]byte, sealed []record.Sealed, at []int) {
	t.Helper()
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	sealed = append(add(t, j, 3), add(t, j, 4)...)
	must(t, j.Close())
	j = open(t, d, types.MaxSegment)
	if more > 0 {
		sealed = append(sealed, add(t, j, more)...)
	}
	must(t, j.Close())
	segments = map[string][]byte{first: read(t, d, first), second: read(t, d, second)}
	for off := startSize + batchHeader; len(at) < 4; {
		at = append(at, off)
		off += len(sealed[2+len(at)].Body) + frameExtra
	}
	return segments, sealed, append(at, at[3]+len(sealed[6].Body)+frameExtra)
}

const (
	batchHeader = 44
	frameExtra  = 44
)

// TestRepeatedFrameIsRepaired: damage among the frames that a segment repeats costs none: each is read from the segment before. A scan, an
// inspection and reads agree, and the node writes on.
func TestRepeatedFrameIsRepaired(t *testing.T) {
	segments, sealed, at := repeating(t, 2)
	cases := map[string]struct {
		from, to int // zeroed
		repaired int
	}{
		"a root and a checksum": {at[1] - 36, at[1], 1},
		"two frames":            {at[1], at[3], 2},
		"parts of three":        {at[1] + 20, at[3] + 5, 3},
		"all":                   {at[0], at[4], 4},
	}
	for off := at[0]; off < at[4]; off++ {
		cases[fmt.Sprint("byte ", off)] = struct{ from, to, repaired int }{off, off, 1}
	}
	for name, c := range cases {
		text := bytes.Clone(segments[second])
		if clear(text[c.from:c.to]); c.from == c.to {
			text[c.from] ^= 4
		}
		d := disk(t, map[string][]byte{first: segments[first], second: text})
		agreed, lost := agree(t, d, sealed)
		var places []*journalfile.Damage
		r := journalfile.Reading{Repaired: func(d *journalfile.Damage) { places = append(places, d) }}
		j, found, err := r.Recover(d, 0)
		if err != nil || found.Last != types.LSN(len(sealed)) || found.Repaired != c.repaired || len(places) != c.repaired || len(agreed) != c.repaired || len(lost) > 0 {
			t.Fatalf("%s: found %+v, %d places, inspected %v; %v", name, found, len(places), agreed, err)
		}
		if p := places[0]; p.Segment != second || !slices.Contains(at, int(p.Offset)) || p.To != p.From-1 {
			t.Fatalf("%s: %v", name, p)
		}
		for _, s := range sealed {
			if got, err := j.Read(s.LSN); err != nil || !same(got, s) {
				t.Fatalf("%s: reading %v: %v", name, s.LSN, err)
			}
		}
		add(t, j, 1)
		must(t, j.Close())
	}
}

// TestRepeatedFrameOfAnotherPast: a damaged frame is taken from the segment before only if something in its own segment shows that it is the
// one: that segment may be of a copy of the journal that went on otherwise.
func TestRepeatedFrameOfAnotherPast(t *testing.T) {
	for _, more := range []int{0, 2} {
		segments, sealed, at := repeating(t, more)
		d := world.NewDisk()
		j := open(t, d, types.MaxSegment)
		add(t, j, 3)
		other := addSalted(t, j, 4, 9)
		must(t, j.Close())
		for name, c := range map[string]struct{ from, to int }{
			"the first":          {at[0] + 20, at[0] + 21},
			"a part of the last": {at[3] + 20, at[3] + 21},
			"the last":           {at[3], at[4]},
			"all":                {at[0], at[4]},
		} {
			text := bytes.Clone(segments[second])
			for off := c.from; off < c.to; off++ {
				text[off] = ^text[off]
			}
			mixed := disk(t, map[string][]byte{first: read(t, d, first), second: text})
			var k kept
			found, err := journalfile.Reading{Each: k.each}.Scan(mixed)
			frames := k.frames[min(3, len(k.frames)):]
			isOne := slices.EqualFunc(frames, sealed[3:3+len(frames)], same) || slices.EqualFunc(frames, other, same)
			if !errors.Is(err, journalfile.ErrDamaged) || found.Repaired != 0 || !isOne {
				t.Errorf("%d more, %s: %d frames, found %+v, %v", more, name, len(k.frames), found, err)
			}
		}
	}
}

// TestFrameDamagedTwice: a frame that is damaged in both segments is lost.
func TestFrameDamagedTwice(t *testing.T) {
	segments, sealed, at := repeating(t, 2)
	for _, text := range segments {
		off := bytes.Index(text, sealed[5].Body)
		text[off+3] ^= 1
	}
	damage, lost := agree(t, disk(t, segments), sealed)
	if len(damage) != 1 || len(lost) != 1 || !lost[6] || damage[0].Offset != int64(at[2]) {
		t.Errorf("damage %v, lost %v", damage, lost)
	}
}

package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// Sizes of the parts around bodies, repeated here because they are frozen.
const (
	startSize = 8 + 68 + 4
	batchSize = 8 + 32 + 4
	frameMore = 8 + 32 + 4
)

// thing is an item of a segment: its offset, and the next frame there.
type thing struct {
	off, size int
	next      types.LSN
	batch     types.LSN // the last frame of its batch
}

// tiny returns a segment of three batches of two frames, its items, and the sealed frames.
func tiny(t testing.TB) (image []byte, things []thing, sealed []record.Sealed) {
	t.Helper()
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	things, off := []thing{{0, startSize, 1, 0}}, startSize
	for range 3 {
		next := j.Durable() + 1
		things, off = append(things, thing{off, batchSize, next, next + 1}), off+batchSize
		for _, s := range add(t, j, 2) {
			things = append(things, thing{off, len(s.Body) + frameMore, s.LSN, next + 1})
			off += things[len(things)-1].size
			sealed = append(sealed, s)
		}
	}
	must(t, j.Close())
	image = read(t, d, first)
	if len(bytes.TrimRight(image, "\x00")) > off || len(image) < off {
		t.Fatalf("%d bytes, want %d and zeros", len(image), off)
	}
	return image, things, sealed
}

func at(things []thing, off int) (thing, bool) {
	for _, th := range things {
		if th.off <= off && off < th.off+th.size {
			return th, true
		}
	}
	return thing{}, false
}

// TestBitFlips flips every bit. Before the last batch, a flip is damage that names the item and
// the frames, and the disk is not changed; a start and the header of a batch are rebuilt. From there on, it is a torn tail: it is cut once, and
// everything before it stays.
func TestBitFlips(t *testing.T) {
	image, things, sealed := tiny(t)
	last := things[len(things)-3]
	for n := range 8 * len(image) {
		off, bit := n/8, byte(1)<<(n%8)
		th, written := at(things, off)
		if !written && bit > 1 {
			continue // all zeros are equal
		}
		flipped := bytes.Clone(image)
		flipped[off] ^= bit
		d := disk(t, map[string][]byte{first: flipped})
		var k kept
		_, found, err := journalfile.Recover(d, ours, k.each)
		whole(t, k.frames)
		switch {
		case off < last.off && (th.size == batchSize || off < startSize):
			if err != nil || !slices.EqualFunc(k.frames, sealed, same) || found.Repaired != 1 || found.CutBytes != 0 {
				t.Fatalf("byte %d, in a start or the header of a batch: %d frames, found %+v, %v", off, len(k.frames), found, err)
			}
			rebuildsAgain(t, d, sealed)
		case off < last.off:
			want := journalfile.Damage{Segment: first, Offset: int64(th.off), From: th.next, To: max(th.batch, 1)}
			damage := (*journalfile.Damage)(nil)
			if !errors.Is(err, journalfile.ErrDamaged) || !errors.As(err, &damage) {
				t.Fatalf("byte %d: found %+v, %v", off, found, err)
			}
			if want.Why = damage.Why; *damage != want || damage.Why == "" {
				t.Fatalf("byte %d: %v, want %v", off, damage, &want)
			}
			if len(k.frames) != int(th.next)-1 || !bytes.Equal(read(t, d, first), flipped) || len(names(t, d)) != 1 {
				t.Fatalf("byte %d: %d frames before the damage, %q on the disk", off, len(k.frames), names(t, d))
			}
		case !written:
			if err != nil || len(k.frames) != len(sealed) || found.CutBytes != uint64(off-last.off-sum(things[len(things)-3:])+1) {
				t.Fatalf("byte %d, behind the end: %d frames, found %+v, %v", off, len(k.frames), found, err)
			}
		default:
			known := types.LSN(4)
			if th == last {
				known = 2 // only the damaged header proved more
			}
			if err != nil || len(k.frames) != int(th.next)-1 || found.Known != known || found.CutBytes == 0 {
				t.Fatalf("byte %d: %d frames, found %+v, %v", off, len(k.frames), found, err)
			}
			onceOnly(t, d, k.frames)
		}
	}
}

// rebuildsAgain checks that a journal with a rebuilt start or header accepts writes, and that a second recovery
// rebuilds it again.
func rebuildsAgain(t *testing.T, d *world.Disk, want []record.Sealed) {
	t.Helper()
	d.Crash(world.Dull{})
	j, found, back := recovered(t, d)
	if !slices.EqualFunc(back, want, same) || found.Repaired != 1 || found.Known != found.Last {
		t.Fatalf("the second time %d frames of %d, found %+v", len(back), len(want), found)
	}
	add(t, j, 1)
	must(t, j.Close())
}

func sum(things []thing) (bytes int) {
	for _, th := range things {
		bytes += th.size
	}
	return bytes
}

// onceOnly checks that recovery cut the tail, that the rest is durable, and that a second
// recovery cuts nothing.
func onceOnly(t *testing.T, d *world.Disk, want []record.Sealed) {
	t.Helper()
	d.Crash(world.Dull{})
	j, found, back := recovered(t, d)
	if !slices.EqualFunc(back, want, same) || found.CutBytes != 0 || found.TailFrames != 0 || found.Known != found.Last {
		t.Fatalf("the second time %d frames of %d, found %+v", len(back), len(want), found)
	}
	add(t, j, 1)
	must(t, j.Close())
}

// TestTruncatedSegment: a segment that is cut anywhere ends after its last whole frame. One disk
// cannot tell that there was more.
func TestTruncatedSegment(t *testing.T) {
	image, things, sealed := tiny(t)
	for off := range image {
		d := disk(t, map[string][]byte{first: image[:off]})
		var k kept
		_, found, err := journalfile.Recover(d, ours, k.each)
		if off < startSize {
			if !errors.Is(err, journalfile.ErrDamaged) {
				t.Fatalf("cut at %d: found %+v, %v", off, found, err)
			}
			continue
		}
		frames, from := len(sealed), off
		if th, torn := at(things, off); torn {
			frames, from = int(th.next)-1, th.off
		}
		cut := len(bytes.TrimRight(image[from:off], "\x00"))
		if err != nil || !slices.EqualFunc(k.frames, sealed[:frames], same) || found.CutBytes != uint64(cut) {
			t.Fatalf("cut at %d: %d frames, want %d; found %+v, want %d bytes cut; %v", off, len(k.frames), frames, found, cut, err)
		}
		onceOnly(t, d, k.frames)
	}
}

// TestDamageBetweenSegments: a segment that does not reach its successor, is missing, belongs to
// another journal, or exists twice.
func TestDamageBetweenSegments(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, startSize+1)
	for range 5 {
		add(t, j, 2)
	}
	must(t, j.Close())
	segments := map[string][]byte{"00000007.seg.tmp": nil} // not even this is removed
	for _, name := range names(t, d) {
		segments[name] = read(t, d, name)
	}
	other := world.NewDisk()
	foreign, _, err := journalfile.Recover(other, ours+1, nil)
	must(t, err)
	foreign.Roll = startSize + 1
	for range 5 {
		addSalted(t, foreign, 2, 1)
	}
	short := segments["00000002.seg"]
	for _, c := range []struct {
		name string
		edit func(map[string][]byte)
		want journalfile.Damage
	}{
		{"cut short", func(m map[string][]byte) { m["00000002.seg"] = short[:len(short)-1] },
			journalfile.Damage{Segment: "00000002.seg", Offset: int64(startSize + batchSize + (len(short)-startSize-batchSize)/2), From: 4, To: 4}},
		{"only its start", func(m map[string][]byte) { m["00000002.seg"] = short[:startSize] },
			journalfile.Damage{Segment: "00000002.seg", Offset: startSize, From: 3, To: 4}},
		{"empty", func(m map[string][]byte) { m["00000003.seg"] = nil },
			journalfile.Damage{Segment: "00000003.seg", From: 5, To: 5}},
		{"missing", func(m map[string][]byte) { delete(m, "00000002.seg") },
			journalfile.Damage{Segment: "00000002.seg", From: 3, To: 4}},
		{"the first missing", func(m map[string][]byte) { delete(m, first) },
			journalfile.Damage{Segment: "00000002.seg", From: 1, To: 2}},
		{"twice", func(m map[string][]byte) { m["00000003.seg"] = short },
			journalfile.Damage{Segment: "00000003.seg", Offset: int64(len(short)), From: 5, To: 6}},
		{"of another journal", func(m map[string][]byte) { m["00000003.seg"] = read(t, other, "00000003.seg") },
			journalfile.Damage{Segment: "00000003.seg", From: 5, To: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := map[string][]byte{}
			for name, text := range segments {
				m[name] = text
			}
			c.edit(m)
			broken := disk(t, m)
			before := files(t, broken)
			j, _, err := journalfile.Recover(broken, ours, nil)
			damage := (*journalfile.Damage)(nil)
			if !errors.As(err, &damage) {
				t.Fatalf("recovered: %v", err)
			}
			if c.want.Why = damage.Why; *damage != c.want {
				t.Fatalf("%v, want %v", damage, &c.want)
			}
			if files(t, broken) != before {
				t.Fatal("the disk was changed")
			}
			readable(t, j, damage.From)
		})
	}
}

// readable checks that a damaged journal is read up to its damage, that the damage is named when
// it is met, and that writes are rejected.
func readable(t *testing.T, j *journalfile.Journal, from types.LSN) {
	t.Helper()
	for lsn := types.LSN(1); lsn < from; lsn++ {
		if s, err := j.Read(lsn); err != nil || s.LSN != lsn {
			t.Fatalf("reading %v before the damage at %v: %v", lsn, from, err)
		}
	}
	damage := (*journalfile.Damage)(nil)
	if _, err := j.Read(from); !errors.As(err, &damage) || damage.From > from || damage.To < from {
		t.Fatalf("reading %v, which is damaged: %v", from, err)
	}
	arena, batch := frames(from, 1, 0)
	if _, err := j.Write(arena, batch); !errors.Is(err, journalfile.ErrDamaged) {
		t.Fatalf("written after damage: %v", err)
	}
	must(t, j.Close())
}

// TestDamageMessage is what an operator reads.
func TestDamageMessage(t *testing.T) {
	image, things, _ := tiny(t)
	image[things[5].off+20] ^= 1 // the second frame of the second batch
	_, _, err := journalfile.Recover(disk(t, map[string][]byte{first: image}), ours, nil)
	want := fmt.Sprintf("journal: 00000001.seg is damaged at byte %d, frames @3 to @4: ", things[5].off)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
}

// TestVector17644: a torn tail ends recovery, is cut once, and the cut is reported.
func TestVector17644(t *testing.T) {
	image, things, sealed := tiny(t)
	torn := things[len(things)-1]
	for _, tail := range [][]byte{
		image[torn.off : torn.off+torn.size-1],                              // half written
		bytes.Repeat([]byte("MNB1 \x00\x00\x00"), 300_000),                  // invalid headers, across the boundary of two reads
		append([]byte("MNF1\xff\xff\xff\xff"), image[:200]...),              // longer than the maximum
		append([]byte("MNF1\x00\x00\x00\x00"), bytes.Repeat(image, 200)...), // the whole segment, repeated
	} {
		d := disk(t, map[string][]byte{first: append(bytes.Clone(image[:torn.off]), tail...)})
		_, found, back := recovered(t, d)
		cut := len(bytes.TrimRight(tail, "\x00"))
		if !slices.EqualFunc(back, sealed[:5], same) || found.CutBytes != uint64(cut) || found.Last != 5 || found.TailFrames != 1 {
			t.Fatalf("%d bytes of tail: %d frames, found %+v", cut, len(back), found)
		}
		onceOnly(t, d, back)
	}
}

// TestRonLedgerTornTail: half of a last write does not prevent a start, and no synced frame is
// lost with it.
func TestRonLedgerTornTail(t *testing.T) {
	d := world.NewDisk()
	j := open(t, d, types.MaxSegment)
	sealed := add(t, j, 3)
	d.FailWrite = true
	arena, batch := frames(4, 2, 0)
	if _, err := j.Write(arena, batch); !errors.Is(err, world.ErrWrite) {
		t.Fatal(err)
	}
	_, found, back := recovered(t, d) // the process ended; the page cache is kept
	if !slices.EqualFunc(back[:3], sealed, same) || found.CutBytes == 0 || found.Last != types.LSN(len(back)) {
		t.Fatalf("%d frames, found %+v", len(back), found)
	}
	onceOnly(t, d, back)
}

// TestLaterBatchProvesEarlierDurable: a whole batch behind a hole proves that earlier frames were
// durable.
func TestLaterBatchProvesEarlierDurable(t *testing.T) {
	image, things, _ := tiny(t)
	clear(image[things[1].off:things[4].off]) // the first batch is zeros
	_, _, err := journalfile.Recover(disk(t, map[string][]byte{first: image}), ours, nil)
	damage := (*journalfile.Damage)(nil)
	if !errors.As(err, &damage) || damage.Offset != int64(things[1].off) || damage.From != 1 || damage.To != 2 {
		t.Fatalf("%v", err)
	}
}

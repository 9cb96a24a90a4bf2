package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// several returns a journal of many segments, some with several batches, some made by recovery
// from a tail, and the sealed frames; the last frame is proved durable.
func several(t testing.TB) (segments map[string][]byte, sealed []record.Sealed) {
	t.Helper()
	d := world.NewDisk()
	for life := range 4 {
		j := open(t, d, int64(300+400*life))
		for n := range 4 {
			sealed = append(sealed, add(t, j, 1+n%3)...)
		}
		must(t, j.Close())
	}
	j := open(t, d, types.MaxSegment)
	must(t, j.Close())
	segments = map[string][]byte{}
	for _, name := range names(t, d) {
		segments[name] = read(t, d, name)
	}
	return segments, sealed
}

// inspectedAs returns the damage that an inspection finds, and the lost frames.
func inspectedAs(d fs.FS) (all []journalfile.Damage, lost map[types.LSN]bool, err error) {
	lost = map[types.LSN]bool{}
	_, err = journalfile.Reading{}.Inspect(d, func(d *journalfile.Damage) error {
		all = append(all, *d)
		for lsn := d.From; lsn <= d.To; lsn++ {
			lost[lsn] = true
		}
		return nil
	})
	return all, lost, err
}

// inspected returns the damage that an inspection finds, and the lost frames.
func inspected(t tb, d *world.Disk) (all []journalfile.Damage, lost map[types.LSN]bool, found journalfile.Found) {
	t.Helper()
	lost = map[types.LSN]bool{}
	found, err := journalfile.Reading{}.Inspect(still{d}, func(d *journalfile.Damage) error {
		if n := len(all); n > 0 && d.From <= all[n-1].To {
			t.Fatalf("%v comes after %v", d, &all[n-1])
		}
		all = append(all, *d)
		for lsn := d.From; lsn <= d.To; lsn++ {
			lost[lsn] = true
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return all, lost, found
}

type tb interface {
	Fatal(...any)
	Helper()
	Fatalf(string, ...any)
}

// agree checks that the frames that an inspection reports lost are those that a node cannot read,
// and that all others are as sealed.
func agree(t tb, d *world.Disk, sealed []record.Sealed) (damage []journalfile.Damage, lost map[types.LSN]bool) {
	t.Helper()
	scanned, scanning := journalfile.Scan(still{d}, nil, nil)
	damage, lost, found := inspected(t, d)
	if errors.Is(scanning, journalfile.ErrDamaged) != (len(damage) > scanned.Repaired) || found.Damaged != (len(damage) > 0) {
		t.Fatalf("scanned: %v, %d headers rebuilt; inspected: %v", scanning, scanned.Repaired, damage)
	}
	if scanning == nil {
		if scanned.Last != found.Last || scanned.CutBytes != found.CutBytes || len(lost) > 0 {
			t.Fatalf("scanned %+v, inspected %+v, %v", scanned, found, damage)
		}
		return damage, lost
	}
	first := &journalfile.Damage{}
	if !errors.As(scanning, &first) || damage[0].Segment > first.Segment {
		t.Fatalf("scanned: %v; inspected: %v", first, &damage[0])
	}
	j, recovery, err := journalfile.Recover(d, ours, nil)
	if !errors.Is(err, journalfile.ErrDamaged) || recovery.Known != max(found.Known, recovery.Known) {
		t.Fatalf("recovered: %v, %+v; inspected %+v", err, recovery, found)
	}
	for lsn := types.LSN(1); lsn <= types.LSN(len(sealed)); lsn++ {
		s, err := j.Read(lsn)
		switch {
		case err == nil && !same(s, sealed[lsn-1]):
			t.Fatalf("reading %v: another frame", lsn)
		case err == nil == lost[lsn] && lsn <= recovery.Known:
			t.Fatalf("reading %v: %v; lost: %v", lsn, err, damage)
		case err != nil && !errors.Is(err, journalfile.ErrDamaged) && !errors.Is(err, journalfile.ErrGone):
			t.Fatalf("reading %v: %v", lsn, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	return damage, lost
}

// TestDamagedByteLosesOneFrame: damage of any byte loses at most the frame that has it, and the
// next frame if the byte is in the root that both share.
func TestDamagedByteLosesOneFrame(t *testing.T) {
	segments, sealed := several(t)
	damages, step := 0, 1
	if testing.Short() {
		step = 17
	}
	for name, text := range segments {
		for off := 0; off < len(bytes.TrimRight(text, "\x00")); off += step {
			m := map[string][]byte{}
			for n, b := range segments {
				m[n] = b
			}
			m[name] = bytes.Clone(text)
			m[name][off] ^= 0x10
			damage, lost := agree(t, disk(t, m), sealed)
			if damages += len(damage); len(lost) > 2 || len(damage) > 2 {
				t.Fatalf("%s, byte %d: %v", name, off, damage)
			}
		}
	}
	if damages < 1000/step {
		t.Fatalf("%d bytes were missed", damages)
	}
}

// TestInspectRandomDamage compares Inspect and Read under random damage.
func TestInspectRandomDamage(t *testing.T) {
	segments, sealed := several(t)
	all := slices.Sorted(func(yield func(string) bool) {
		for name := range segments {
			if !yield(name) {
				return
			}
		}
	})
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		m := map[string][]byte{}
		for name, text := range segments {
			m[name] = bytes.Clone(text)
		}
		for range rapid.IntRange(1, 4).Draw(r, "damages") {
			name := rapid.SampledFrom(all).Draw(r, "segment")
			text := m[name]
			if len(text) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(text)-1).Draw(r, "at")
			switch kind := rapid.IntRange(0, 4).Draw(r, "kind"); kind {
			case 0, 1:
				text[at] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
			case 2:
				clear(text[at:min(len(text), at+rapid.IntRange(1, 400).Draw(r, "bytes"))])
			case 3:
				m[name] = text[:at]
			default:
				delete(m, name)
			}
		}
		damage, lost := agree(r, disk(t, m), sealed)
		saw[fmt.Sprint(min(len(damage), 3), " damages")]++
		saw[fmt.Sprint(len(lost) > 0, " lost")]++
	})
	for _, want := range []string{"1 damages", "2 damages", "3 damages", "true lost", "false lost"} {
		if saw[want] == 0 {
			t.Errorf("never seen: %s", want)
		}
	}
}

// TestSegmentBehindTheLast: a segment that does not belong to the journal and has the number after the last one takes no frame from it.
func TestSegmentBehindTheLast(t *testing.T) {
	segments, sealed := several(t)
	for what, text := range map[string][]byte{"empty": nil, "an older one": segments["00000003.seg"]} {
		m := map[string][]byte{"00000009.seg": text}
		for n, b := range segments {
			m[n] = b
		}
		t.Run(what, func(t *testing.T) {
			if damage, lost := agree(t, disk(t, m), sealed); len(damage) != 1 || damage[0].Segment != "00000009.seg" || len(lost) > 0 {
				t.Errorf("%v", damage)
			}
		})
	}
}

// TestStaleFrameIsNotReturned: recovery discarded a whole frame behind a hole and wrote another
// in its place. If that one is damaged, Read must not return the stale one.
func TestStaleFrameIsNotReturned(t *testing.T) {
	f, segments := &forge{}, map[string][]byte{}
	f.start(1, 0, 1)
	f.batch(0, 1, 1, forged, 1)
	f.frames(1)
	f.batch(1, 1, 2, forged, 1)
	root := f.prev
	f.frames(2)
	f.batch(1, 1, 3, forged, 1)
	f.frames(3)
	text := bytes.Clone(f.Bytes())
	clear(text[len(text)-2*forged-batchSize : len(text)-forged-batchSize-40]) // frame 2 is torn, except the root behind it
	segments[first] = text

	f.Reset()
	f.prev = root
	f.start(2, 1, 2)
	f.batch(1, 2, 2, 2*forged, 2)
	f.frames(2, 3)
	f.batch(3, 2, 4, forged, 1)
	f.frames(4)
	later := bytes.Clone(f.Bytes())
	for _, spoilt := range []string{"a start", "a start and a header", "all but the last batch"} {
		text := bytes.Clone(later)
		end := map[string]int{"a start": 10, "a start and a header": startSize + 10, "all but the last batch": len(text) - forged - batchSize}[spoilt]
		clear(text[5:end])
		segments["00000002.seg"] = text
		d := disk(t, segments)
		j, found, err := journalfile.Recover(d, ours, nil)
		if isRebuilt := spoilt == "a start"; isRebuilt != (err == nil) || !isRebuilt && (!errors.Is(err, journalfile.ErrDamaged) || found.Known != 3) {
			t.Fatalf("%s: %+v, %v", spoilt, found, err)
		}
		s, err := j.Read(3)
		if lost := strings.HasPrefix(spoilt, "all"); lost != (err != nil) || err != nil && !errors.Is(err, journalfile.ErrDamaged) {
			t.Fatalf("%s: %+v, %v", spoilt, s, err)
		}
	}
}

// TestMissingSegmentIsNamed: the file to put back is the one that is not there, also behind a segment that ends in
// space that was made ahead. Nothing shows whether there was a segment after the last one: the reason names it.
func TestMissingSegmentIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		roll  int64 // of each segment; with a long one, each of the four is of another start, which writes the last batch again
		lost  string
		known types.LSN
		want  string
	}{
		"in the middle":       {startSize + 1, "00000002.seg", 0, "00000002.seg 0 @3-@4 it is missing, here"},
		"behind unused space": {1 << 20, "00000002.seg", 0, "00000002.seg 0 @5-@6 it is missing, here"},
		"the last one":        {1 << 20, "00000004.seg", 16, "00000003.seg 668 @13-@16 the data ends here: the end of this segment or 00000004.seg is missing"},
	} {
		d := world.NewDisk()
		j, _, err := journalfile.Recover(d, ours, nil)
		must(t, err)
		for n := range 4 {
			if j.Roll = c.roll; n > 0 && c.roll > startSize+1 {
				must(t, j.Close())
				j, _, err = journalfile.Recover(d, ours, nil)
				must(t, err)
			}
			add(t, j, 2)
			if c.roll > startSize+1 {
				add(t, j, 2)
			}
		}
		must(t, d.Remove(c.lost))
		var named []string
		_, err = journalfile.Reading{Known: c.known}.Inspect(d, func(lost *journalfile.Damage) error {
			named = append(named, fmt.Sprintf("%s %d %v-%v %s", lost.Segment, lost.Offset, lost.From, lost.To, lost.Why))
			return nil
		})
		if err != nil || len(named) != 1 || !strings.HasPrefix(named[0], c.want) {
			t.Errorf("%s: %q, %v, want %q", name, named, err, c.want)
		}
		_, err = journalfile.Reading{Known: c.known}.Scan(d)
		if damage := (*journalfile.Damage)(nil); !errors.As(err, &damage) || !strings.HasPrefix(fmt.Sprintf("%s %d %v-%v %s", damage.Segment, damage.Offset, damage.From, damage.To, damage.Why), c.want) {
			t.Errorf("%s: read: %v, want %q", name, err, c.want)
		}
	}
}

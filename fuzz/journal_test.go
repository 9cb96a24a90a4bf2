// Package fuzz gives the parsers and the API bytes that no correct program sends.
package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

const journalID types.JournalID = 7

// FuzzRecover makes segments of bytes, cut where the input says, with valid checksums and roots where the input
// says so. The recovery ends with damage and an unchanged disk, or with a complete journal that equals the scan. A
// second recovery finds the same journal and cuts nothing.
func FuzzRecover(f *testing.F) {
	for _, seed := range journals(f) {
		f.Add(seed, uint16(0), true)
		f.Add(seed, uint16(len(seed)/2), false)
		f.Add(seed[:len(seed)-1], uint16(80), true)
		f.Add(seed, uint16(bytes.LastIndex(seed, []byte("MNS1"))), true) // where the next segment begins
	}
	f.Add([]byte{}, uint16(0), false)
	f.Fuzz(func(t *testing.T, text []byte, cut uint16, mended bool) {
		first, second := bytes.Clone(text), []byte(nil)
		if at := int(cut); 0 < at && at < len(first) {
			first, second = first[:at], first[at:]
		}
		d := world.NewDisk()
		for name, text := range map[string][]byte{"00000001.seg": first, "00000002.seg": second} {
			if mended {
				mend(text)
			}
			if text != nil {
				put(t, d, name, text)
			}
		}
		recoverAny(t, d)
	})
}

func recoverAny(t *testing.T, d *world.Disk) {
	before := image(t, d)
	scanned, scanning := journalfile.Scan(d, nil, nil)
	var back []record.Sealed
	j, found, err := journalfile.Recover(d, journalID, func(all []record.Sealed) error {
		back = append(back, all...)
		return nil
	})
	if scanned.Last != found.Last || scanned.CutBytes != found.CutBytes || (scanning == nil) != (err == nil) {
		t.Fatalf("scanned %+v, %v; recovered %+v, %v", scanned, scanning, found, err)
	}
	chained(t, back, found)
	if err != nil {
		if !errors.Is(err, journalfile.ErrDamaged) && !errors.Is(err, journalfile.ErrFormat) {
			t.Fatalf("neither damage nor another format: %v", err)
		}
		if after := image(t, d); after != before {
			t.Fatalf("refused, and changed\n%s to\n%s", before, after)
		}
		return
	}
	for _, s := range back {
		if got, err := j.Read(s.LSN); err != nil || !bytes.Equal(got.Body, s.Body) || got.Root != s.Root || got.Prev != s.Prev {
			t.Fatalf("reading %v: %v", s.LSN, err)
		}
	}
	again(t, d, back)
}

// again: after a power failure the same frames are found, and nothing is cut.
func again(t *testing.T, d *world.Disk, want []record.Sealed) {
	d.Crash(world.Dull{})
	var back []record.Sealed
	_, found, err := journalfile.Recover(d, journalID, func(all []record.Sealed) error {
		back = append(back, all...)
		return nil
	})
	same := func(a, b record.Sealed) bool { return a.LSN == b.LSN && a.Root == b.Root && a.Journal == b.Journal }
	if err != nil || found.CutBytes != 0 || found.TailFrames != 0 || !slices.EqualFunc(back, want, same) {
		t.Fatalf("%d frames, the second time %d: %+v, %v", len(want), len(back), found, err)
	}
}

func chained(t *testing.T, all []record.Sealed, found journalfile.Found) {
	var prev types.Root
	for i, s := range all {
		head, _, err := record.Open(s.Body)
		root, _ := digest.Chain(nil, prev, s.Body)
		if err != nil || head.LSN != types.LSN(i+1) || s.LSN != head.LSN || s.Prev != prev || s.Root != root {
			t.Fatalf("frame %d of %d is %+v, %v", i+1, len(all), s, err)
		}
		prev = root
	}
	if found.Last != types.LSN(len(all)) || found.Root != prev {
		t.Fatalf("%d frames, found %+v", len(all), found)
	}
}

// mend makes checksums valid, item by item, and existing roots, as far as the lengths lead.
func mend(text []byte) {
	var prev types.Root
	for len(text) >= 12 {
		size, roots := int(binary.LittleEndian.Uint32(text[4:])), 0
		if string(text[:4]) == "MNF1" {
			roots = 32
		}
		end := 8 + size + roots
		if size > len(text) || end+4 > len(text) {
			return
		}
		switch string(text[:4]) {
		case "MNF1":
			prev, _ = digest.Chain(nil, prev, text[8:8+size])
			copy(text[8+size:], prev[:])
		case "MNS1":
			if size >= 68 {
				prev = types.Root(text[8+36 : 8+68])
			}
		}
		binary.LittleEndian.PutUint32(text[end:], crc32.Checksum(text[:end], crc32.MakeTable(crc32.Castagnoli)))
		text = text[end+4:]
	}
}

func put(t testing.TB, d *world.Disk, name string, text []byte) {
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(text, 0)
	if err := errors.Join(err, f.Sync(), f.Close(), d.SyncDir()); err != nil {
		t.Fatal(err)
	}
}

func image(t *testing.T, d *world.Disk) (text string) {
	names, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all, err := fs.ReadAll(d, name)
		if err != nil {
			t.Fatal(err)
		}
		text += name + "=" + string(all) + "\n"
	}
	return text
}

// journals returns real journals: one segment with and without a tail, and two segments.
func journals(t testing.TB) (all [][]byte) {
	for _, roll := range []int64{1 << 20, 200} {
		d := world.NewDisk()
		j, _, err := journalfile.Recover(d, journalID, nil)
		if err != nil {
			t.Fatal(err)
		}
		j.Roll = roll
		for lsn := types.LSN(1); lsn < 8; lsn += 2 {
			var arena []byte
			var batch []event.Frame
			for l := lsn; l < lsn+2; l++ {
				off := uint32(len(arena))
				arena = record.Begin(arena, l, types.Time(l))
				batch = append(batch, event.Frame{LSN: l, Off: off, Len: uint32(len(arena)) - off})
			}
			if _, err := j.Write(arena, batch); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Sync(); err != nil {
				t.Fatal(err)
			}
			one, err := fs.ReadAll(d, "00000001.seg")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bytes.TrimRight(one, "\x00"))
		}
		if two, err := fs.ReadAll(d, "00000002.seg"); err == nil {
			all = append(all, append(all[len(all)-1], two...))
		}
	}
	return all
}

package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/state"
	"macronode/core/types"
)

// FuzzSnapshot loads any bytes, with sums corrected as far as possible. Either it loads a valid
// state, whose own snapshot loads too, or it returns ErrDoubt or ErrRoom.
func FuzzSnapshot(f *testing.F) {
	for _, frames := range []int{1, 5, 40} {
		f.Add(written(f, kept(f, frames)), true)
	}
	f.Add(written(f, kept(f, 9))[:100], false)
	f.Fuzz(func(t *testing.T, text []byte, mended bool) {
		if text = bytes.Clone(text); mended {
			mend(text)
		}
		lsn := types.LSN(1)
		if len(text) >= 28 {
			lsn = types.LSN(binary.LittleEndian.Uint64(text[20:]))
		}
		d := world.NewDisk()
		put(t, d, snapshot.Name(lsn), text)
		st := state.New(limits(), 1)
		h, err := snapshot.Load(d, lsn, &st, nil)
		if err != nil {
			if !errors.Is(err, snapshot.ErrDoubt) && !errors.Is(err, state.ErrRoom) {
				t.Fatal(err)
			}
			return
		}
		must(t, st.Check())
		d, back := world.NewDisk(), state.New(limits(), 2)
		_, err = snapshot.Write(d, h, &st, nil)
		must(t, err)
		if again, err := snapshot.Load(d, lsn, &back, nil); err != nil || again != h || back.Hash() != st.Hash() {
			t.Fatalf("written again: %+v, %v", again, err)
		}
	})
}

// mend corrects the sums of the items, as far as the lengths are valid, and that of the end.
func mend(text []byte) {
	var chain types.Root
	for len(text) >= 12 {
		size := int(binary.LittleEndian.Uint32(text[4:]))
		end := 8 + size
		if size < 0 || end+4 > len(text) {
			return
		}
		if string(text[:4]) == "MNE1" && size == 48 {
			copy(text[24:], chain[:])
		}
		chain, _ = digest.Chain(nil, chain, text[8:end])
		binary.LittleEndian.PutUint32(text[end:], crc32.Checksum(text[:end], crc32.MakeTable(crc32.Castagnoli)))
		text = text[end+4:]
	}
}

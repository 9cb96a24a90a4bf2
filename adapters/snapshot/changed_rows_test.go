package snapshot_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/snapshot"
	"macronode/chaos/world"
	"macronode/core/state"
)

// TestChangedRowsAreRejected: a snapshot with a changed byte in a block and valid sums is
// rejected, whether or not the end matches; so is one with trailing bytes.
func TestChangedRowsAreRejected(t *testing.T) {
	b := kept(t, 30)
	whole := written(t, b)
	const head, end = 72 + 8, 60
	if n := bytes.Index(whole, []byte("MNE1")); n != len(whole)-end {
		t.Fatalf("the end is at %d of %d", n, len(whole))
	}
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		text := bytes.Clone(whole)
		what := rapid.SampledFrom([]string{"another row", "another block", "more behind it"}).Draw(r, "what")
		at := rapid.IntRange(head+4, len(text)-end-8).Draw(r, "at")
		if what == "more behind it" {
			more := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 1, 40), rapid.Just(whole[len(whole)-end:]), rapid.Just(whole)).Draw(r, "more")
			text = slices.Concat(text, more)
		} else {
			text[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "to"))
			if mend(text); what == "another block" {
				copy(text[len(text)-end:], whole[len(whole)-end:])
			}
		}
		d := world.NewDisk()
		put(t, d, snapshot.Name(30), text)
		st := state.New(limits(), 1)
		_, err := snapshot.Load(d, 30, &st, nil)
		_, checked := snapshot.Check(d, 30, nil)
		if !errors.Is(err, snapshot.ErrDoubt) && !errors.Is(err, state.ErrRoom) {
			r.Fatalf("%s, at %d: loaded with %v", what, at, err)
		}
		if what != "another row" && !errors.Is(checked, snapshot.ErrDoubt) {
			r.Fatalf("%s, at %d: checked with %v", what, at, checked)
		}
		saw[what]++
	})
	if len(saw) < 3 {
		t.Errorf("only %v", saw)
	}
}

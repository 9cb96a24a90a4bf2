package index_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/adapters/index"
)

// TestIndexOfAnyBranchPoint: wherever a journal branches, an index made before is reused if and
// only if its mark is not after the branch.
func TestIndexOfAnyBranchPoint(t *testing.T) {
	const frames = 24
	fs := vfs.NewMem()
	d := newDesk(t, grown(1, frames, frames), fs, index.Limits{Frames: 7}).open()
	d.start()
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	for behind := 0; behind <= frames; behind += 3 {
		for _, longer := range []int{0, 5} {
			d := newDesk(t, grown(1, frames+longer, behind), copied(t, fs), index.Limits{Frames: 7}).open()
			d.start()
			d.comes()
			if rebuilt := d.x.Stats().Rebuilt > 0; rebuilt != (behind < frames) {
				t.Errorf("branched behind %d of %d, and %d longer: made anew %v", behind, frames, longer, rebuilt)
			}
			if err := d.ends(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// copied returns a copy of a disk.
func copied(t *testing.T, fs vfs.FS) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	if ok, err := vfs.Clone(fs, to, "index", "index"); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	return to
}

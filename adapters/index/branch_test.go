package index_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/adapters/index"
)

// TestEveryBranch: wherever a journal branched, and however far it has come, an index of
// before is believed exactly where its mark lies behind no branch.
func TestEveryBranch(t *testing.T) {
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

// copied is another disk with the same on it.
func copied(t *testing.T, fs vfs.FS) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	if ok, err := vfs.Clone(fs, to, "index", "index"); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	return to
}

package journalfile_test

import (
	"errors"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/world"
)

// divided returns a directory with the first segments of a journal, and one with the others.
func divided(t *testing.T, whole fs.FS, first int) (kept, live *world.Disk) {
	t.Helper()
	before, after := map[string][]byte{}, map[string][]byte{}
	for n, name := range names(t, whole) {
		if n < first {
			before[name] = read(t, whole, name)
		} else {
			after[name] = read(t, whole, name)
		}
	}
	return disk(t, before), disk(t, after)
}

// TestCheckKept: wherever a journal with restores is divided, its older segments are accepted. Those of another journal are not, nor
// those behind which segments of other IDs are missing.
func TestCheckKept(t *testing.T) {
	whole, _ := restoredTwice(t)
	all := names(t, whole)
	for n := range all {
		kept, live := divided(t, whole, n)
		if err := journalfile.CheckKept(kept, live); err != nil {
			t.Errorf("with %d segments kept: %v", n, err)
		}
		if newest, err := journalfile.Newest(kept); err != nil || int(newest) != n {
			t.Errorf("the newest of %d segments is %d, %v", n, newest, err)
		}
	}
	other := world.NewDisk()
	j, _, err := journalfile.Recover(other, ours+77, nil)
	must(t, err)
	add(t, j, 3)
	must(t, j.Close())
	kept, live := divided(t, whole, 1)
	for what, is := range map[string][2]fs.FS{"other segments are kept": {other, whole}, "other segments are live": {kept, other}} {
		if err := journalfile.CheckKept(is[0], is[1]); !errors.Is(err, journalfile.ErrOther) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, last := divided(t, whole, len(all)-1) // of the second restore only
	if err := journalfile.CheckKept(kept, last); !errors.Is(err, journalfile.ErrOther) {
		t.Errorf("with a gap: %v", err)
	}
	if err := journalfile.CheckKept(world.NewDisk(), live); err != nil {
		t.Errorf("with nothing kept: %v", err)
	}
}

// TestCheckFollows: the segment before the oldest live one must be kept, unless that is the first.
func TestCheckFollows(t *testing.T) {
	whole, _ := restoredTwice(t)
	for n := range names(t, whole) {
		kept, live := divided(t, whole, n)
		if err := journalfile.CheckFollows(kept, live); err != nil {
			t.Errorf("with %d segments kept: %v", n, err)
		}
		if err := journalfile.CheckFollows(world.NewDisk(), live); errors.Is(err, journalfile.ErrNotMounted) != (n > 0) {
			t.Errorf("with none of %d segments kept: %v", n, err)
		}
	}
	if err := journalfile.CheckFollows(world.NewDisk(), world.NewDisk()); err != nil {
		t.Errorf("without segments: %v", err)
	}
}

// TestCheckOne: segments of one journal, also after restores, are accepted wherever they begin. One of another journal before them is not.
func TestCheckOne(t *testing.T) {
	whole, _ := restoredTwice(t)
	all := names(t, whole)
	other := world.NewDisk()
	j, _, err := journalfile.Recover(other, ours+77, nil)
	must(t, err)
	add(t, j, 3)
	must(t, j.Close())
	foreign := read(t, other, names(t, other)[0])
	for n := range all {
		_, live := divided(t, whole, n)
		if err := journalfile.CheckOne(live); err != nil {
			t.Errorf("from segment %d on: %v", n+1, err)
		}
	}
	mixed := map[string][]byte{all[0]: foreign}
	for _, name := range all[1:] {
		mixed[name] = read(t, whole, name)
	}
	if err := journalfile.CheckOne(disk(t, mixed)); !errors.Is(err, journalfile.ErrOther) || !strings.Contains(err.Error(), all[0]+" is of journal") {
		t.Errorf("the first segment is of another journal: %v", err)
	}
}

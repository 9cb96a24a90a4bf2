package journalfile_test

import (
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
)

// TestNamesAreSyncedFirst: a directory that cannot be synced is not believed, and
// nothing is begun in it: a name that is only seen may go while a later one stays.
func TestNamesAreSyncedFirst(t *testing.T) {
	d := world.NewDisk()
	j, _, err := journalfile.Recover(d, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := d.List()
	d.FailDir = true
	_, _, err = journalfile.Recover(d, 7, nil)
	after, _ := d.List()
	if err == nil || journalfile.FaultOf(err) != event.SyncFailed || !slices.Equal(before, after) {
		t.Fatalf("%v, %v after %v", err, after, before)
	}
}

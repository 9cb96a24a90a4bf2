package journalfile_test

import (
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/event"
)

// TestRecoverySyncsDirectoryFirst: if the directory cannot be synced, recovery fails and creates
// nothing. Otherwise an unsynced name might vanish while a later one stays.
func TestRecoverySyncsDirectoryFirst(t *testing.T) {
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

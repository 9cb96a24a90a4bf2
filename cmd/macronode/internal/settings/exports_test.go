package settings

import (
	"fmt"
	"strings"
	"testing"

	"macronode/adapters/export"
	"macronode/cmd/macronode/internal/testkit"
)

// TestSinksKeepOutOfTheNode checks which directories of file sinks their paths show to be those of the node.
func TestSinksKeepOutOfTheNode(t *testing.T) {
	for dir, want := range map[string]string{
		".": "the data directory", "journal": "the directory of the journal", "./snapshots/": "the directory of snapshots", "index/x": "the directory of the index",
		"x/../objects": "the directory of objects", "/disk": "the directory of provider one", "/archive": "the archive of the journal",
		"exports": "", "journals": "", "..x": "", "/data/..": "", "/disk/exports": "", "/archive/exports": "", "/": "",
	} {
		c := testkit.Config(t, "data=/data", "journal.archive=/archive", `storage.providers=[{"name":"one","path":"/disk"}]`,
			fmt.Sprintf(`exports.sinks=[{"name":"a","kind":"file","dir":%q}]`, dir))
		err := CheckSinks(c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}

// TestFilesFindWhatIsNotSettled: a file sink finds as many lines of a lane again as a crash can leave unsettled, and one in delivery.
func TestFilesFindWhatIsNotSettled(t *testing.T) {
	if l := new(Sink).LaneLimits(1 << 20); l.Window+1 > export.FileWindow {
		t.Errorf("%d lines of a lane are found, %d can be unsettled", export.FileWindow, l.Window+1)
	}
}

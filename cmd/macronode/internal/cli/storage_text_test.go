package cli

import (
	"strings"
	"testing"
	"time"

	"macronode/adapters/adminapi"
)

// TestRebalanceTextNamesWrittenBytes: while a backup needs the old copies, others are written and count, though their objects are not moved.
func TestRebalanceTextNamesWrittenBytes(t *testing.T) {
	t.Parallel()
	is := adminapi.Storage{Rebalance: adminapi.Rebalance{Number: 1, Objects: 6, Moved: 1, Done: 5653600, Ended: time.Unix(0, 0).UTC()}}
	const want = "rebalance: copies or shards of 1 of 6 objects were moved at 1970-01-01T00:00:00Z, 5653600 bytes were written\n"
	if got := storageText(&is); !strings.HasSuffix(got, want) {
		t.Error(got)
	}
}

// TestScrubReportsRepairs: a scrub that has found damage says whether it was repaired.
func TestScrubReportsRepairs(t *testing.T) {
	t.Parallel()
	for want, is := range map[string]adminapi.Storage{
		"":                                      {Scrub: adminapi.Scrub{Number: 1}},
		"they were repaired from good ones":     {Scrub: adminapi.Scrub{Damaged: 1}},
		"3 repairs from good ones are waiting":  {Scrub: adminapi.Scrub{Damaged: 1}, Waiting: 2, Running: 1},
		"is waiting for its repair (disk full)": {Scrub: adminapi.Scrub{Damaged: 1, Unrestored: "disk full"}, Waiting: 2},
		"(disk full): repeat the scrub when that has been remedied; and 2 copies were not read": {Scrub: adminapi.Scrub{Damaged: 1, Unread: 2, Unrestored: "disk full"}},
	} {
		if err := scrubError(&is); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", is, err)
		}
	}
}

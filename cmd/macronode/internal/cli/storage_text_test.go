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

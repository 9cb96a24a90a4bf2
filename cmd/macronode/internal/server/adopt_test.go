package server

import (
	"testing"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/types"
)

// TestLostEndOfCopyIsDamage: a node does not write on the segments of a backup that lack its last frame.
func TestLostEndOfCopyIsDamage(t *testing.T) {
	for end, isDamaged := range map[types.LSN]bool{40: false, 41: true} {
		d := journaldir.Payments(t, 40)
		j, found, err := d.Open()
		testkit.Must(t, err)
		testkit.Must(t, j.Close())
		testkit.Must(t, durable.Mark{Journal: found.Journal, LSN: 1}.Write(fs.Dir(d.Config.Data), durable.Name))
		testkit.Must(t, backup.Cut{Journal: found.Journal, LSN: end, Root: found.Root}.Write(fs.Dir(d.Journal()), backup.CutName))
		if _, is, err := storeOn(d).recoverAndClose(t); err != nil || is.Damaged != isDamaged {
			t.Errorf("a backup to %v: %v, %+v", end, err, is)
		}
	}
}

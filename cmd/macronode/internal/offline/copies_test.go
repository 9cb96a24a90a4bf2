package offline

import (
	"errors"
	"os"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/placement"
	"macronode/core/storage"
)

// TestForbiddenCopyIsNoDamage: nothing is known of a copy that this process may not read, so it is not counted as damaged,
// even if another copy is good.
func TestForbiddenCopyIsNoDamage(t *testing.T) {
	var list []objectstore.Provider
	for _, name := range []string{"a", "b"} {
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: provider.Dir{FS: fs.Dir(t.TempDir())}})
	}
	store := objectstore.NewCopies(list, objectstore.Copies{Count: 2, Required: 1}, objectstore.Limits{})
	for forbidden := range list {
		c := newCopyCheck(store, func(_ storage.Stored, p objectstore.Part) error {
			if p.Provider == forbidden {
				return &os.PathError{Op: "open", Path: "copy", Err: os.ErrPermission}
			}
			return nil
		})
		if err := c.check(storage.Stored{}); !errors.Is(err, os.ErrPermission) || c.found[forbidden].Damaged > 0 {
			t.Errorf("copy %d: %v, %+v", forbidden, err, c.found)
		}
	}
}

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOldUploadStatesAreRemoved: the states of uploads that no command has continued for 30 days are removed, the others are kept.
func TestOldUploadStatesAreRemoved(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	states := map[string]time.Duration{"old": maxStateAge + time.Second, "new": maxStateAge - time.Second, "current": 0}
	for name, age := range states {
		s := uploadState(filepath.Join(dir, name))
		if err := s.write("id-" + name); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(string(s), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	uploadState(filepath.Join(dir, "current")).prune(now)
	for name, age := range states {
		want := "id-" + name
		if age > maxStateAge {
			want = ""
		}
		if got := uploadState(filepath.Join(dir, name)).read(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

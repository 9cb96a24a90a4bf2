package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit/journaldir"
)

// TestObjectsNeedTheirJournal: a new journal would have no row of an object, and the collector would remove its file. An empty disk
// is that of a new node.
func TestObjectsNeedTheirJournal(t *testing.T) {
	d := journaldir.New(t)
	l := storeOn(d)
	var err error
	if l.segments, err = datadir.OpenSegments(fs.Dir(d.Config.Data), ""); err != nil {
		t.Fatal(err)
	}
	if err := l.checkNotEmptied(); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	objects := filepath.Join(d.Config.Data, datadir.Objects)
	if err := os.MkdirAll(filepath.Join(objects, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.checkNotEmptied(); err != nil {
		t.Errorf("a new disk: %v", err)
	}
	if err := os.WriteFile(filepath.Join(objects, "provider.id"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.checkNotEmptied(); err == nil || !strings.Contains(err.Error(), "objects shows that there was a journal") {
		t.Errorf("a directory with objects: %v", err)
	}
}

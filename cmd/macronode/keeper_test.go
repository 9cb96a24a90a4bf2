package main

import (
	"path/filepath"
	"testing"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// TestKeeps: a journal that has grown gets snapshots, the segments that no start needs go
// to the archive, and the next start, its reads and a verification miss nothing.
func TestKeeps(t *testing.T) {
	l := payments(t, 60)
	l.config.Journal.Archive = filepath.Join(t.TempDir(), "archive")
	l.config.Journal.Snapshot = 1000
	for _, want := range []types.LSN{60, 160} {
		if _, _, err := l.again(); err != nil {
			t.Fatal(err)
		}
		l.journal.Roll = 1000
		for lsn := l.journal.Durable() + 1; lsn <= want; lsn++ {
			pay(t, l.journal, lsn)
		}
		m := l.maker(t.Context())
		if !m.Due() {
			t.Fatalf("nothing is due, with %d bytes more", l.journal.Grown())
		}
		must(t, m.Make(t.Context()))
		must(t, l.journal.Close())
	}
	live, err := fs.Dir(l.segments()).List()
	must(t, err)
	kept, err := fs.Dir(l.config.Journal.Archive).List()
	must(t, err)
	if len(kept) < 8 || len(live) > 20 {
		t.Fatalf("live %q, archive %q", live, kept)
	}
	said, text, code := l.verifies(t, verifyCmd{Deep: true})
	if code != done || said.Frames != 160 || len(said.Snapshots) != 2 || said.Segments != len(kept)+len(live) {
		t.Fatalf("%d, %+v\n%s", code, said, text)
	}
	if st, _, err := l.again(); err != nil || st.LSN != 160 {
		t.Fatalf("%v, %v", st.LSN, err)
	}
	defer l.journal.Close()
	for lsn := types.LSN(1); lsn <= 160; lsn++ {
		if s, err := l.older(lsn); err != nil || s.LSN != lsn {
			t.Fatalf("reading %v: %v", lsn, err)
		}
	}
}

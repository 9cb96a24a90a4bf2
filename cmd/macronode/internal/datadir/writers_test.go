package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/epochs"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/record"
	"macronode/core/types"
)

// threeWriters returns a data directory with a segment of each of three processes, and the end of the second one. Each wrote two frames.
func threeWriters(t *testing.T) (d journaldir.Directory, second journalfile.From) {
	t.Helper()
	d = journaldir.New(t)
	for lsn := types.LSN(1); lsn <= 6; lsn += 2 {
		j, found, err := d.Open()
		testkit.Must(t, err)
		if lsn == 5 {
			second = journalfile.From{LSN: found.Last, Root: found.Root, Journal: found.Journal}
		}
		journaldir.Pay(t, j, lsn)
		journaldir.Pay(t, j, lsn+1)
		testkit.Must(t, j.Close())
	}
	return d, second
}

func open(t *testing.T, d journaldir.Directory) datadir.Segments {
	t.Helper()
	s, err := datadir.OpenSegments(fs.Dir(d.Config.Data), "")
	testkit.Must(t, err)
	return s
}

// frames returns how many frames the segments have that are read.
func frames(t *testing.T, d journaldir.Directory) (n int) {
	t.Helper()
	_, err := journalfile.Reading{Each: func(all []record.Sealed) error { n += len(all); return nil }}.Scan(open(t, d))
	testkit.Must(t, err)
	return n
}

// TestPartialListIsCompleted: a list that was made while segments were missing gets their writers when they are back.
func TestPartialListIsCompleted(t *testing.T) {
	d, second := threeWriters(t)
	list, away := filepath.Join(d.Config.Data, epochs.Name), t.TempDir()
	move := func(from, to string) {
		for _, name := range []string{"00000001.seg", "00000002.seg"} {
			testkit.Must(t, os.Rename(filepath.Join(from, name), filepath.Join(to, name)))
		}
	}
	start := func(from journalfile.From) datadir.Segments {
		s := open(t, d)
		j, _, err := journalfile.Reading{From: from, Epoch: s.Writers.Next}.Recover(s, 7)
		testkit.Must(t, err)
		testkit.Must(t, j.Close())
		return s
	}
	testkit.Must(t, os.Remove(list))
	move(d.Journal(), away)
	if s := start(second); !s.Writers.Partial || s.NoList == nil || s.Doubt.IsGap {
		t.Fatalf("without the segments: partial %v, %v, %+v", s.Writers.Partial, s.NoList, s.Doubt)
	}
	move(away, d.Journal())
	if s := start(journalfile.From{}); len(s.Others) > 0 || s.Writers.Partial || s.NoList == nil || !strings.Contains(s.NoList.Error(), list+": it was made while segments were missing") {
		t.Fatalf("with the segments: %v are hidden, partial %v, %v", s.Others, s.Writers.Partial, s.NoList)
	}
	if s := open(t, d); len(s.Others) > 0 || s.NoList != nil || frames(t, d) != 6 {
		t.Fatalf("the list is not complete: %v are hidden, %v", s.Others, s.NoList)
	}
}

// TestGapIsDoubt: where no list is recorded and a segment in the middle is missing, what is read may be of another journal.
func TestGapIsDoubt(t *testing.T) {
	d, _ := threeWriters(t)
	testkit.Must(t, os.Remove(filepath.Join(d.Journal(), "00000002.seg")))
	evidence := func() datadir.Evidence {
		e, err := datadir.ReadEvidence(d.Config.Data, open(t, d), func(error) {})
		testkit.Must(t, err)
		return e
	}
	if e := evidence(); e.Doubt.Why != "" {
		t.Errorf("with a list: %+v", e.Doubt)
	}
	testkit.Must(t, os.Remove(filepath.Join(d.Config.Data, epochs.Name)))
	if e, s := evidence(), open(t, d); !e.Doubt.IsGap || e.Doubt != s.Doubt || !s.Writers.Partial {
		t.Errorf("without one: %+v, %+v, partial %v", e.Doubt, s.Doubt, s.Writers.Partial)
	}
}

// TestListBesideSegments: the list of a backup, beside its segments, is the one that errors name, and decides.
func TestListBesideSegments(t *testing.T) {
	d, _ := threeWriters(t)
	list, beside := filepath.Join(d.Config.Data, epochs.Name), filepath.Join(d.Journal(), epochs.Name)
	whole, err := os.ReadFile(list)
	testkit.Must(t, err)
	write := func(path string, text []byte) { testkit.Must(t, os.WriteFile(path, text, 0o600)) }

	testkit.Must(t, os.Rename(list, beside))
	if s := open(t, d); s.ListPath != beside || s.NoList != nil || frames(t, d) != 6 {
		t.Errorf("a backup: %s, %v", s.ListPath, s.NoList)
	}
	write(beside, whole[:20])
	if s := open(t, d); s.NoList == nil || !errors.Is(s.NoList, epochs.ErrFormat) || !strings.Contains(s.NoList.Error(), beside) || frames(t, d) != 6 {
		t.Errorf("a damaged one: %v", s.NoList)
	}
	write(list, whole)
	if s := open(t, d); s.ListPath != list || s.NoList == nil || frames(t, d) != 6 {
		t.Errorf("a damaged one and that of the node: %s, %v", s.ListPath, s.NoList)
	}
	write(beside, whole)
	write(list, whole[:20])
	if s := open(t, d); s.NoList != nil || frames(t, d) != 6 {
		t.Errorf("one and a damaged one of the node: %v", s.NoList)
	}
	testkit.Must(t, os.Remove(list))
	testkit.Must(t, epochs.List{Dir: fs.Dir(d.Journal()), All: []types.Epoch{1}}.Write())
	if _, err := datadir.OpenSegments(fs.Dir(d.Config.Data), ""); err == nil || !strings.Contains(err.Error(), "a process that "+beside+" records") {
		t.Errorf("of other processes: %v", err)
	}
}

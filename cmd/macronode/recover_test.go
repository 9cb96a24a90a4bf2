package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// alive is a life over a directory in which two accounts were paid.
func alive(t *testing.T, sets ...string) *life {
	t.Helper()
	l := &life{config: configured(t, sets...), log: slog.New(slog.DiscardHandler), dir: fs.Dir(t.TempDir())}
	dir, err := fs.Make(l.segments())
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := journalfile.Recover(dir, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	for lsn := types.LSN(1); lsn <= 2; lsn++ {
		body := record.Begin(nil, lsn, 1)
		body, _ = record.Add(body, 0, &record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: types.Name{Text: fmt.Appendf(nil, "k%d", lsn)},
			To: types.Name{Text: fmt.Appendf(nil, "account:%d", lsn)}, Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1), Seq: types.Seq(lsn),
			FromBalance: types.MinorUnits(uint64(lsn)), ToBalance: types.MinorUnits(1)})
		if _, err := j.Write(body, []event.Frame{{LSN: lsn, Len: uint32(len(body))}}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *life) files(t *testing.T) int {
	t.Helper()
	names, err := fs.Dir(l.segments()).List()
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestRecovers(t *testing.T) {
	l := alive(t)
	st, _, err := l.again()
	if err != nil || st.LSN != 2 || l.follower.Mark() != 2 || l.files(t) != 2 {
		t.Fatalf("%v, state at %v, follower at %v, %d files", err, st.LSN, l.follower.Mark(), l.files(t))
	}
	if err := l.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// lives recovers a life's directory as the next start would, and ends again.
func (l *life) lives(t *testing.T) (state.State, event.Recovery, error) {
	t.Helper()
	again := &life{config: l.config, log: l.log, dir: l.dir}
	st, found, err := again.again()
	if err == nil {
		if err := again.journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return st, found, err
}

// summed is a life with a snapshot as of its first frame, and of its second.
func summed(t *testing.T) *life {
	t.Helper()
	l := alive(t)
	dir, err := fs.Make(l.snapshots())
	if err != nil {
		t.Fatal(err)
	}
	for upto := types.LSN(1); upto <= 2; upto++ {
		m := snapshot.New(snapshot.Config{Limits: stateLimits(l.config)}, dir, snapshot.Source{
			Grown: func() int64 { return 0 }, Durable: func() types.LSN { return upto }, Read: behind(fs.Dir(l.segments()))})
		if err := m.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := snapshot.List(dir); err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	return l
}

// TestRecoversFromASnapshot: whatever became of the snapshots, a start finds the same.
func TestRecoversFromASnapshot(t *testing.T) {
	whole, _, err := alive(t).lives(t)
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(string){
		"both":                    func(string) {},
		"the newest damaged":      func(dir string) { spoilt(t, dir, 2) },
		"both damaged":            func(dir string) { spoilt(t, dir, 1); spoilt(t, dir, 2) },
		"one that is not there":   func(dir string) { removed(t, dir, snapshot.Name(2)) },
		"a file that is none":     func(dir string) { write(t, dir, snapshot.Name(3), "MNP1") },
		"what is left of a crash": func(dir string) { write(t, dir, snapshot.Name(3)+".tmp", "MNP1") },
	} {
		l := summed(t)
		spoil(l.snapshots())
		if st, found, err := l.lives(t); err != nil || st.Hash() != whole.Hash() || st.LSN != 2 || found.Damaged {
			t.Errorf("%s: %v, state at %v, %+v", what, err, st.LSN, found)
		}
	}
}

// TestAnEndThatIsMissing: segments that were deleted whole are damage, not a journal that
// ends sooner: a snapshot knew of more.
func TestAnEndThatIsMissing(t *testing.T) {
	l := summed(t)
	removed(t, l.segments(), "00000001.seg")
	if _, found, err := l.lives(t); err != nil || !found.Damaged || l.files(t) != 0 {
		t.Fatalf("%+v, %v, %d files", found, err, l.files(t))
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func removed(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func spoilt(t *testing.T, dir string, lsn types.LSN) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, snapshot.Name(lsn)))
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	write(t, dir, snapshot.Name(lsn), string(text))
}

// TestTooLargeIsNotTouched: a journal that does not fit is refused before anything is
// written to it.
func TestTooLargeIsNotTouched(t *testing.T) {
	l := alive(t, "wallet.limits.accounts=1")
	if _, _, err := l.again(); !errors.Is(err, state.ErrRoom) || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestEndsWhileItRecovers: told to end, it goes no further.
func TestEndsWhileItRecovers(t *testing.T) {
	l := alive(t)
	l.ear.say(t.Context(), event.Signal{Kind: event.Drain})
	if _, _, err := l.again(); !errors.Is(err, errEnded) || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestTheEarDoesNotFill: whatever is said before there is a loop, and however often.
func TestTheEarDoesNotFill(t *testing.T) {
	var e ear
	for range 1000 {
		e.say(t.Context(), event.ServiceUp{Service: types.ServiceAdmin})
		e.say(t.Context(), event.Signal{Kind: event.AcceptClock})
	}
	if len(e.early) != 2 || e.ends() {
		t.Fatalf("%d words kept, ends %v", len(e.early), e.ends())
	}
	if e.say(t.Context(), event.Signal{Kind: event.Abort}); !e.ends() {
		t.Fatal("an abort is no end")
	}
}

// again recovers as a process does that has just begun.
func (l *life) again() (state.State, event.Recovery, error) {
	l.follower = l.newFollower()
	return l.recover()
}

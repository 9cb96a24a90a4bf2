package main

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
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
	for lsn := words.LSN(1); lsn <= 2; lsn++ {
		body := record.Begin(nil, lsn, 1)
		body, _ = record.Add(body, 0, &record.Record{Kind: record.Moved, Op: event.Issue, Tenant: 1, Key: words.Name{Text: fmt.Appendf(nil, "k%d", lsn)},
			To: words.Name{Text: fmt.Appendf(nil, "account:%d", lsn)}, Asset: words.Name{Text: []byte("EUR/2")}, Amount: words.Units(1), Seq: words.Seq(lsn),
			FromNow: words.Units(uint64(lsn)), ToNow: words.Units(1)})
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
	st, _, err := l.recover()
	if err != nil || st.LSN != 2 || l.follower.Mark() != 2 || l.files(t) != 2 {
		t.Fatalf("%v, state at %v, follower at %v, %d files", err, st.LSN, l.follower.Mark(), l.files(t))
	}
	if err := l.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTooLargeIsNotTouched: a journal that does not fit is refused before anything is
// written to it.
func TestTooLargeIsNotTouched(t *testing.T) {
	l := alive(t, "wallet.limits.accounts=1")
	if _, _, err := l.recover(); !errors.Is(err, state.ErrRoom) || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestEndsWhileItRecovers: told to end, it goes no further.
func TestEndsWhileItRecovers(t *testing.T) {
	l := alive(t)
	l.ear.say(t.Context(), event.Signal{What: event.Drain})
	if _, _, err := l.recover(); !errors.Is(err, errEnded) || l.files(t) != 1 {
		t.Fatalf("%v, %d files", err, l.files(t))
	}
}

// TestTheEarDoesNotFill: whatever is said before there is a loop, and however often.
func TestTheEarDoesNotFill(t *testing.T) {
	var e ear
	for range 1000 {
		e.say(t.Context(), event.ChildUp{Child: words.ChildAdmin})
		e.say(t.Context(), event.Signal{What: event.AcceptClock})
	}
	if len(e.early) != 2 || e.ends() {
		t.Fatalf("%d words kept, ends %v", len(e.early), e.ends())
	}
	if e.say(t.Context(), event.Signal{What: event.Abort}); !e.ends() {
		t.Fatal("an abort is no end")
	}
}

package accounting_test

import (
	"testing"
	"time"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
)

// TestSealedTo: a window counts as sealed once it is due and its rows are, also if the grace was longer when they came.
func TestSealedTo(t *testing.T) {
	const at = types.Time(1_700_000_040_000) // the begin of a window
	l := wideLimits()
	p := accounting.New(l, 1)
	end := at.Add(window)
	due := end.Add(l.Grace)
	want := func(p *accounting.Plane, at, to types.Time) {
		t.Helper()
		if got := p.SealedTo(1, at); got != to {
			t.Errorf("sealed to %d at %d, want %d", got-to, at-to, 0)
		}
	}
	want(p, due-1, at)
	want(p, due, end)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	if p.Decide(at, wide(t, 2, at), f, &reply); reply.Problem != event.None {
		t.Fatal(reply.Problem)
	}
	want(p, due, at)
	if got := p.SealedTo(2, due); got != end {
		t.Errorf("another tenant has no rows: sealed to %d", got-end)
	}
	l.Grace = 0
	shorter := accounting.New(l, 1)
	p.Dump(func(kind uint8, row []byte) {
		if err := shorter.Load(kind, row); err != nil {
			t.Fatal(err)
		}
	})
	want(shorter, end.Add(time.Millisecond), at)
	for p.Expire(due, &f.rec) {
		f.Add()
	}
	want(p, due, end)
}

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

// TestChangedWindow: usage stays in the window in which it was recorded, whatever the length of a window is now, and each
// event is in one slice.
func TestChangedWindow(t *testing.T) {
	const at = types.Time(1_700_000_400_000) // the begin of a window of either length
	l := wideLimits()
	p := accounting.New(l, 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	record := func(p *accounting.Plane) {
		t.Helper()
		f.plane = p
		if p.Decide(at, wide(t, 4, at), f, &reply); reply.Problem != event.None {
			t.Fatal(reply.Problem)
		}
	}
	record(p)
	for _, longer := range []time.Duration{2 * l.Window, 5 * l.Window} {
		l.Window = longer
		next := accounting.New(l, 1)
		p.Dump(func(kind uint8, row []byte) {
			if err := next.Load(kind, row); err != nil {
				t.Fatal(err)
			}
		})
		p = next
		record(p)
	}
	got := map[accounting.Window]uint64{}
	f.at = at.Add(l.Window + l.Grace)
	for p.Expire(f.at, &f.rec) {
		if s, ok := accounting.ReadSlice(&f.rec); ok {
			for _, r := range s.Rows {
				got[s.Window] += r.Value
			}
		}
		f.Add()
	}
	for _, length := range []time.Duration{window, 2 * window, 5 * window} {
		if w := (accounting.Window{From: at, To: at.Add(length)}); got[w] != 0+1+2+3 {
			t.Errorf("the window of %v has %d units, want 6", length, got[w])
		}
	}
	if len(got) != 3 || p.Rows() != 0 || p.Check() != nil {
		t.Errorf("windows %v, %d rows are open, %v", got, p.Rows(), p.Check())
	}
}

package share_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/share"
	"macronode/core/types"
)

// body is one body of the model.
type body struct {
	flow         types.Flow
	length, sent int64
	unread       int64
}

// bodiesModel is a connection whose receiver reads at random, and does not return the window of some bodies.
type bodiesModel struct {
	all    []*body
	window int64
}

func (m *bodiesModel) check(t *rapid.T) {
	left, small, long := int64(0), 0, map[types.Flow]bool{}
	for _, b := range m.all {
		if share.IsSmall(b.length) {
			left += b.length - b.sent
			small++
		} else {
			long[b.flow] = true
		}
	}
	if left > m.window {
		t.Fatalf("B1: %d bytes of small bodies are left, the window is %d", left, m.window)
	}
	if len(long) > 1 || len(long) > 0 && small > 0 {
		t.Fatalf("B2, B3: long bodies of %d flows, and %d small ones", len(long), small)
	}
}

// TestBodiesShareAWindow: no small body waits for the window, and long bodies wait only for those of their flow, whatever the receiver
// reads.
func TestBodiesShareAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bodies share.Bodies
		m := bodiesModel{window: 1<<16 - 1}
		one := func() *body { return m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, "body")] }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t)
				if n := bodies.InProgress(); n != len(m.all) {
					t.Fatalf("%d in progress, want %d", n, len(m.all))
				}
			},
			"begin": func(t *rapid.T) {
				b := &body{flow: types.Flow{Class: types.ClassAnon, ID: rapid.Uint64Range(1, 3).Draw(t, "flow")},
					length: rapid.SampledFrom([]int64{share.UnknownLength, 0, 1, 1000, 20_000, share.MinWindow, share.MinWindow + 1, 1 << 20}).Draw(t, "length")}
				if bodies.Fits(b.flow, b.length, m.window) {
					bodies.Begin(b.flow, b.length)
					m.all = append(m.all, b)
				} else if len(m.all) == 0 && m.window >= share.MinWindow {
					t.Fatalf("a body of %d bytes does not fit an unused connection", b.length)
				}
			},
			"send": func(t *rapid.T) {
				if len(m.all) == 0 {
					t.Skip()
				}
				b := one()
				n := m.window
				if b.length >= 0 {
					n = min(n, b.length-b.sent)
				}
				n = rapid.Int64Range(0, n).Draw(t, "bytes")
				b.sent, b.unread, m.window = b.sent+n, b.unread+n, m.window-n
			},
			"read": func(t *rapid.T) {
				if len(m.all) == 0 {
					t.Skip()
				}
				b := one()
				m.window += b.unread
				b.unread = 0
			},
			"end": func(t *rapid.T) {
				if len(m.all) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(m.all)-1).Draw(t, "ended")
				b := m.all[i]
				if rapid.Bool().Draw(t, "returned") {
					m.window += b.unread
				}
				bodies.End(b.length)
				m.all = append(m.all[:i], m.all[i+1:]...)
			},
		})
	})
}

// TestFlowsShareNoConnectionForLongBodies: the cases of Fits, one by one.
func TestFlowsShareNoConnectionForLongBodies(t *testing.T) {
	const all = 1<<16 - 1
	ann, bob := types.Flow{Class: types.ClassAuthed, ID: 1}, types.Flow{Class: types.ClassAnon, ID: 1}
	for _, c := range []struct {
		what   string
		begun  []int64 // bodies of ann
		flow   types.Flow
		length int64
		window int64
		fits   bool
	}{
		{"long, unused", nil, bob, share.UnknownLength, all, true},
		{"long, half of the window is left", nil, bob, share.UnknownLength, share.MinWindow, true},
		{"long, less is left", nil, bob, share.UnknownLength, share.MinWindow - 1, false},
		{"long, of the same flow", []int64{share.UnknownLength}, ann, 1 << 20, all, true},
		{"long, of another flow", []int64{share.UnknownLength}, bob, 1 << 20, all, false},
		{"long, of the same flow, less is left", []int64{share.UnknownLength}, ann, 1 << 20, share.MinWindow - 1, false},
		{"long, beside a small one", []int64{0}, ann, share.UnknownLength, all, false},
		{"small, beside a long one of the same flow", []int64{share.UnknownLength}, ann, 1, all, false},
		{"small, beside small ones", []int64{30_000, 30_000}, bob, all - 60_000, all, true},
		{"small, does not fit beside small ones", []int64{30_000, 30_000}, bob, all - 60_000 + 1, all, false},
		{"small, little is left", nil, bob, 1000, 1000, true},
		{"small, less is left", nil, bob, 1000, 999, false},
	} {
		var b share.Bodies
		for _, length := range c.begun {
			b.Begin(ann, length)
		}
		if b.Fits(c.flow, c.length, c.window) != c.fits {
			t.Errorf("%s: fits is not %v", c.what, c.fits)
		}
	}
}

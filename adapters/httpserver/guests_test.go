package httpserver

import (
	"testing"

	"pgregory.net/rapid"
)

// TestGuestsAgree: whoever comes before the last call is a guest, whoever comes behind it
// is none; and they are all out when the last guest has left, and not before.
func TestGuestsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, in, called := newGuests(), 0, false
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what < 2:
				if guest := g.come(); guest == called {
					t.Fatalf("a guest: %v, the last call: %v", guest, called)
				} else if guest {
					in++
				}
			case what < 4 && in > 0:
				g.leave()
				in--
			case what == 4:
				g.last()
				called = true
			}
			out := false
			select {
			case <-g.none:
				out = true
			default:
			}
			if out != (called && in == 0) {
				t.Fatalf("all are out: %v, %d are in, the last call: %v", out, in, called)
			}
			if called && in == 0 {
				return
			}
		}
	})
}

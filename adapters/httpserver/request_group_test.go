package httpserver

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRequestGroupAgreesWithModel: requests before close are counted, later ones are not, and the
// channel closes when the last counted one has ended.
func TestRequestGroupAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, in, called := newRequestGroup(), 0, false
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what < 2:
				if guest := g.enter(); guest == called {
					t.Fatalf("a guest: %v, the last call: %v", guest, called)
				} else if guest {
					in++
				}
			case what < 4 && in > 0:
				g.leave()
				in--
			case what == 4:
				g.close()
				called = true
			}
			out := false
			select {
			case <-g.empty:
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

package httpserver

import (
	"net"
	"testing"

	"pgregory.net/rapid"
)

// line is a connection of nobody.
type line struct{ net.Conn }

func (line) Close() error { return nil }

// TestConnectionsAgree: no more connections are open than may be, each is told of once
// when it comes and once when it goes, and there are none when the last has gone after
// the door was shut.
func TestConnectionsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, told := rapid.IntRange(1, 4).Draw(t, "most"), 0
		l := &listener{most: most, opened: func(by int) { told += by }, open: map[*conn]struct{}{}, none: make(chan struct{})}
		var open, gone []*conn
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 5:
				c := &conn{Conn: line{}, of: l}
				if in := l.add(c); in != (len(open) < most) {
					t.Fatalf("let in %v, beside %d of %d", in, len(open), most)
				} else if in {
					open = append(open, c)
				}
			case what < 9 && len(open) > 0:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "who")
				c := open[i]
				open, gone = append(open[:i:i], open[i+1:]...), append(gone, c)
				_ = c.Close()
			case what == 9 && len(gone) > 0:
				_ = gone[0].Close() // again
			}
			if l.count() != len(open) || told != len(open) {
				t.Fatalf("%d are open, counted as %d, told as %d", len(open), l.count(), told)
			}
		}
		l.mu.Lock()
		l.over = true
		l.settle()
		l.mu.Unlock()
		for len(open) > 0 {
			select {
			case <-l.empty():
				t.Fatalf("none, and %d are open", len(open))
			default:
			}
			_ = open[0].Close()
			open = open[1:]
		}
		<-l.empty()
	})
}

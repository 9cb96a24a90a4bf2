package cli

import (
	"testing"
	"time"
)

// TestBar: a transfer is shown with its bytes, its rate and the remaining time, at most five times a second. Nothing is written if standard
// error is not a terminal.
func TestBar(t *testing.T) {
	t.Parallel()
	const known = "\rsent [=======                       ] 1.0 MiB of 4.0 MiB, 0.5 MiB/s, 6s left\x1b[K" +
		"\rsent [======================        ] 3.0 MiB of 4.0 MiB, 1.0 MiB/s, 1s left\x1b[K" + "\r\x1b[K"
	const unknown = "\rsent 1.0 MiB, 0.5 MiB/s\x1b[K" + "\rsent 3.0 MiB, 1.0 MiB/s\x1b[K" + "\r\x1b[K"
	for _, c := range []struct {
		isTerminal bool
		total      int64
		want       string
	}{{true, 4 << 20, known}, {true, 0, unknown}, {false, 4 << 20, ""}, {false, 0, ""}} {
		d := newTestConsole()
		d.isErrTerminal = c.isTerminal
		b := d.bar("sent", c.total)
		d.time = d.time.Add(2 * time.Second)
		b.Add(1 << 20)
		d.time = d.time.Add(100 * time.Millisecond)
		b.Add(1 << 20) // counted, and not shown
		d.time = d.time.Add(900 * time.Millisecond)
		b.Add(1 << 20)
		b.End()
		if got := d.err.String(); got != c.want {
			t.Errorf("terminal %v, total %d: %q, want %q", c.isTerminal, c.total, got, c.want)
		}
	}
}

package proxy

import (
	"testing"
	"time"
)

// TestClientWait: waits in both directions at once count once, one in progress counts so far, and a wait explains
// the end of an attempt if it is long, and most of the attempt.
func TestClientWait(t *testing.T) {
	var c clientWait
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	c.begin(at(0))
	c.begin(at(1))
	c.end(at(2))
	if got := c.total(at(3)); got != 3*time.Second {
		t.Errorf("in progress: %v", got)
	}
	c.end(at(4))
	c.begin(at(10))
	c.end(at(11))
	if got := c.total(at(20)); got != 5*time.Second {
		t.Errorf("%v", got)
	}
	for _, one := range []struct {
		waited, took time.Duration
		want         bool
	}{
		{minClientWait - 1, minClientWait - 1, false},
		{minClientWait, minClientWait, true},
		{2 * minClientWait, 4 * minClientWait, false},
		{2 * minClientWait, 4*minClientWait - 1, true},
	} {
		if isMostOf(one.waited, one.took) != one.want {
			t.Errorf("%v of %v: %v", one.waited, one.took, !one.want)
		}
	}
}

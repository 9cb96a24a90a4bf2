package main

import (
	"testing"
	"time"
)

// TestPathIsParsed: a path has the size and the delay.
func TestPathIsParsed(t *testing.T) {
	for text, want := range map[string]struct {
		size  int
		delay time.Duration
	}{
		"GET /200 HTTP/1.1\r\nHost: x": {200, 0},
		"GET /0 HTTP/1.1":              {0, 0},
		"GET /16384/10ms HTTP/1.1":     {16384, 10 * time.Millisecond},
	} {
		if size, delay, err := asked([]byte(text)); err != nil || size != want.size || delay != want.delay {
			t.Errorf("%q: %d, %v, %v", text, size, delay, err)
		}
	}
	for _, text := range []string{"", "POST /200 HTTP/1.1", "GET /x HTTP/1.1", "GET /-1 HTTP/1.1", "GET /200/soon HTTP/1.1", "GET /99999999 HTTP/1.1"} {
		if _, _, err := asked([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

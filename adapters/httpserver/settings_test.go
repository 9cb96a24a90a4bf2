package httpserver

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"
)

// TestServerUsesEachLimit: every limit of the configuration sets the limit of net/http with the
// same meaning. All values differ, so that none can be confused.
func TestServerUsesEachLimit(t *testing.T) {
	c := Config{MaxHeader: 5 << 10, Streams: 7, Window: 70 << 10, Header: 11 * time.Second, Read: 13 * time.Second,
		Request: 17 * time.Second, Write: 19 * time.Second, Idle: 23 * time.Second}
	is := New(c, http.NotFoundHandler(), Hooks{}, slog.New(slog.DiscardHandler)).server(context.Background())
	for name, times := range map[string][2]time.Duration{
		"ReadHeaderTimeout":      {is.ReadHeaderTimeout, c.Header},
		"ReadTimeout":            {is.ReadTimeout, c.Read},
		"WriteTimeout":           {is.WriteTimeout, c.Read + c.Request + c.Write}, // net/http counts it from the end of the header
		"IdleTimeout":            {is.IdleTimeout, c.Idle},
		"HTTP2.WriteByteTimeout": {is.HTTP2.WriteByteTimeout, c.Write},
	} {
		if times[0] != times[1] {
			t.Errorf("%s is %v, want %v", name, times[0], times[1])
		}
	}
	for name, sizes := range map[string][2]int{
		"MaxHeaderBytes":                      {is.MaxHeaderBytes, c.MaxHeader},
		"HTTP2.MaxConcurrentStreams":          {is.HTTP2.MaxConcurrentStreams, c.Streams},
		"HTTP2.MaxReceiveBufferPerStream":     {is.HTTP2.MaxReceiveBufferPerStream, c.Window},
		"HTTP2.MaxReceiveBufferPerConnection": {is.HTTP2.MaxReceiveBufferPerConnection, c.Streams * c.Window},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s is %d, want %d", name, sizes[0], sizes[1])
		}
	}
}

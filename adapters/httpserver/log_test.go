package httpserver

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestPanicsOfHandlersAreErrors: net/http reports a panic of a handler through ErrorLog, beside
// messages that any client can cause. Only the panic is an error.
func TestPanicsOfHandlersAreErrors(t *testing.T) {
	var out strings.Builder
	s := New(Config{}, http.NotFoundHandler(), Hooks{}, slog.New(slog.NewTextHandler(&out, nil)))
	l := s.server(t.Context()).ErrorLog
	l.Print("http: TLS handshake error from 127.0.0.1:1: EOF")
	l.Print("http: panic serving 127.0.0.1:1: broken\ngoroutine 1")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=ERROR msg="http: panic serving 127.0.0.1:1: broken\ngoroutine 1"`) {
		t.Error(got)
	}
}

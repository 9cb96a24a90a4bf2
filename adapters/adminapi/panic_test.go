package adminapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPanicAnswersProblem runs a handler that panics on a real connection. Before the answer has begun the
// client gets a problem; after that the connection breaks off and nothing is added to the body.
func TestPanicAnswersProblem(t *testing.T) {
	for name, c := range map[string]struct {
		handler   http.HandlerFunc
		status    int // 0: the connection breaks off
		body      string
		logsPanic bool
	}{
		"before the answer": {func(http.ResponseWriter, *http.Request) { panic("broken") }, 500, `"code":"internal"`, true},
		"within the answer": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half of it"); panic("broken") }, 0, "half of it", true},
		"after the header":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); panic("broken") }, 0, "", true},
		"early hints":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("broken") }, 500, `"code":"internal"`, true},
		"an abort": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half of it")
			panic(http.ErrAbortHandler)
		}, 0, "half of it", false},
		"an abort, at once": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "", false},
	} {
		d := build(func(cfg *Config) {
			cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.handler(w, r) })
		})
		server := httptest.NewUnstartedServer(d)
		server.Config.ErrorLog = nil
		server.Start()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get(server.URL + "/metrics")
		switch {
		case err != nil && c.status != 0:
			t.Errorf("%s: %v", name, err)
		case err == nil:
			body, readErr := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if c.status != 0 && (res.StatusCode != c.status || !strings.Contains(string(body), c.body)) || c.status == 0 && res.StatusCode != 204 && readErr == nil {
				t.Errorf("%s: %d %q, %v", name, res.StatusCode, body, readErr)
			}
			if c.status == 0 && strings.Contains(string(body), "internal") {
				t.Errorf("%s: a problem follows the body: %q", name, body)
			}
		}
		client.CloseIdleConnections()
		server.Close()
		if logged := strings.Contains(d.lines.String(), "panicked"); logged != c.logsPanic {
			t.Errorf("%s: the panic is logged: %v", name, logged)
		}
	}
}

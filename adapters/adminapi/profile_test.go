package adminapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestProfileEndsWithItsCredential: a profile or a trace whose credential is revoked while it runs ends, and its client gets no whole answer.
func TestProfileEndsWithItsCredential(t *testing.T) {
	for _, path := range []string{"profile", "trace", "heap"} {
		var asked atomic.Int32
		d := build(func(c *Config) {
			c.Authorize = func(string) (string, bool) { return "revoked later", asked.Add(1) < 3 }
		})
		d.checkInterval = 50 * time.Millisecond
		server := httptest.NewServer(d)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/debug/pprof/"+path+"?seconds=50", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+otherToken)
		body, err := read(r)
		server.Close() // waits for the request
		if err == nil {
			t.Errorf("%s: a whole answer of %d bytes", path, len(body))
		}
		if log := d.lines.String(); !strings.Contains(log, "admin request ended: its credential is no longer valid") || strings.Contains(log, "panicked") {
			t.Errorf("%s: %s", path, log)
		}
	}
}

// read does a request and reads its response to its end.
func read(r *http.Request) ([]byte, error) {
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// TestProfileIsWholeWhileItsCredentialIsValid: it is looked at many times, and the answer is whole.
func TestProfileIsWholeWhileItsCredentialIsValid(t *testing.T) {
	d := build(nil)
	d.checkInterval = time.Millisecond
	server := httptest.NewServer(d)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/debug/pprof/profile?seconds=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+otherToken)
	if body, err := read(r); err != nil || len(body) == 0 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

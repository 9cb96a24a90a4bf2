package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/ci/bench/objplan"
	"macronode/ci/bench/s3sign"
)

// shelf is a server of objects, whose answers a test can spoil.
type shelf struct {
	mu      sync.Mutex
	content map[string][]byte
	begins  map[string]bool // of the objects that were stored
	signed  int
	spoil   func(w http.ResponseWriter) bool
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
		s.signed++
	}
	if s.spoil != nil && s.spoil(w) {
		return
	}
	if r.Method == http.MethodPut {
		b, _ := io.ReadAll(r.Body)
		s.content[r.URL.Path] = b
		s.begins[string(b[:objplan.StampLen])] = true
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content[r.URL.Path]))
}

func runOn(t *testing.T, s *shelf, p objplan.Plan) (objplan.Result, error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	p.Addr, p.Conns, p.Time = netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://")), 3, 30*time.Millisecond
	p.S3 = &s3sign.Credentials{AccessKey: "key", Secret: "secret", Region: "us-east-1"}
	return drive(t.Context(), &p)
}

// TestObjectsDiffer: every new object has its own path and content, and every request is signed.
func TestObjectsDiffer(t *testing.T) {
	s := &shelf{content: map[string][]byte{}, begins: map[string]bool{}}
	r, err := runOn(t, s, objplan.Plan{Method: http.MethodPut, Status: 200, Prefix: "/bench/", Size: 1000, Salt: 7})
	if err != nil || r.All == 0 || uint64(len(s.content)) != r.All || uint64(len(s.begins)) != r.All || uint64(s.signed) != r.All || r.Signing == 0 {
		t.Fatalf("%+v, %d paths, %d contents, %d signed, %v", r, len(s.content), len(s.begins), s.signed, err)
	}
}

// TestAnswersAreChecked: another status, length or object ends the run.
func TestAnswersAreChecked(t *testing.T) {
	s := &shelf{content: map[string][]byte{}}
	read := objplan.Plan{Method: http.MethodGet, Status: 200, Size: 5000}
	for n := range uint64(4) {
		path := fmt.Sprint("/", n)
		s.content[path] = objplan.Content(5000)
		objplan.Stamp(s.content[path], 1, n)
		read.Paths = append(read.Paths, path)
	}
	if r, err := runOn(t, s, read); err != nil || r.All == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	part := read
	part.Range, part.Status = 100, http.StatusPartialContent
	if r, err := runOn(t, s, part); err != nil || r.All == 0 {
		t.Fatalf("a range: %+v, %v", r, err)
	}
	for what, change := range map[string]func(){
		"status": func() { s.spoil = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusTeapot); return true } },
		"length": func() {
			s.spoil = func(w http.ResponseWriter) bool { _, _ = w.Write(make([]byte, 4999)); return true }
		},
		"object": func() { s.spoil, s.content["/2"] = nil, s.content["/1"] },
	} {
		change()
		if r, err := runOn(t, s, read); err == nil {
			t.Errorf("another %s: %+v", what, r)
		}
	}
}

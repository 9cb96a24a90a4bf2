package bucket_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/bucket"
	"macronode/adapters/fs"
)

// server is an S3 server in memory, with faults. It does not check signatures: the real servers in chaos/buckets do.
type server struct {
	mu    sync.Mutex
	files map[string]stored
	fault func(w http.ResponseWriter, r *http.Request) (answered bool) // nil: none
	after func(r *http.Request) (drop bool)                            // of a put that was done; nil: it is answered
	calls map[string]int                                               // by method
	page  int                                                          // names in a page
}

type stored struct {
	content []byte
	mark    string
}

func (f stored) tag() string {
	sum := md5.Sum(append(f.content, f.mark...)) //nolint:gosec // it only names the content
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func newServer(t *testing.T) (*server, *httptest.Server) {
	s := &server{files: map[string]stored{}, calls: map[string]int{}, page: 3}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h
}

// bucketOf returns a bucket of a server, with a prefix and a spool directory of its own.
func bucketOf(t *testing.T, url, prefix string) *bucket.Bucket {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("key\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spool, err := fs.Make(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(bucket.Config{Endpoint: url, Region: "us-east-1", Bucket: "copies", Prefix: prefix, CredentialsFile: secret, Spool: spool})
}

func (s *server) setFault(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault, after := s.fault, s.after
	s.calls[r.Method]++
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	key, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/")+"/", "/copies/")
	key = strings.TrimSuffix(key, "/")
	if !ok {
		refuse(w, r, http.StatusNotFound, "NoSuchBucket")
		return
	}
	switch {
	case r.Method == http.MethodPut:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !s.put(key, stored{body, r.Header.Get("X-Amz-Meta-Macronode-Put")}, r.Header.Get("If-None-Match") == "*") {
			refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		} else if after != nil && after(r) {
			panic(http.ErrAbortHandler)
		}
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.files, key)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case key == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case r.Method == http.MethodHead && r.URL.Path == "/copies": // of the bucket
	case key != "":
		s.get(w, r, key)
	}
}

func (s *server) put(key string, f stored, onlyNew bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.files[key]; there && onlyNew {
		return false
	}
	s.files[key] = f
	return true
}

func (s *server) get(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	f, ok := s.files[key]
	s.mu.Unlock()
	switch match := r.Header.Get("If-Match"); {
	case !ok:
		refuse(w, r, http.StatusNotFound, "NoSuchKey")
		return
	case match != "" && match != f.tag():
		refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	w.Header().Set("ETag", f.tag())
	w.Header().Set("X-Amz-Meta-Macronode-Put", f.mark)
	content, from, to := f.content, 0, 0
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n == 2 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
		content = content[from : to+1]
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if n := w.Header().Get("Content-Range"); n != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(content)
	}
}

type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	IsTruncated bool
	Next        string `xml:"NextContinuationToken,omitempty"`
	Contents    []struct{ Key string }
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	keys := slices.Sorted(maps.Keys(s.files))
	s.mu.Unlock()
	q := r.URL.Query()
	var out listing
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k, q.Get("prefix"))
		if !ok || strings.Contains(rest, "/") || k <= q.Get("continuation-token") {
			continue
		}
		if len(out.Contents) == s.page {
			out.IsTruncated, out.Next = true, out.Contents[s.page-1].Key
			break
		}
		out.Contents = append(out.Contents, struct{ Key string }{k})
	}
	_ = xml.NewEncoder(w).Encode(out)
}

func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
	}
}

package bucket_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/bucket"
	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/adapters/httpcheck"
	"macronode/adapters/provider"
)

func TestContract(t *testing.T) {
	_, h := newServer(t)
	fstest.Provider(t, func(t *testing.T) provider.Port {
		return bucketOf(t, h.URL, strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	})
	t.Run("without prefix", func(t *testing.T) {
		fstest.Provider(t, func(t *testing.T) provider.Port {
			_, h := newServer(t)
			return bucketOf(t, h.URL, "")
		})
	})
}

// put stores a file.
func put(t *testing.T, b *bucket.Bucket, name string, content []byte) error {
	t.Helper()
	draft := name + provider.DraftSuffix
	f, err := b.Create(draft)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(content, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	err = b.Put(draft, name)
	if err != nil {
		_ = b.Remove(draft)
	}
	return err
}

// read reads a whole file as a stream.
func read(b *bucket.Bucket, name string) ([]byte, error) {
	f, err := b.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _ := f.Size()
	f.(provider.Sequential).Expect(0, uint64(size))
	all := make([]byte, size)
	for off := int64(0); off < size; off += 4096 {
		to := min(off+4096, size)
		if _, err := f.ReadAt(all[off:to], off); err != nil && (!errors.Is(err, io.EOF) || to < size) {
			return nil, err
		}
	}
	return all, nil
}

// times is a fault of the first n requests with a method.
func times(n int32, method string, fault http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	var left atomic.Int32
	left.Store(n)
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || left.Add(-1) < 0 {
			return false
		}
		fault(w, r)
		return true
	}
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { refuse(w, r, code, text) }
}

func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that its client has gone
	<-r.Context().Done()
}

// begin answers with the first bytes of a range.
func begin(w http.ResponseWriter, r *http.Request, content []byte, n int) {
	from, to := 0, 0
	_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
	w.Header().Set("Content-Length", strconv.Itoa(to+1-from))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(content[from:min(from+n, to+1)])
	w.(http.Flusher).Flush()
}

// switchProtocol answers with another protocol, which ends only if the client closes the connection.
func switchProtocol(w http.ResponseWriter, _ *http.Request) {
	conn, _, _ := http.NewResponseController(w).Hijack()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

func cutConnection(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TestFaults: every fault of a server ends a call in time, with an error that says what it is, or is hidden by another attempt.
func TestFaults(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	released := make(chan struct{})
	getting := func(b *bucket.Bucket) error { _, err := read(b, "a"); return err }
	for _, c := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		do    func(*testing.T, *bucket.Bucket) error // nil: read
		is    error                                  // nil: success
		text  string
	}{
		{name: "one unavailable read", fault: times(1, "GET", status(503, "SlowDown"))},
		{name: "two broken connections", fault: times(2, "GET", cutConnection)},
		{name: "unavailable reads", fault: times(99, "GET", status(503, "SlowDown")), text: "status 503, SlowDown"},
		{name: "a stat that hangs", fault: times(99, "HEAD", hang), is: os.ErrDeadlineExceeded, text: "stat a in bucket copies: no answer in time"},
		{name: "a read that hangs", fault: times(99, "GET", hang), is: os.ErrDeadlineExceeded, text: "get a in bucket copies: no answer in time"},
		{name: "a read that switches the protocol", fault: times(99, "GET", switchProtocol), is: httpcheck.ErrSwitched},
		{name: "a body that hangs", fault: times(99, "GET", func(w http.ResponseWriter, r *http.Request) { begin(w, r, content, 5000); hang(w, r) }), is: os.ErrDeadlineExceeded},
		{name: "a body that is cut", fault: times(99, "GET", func(w http.ResponseWriter, r *http.Request) { begin(w, r, content, 100); cutConnection(w, r) }), is: io.ErrUnexpectedEOF},
		{name: "a body that is cut now and then", fault: times(99, "GET", func(w http.ResponseWriter, r *http.Request) { begin(w, r, content, 9000); cutConnection(w, r) })},
		{name: "a body with another range", fault: times(99, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-65535/65536")
			w.WriteHeader(206)
		}), text: "another range"},
		{name: "a body without a range", fault: times(99, "GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }), text: "another range"},
		{name: "a wrong key", fault: times(99, "GET", status(403, "SignatureDoesNotMatch")), is: os.ErrPermission, text: "status 403, SignatureDoesNotMatch"},
		{name: "a missing bucket", fault: times(99, "GET", status(404, "NoSuchBucket")), text: "status 404, NoSuchBucket"},
		{name: "a file that is removed while it is read", fault: times(99, "GET", status(404, "NoSuchKey")), is: os.ErrNotExist},
		{name: "an unavailable put", fault: times(1, "PUT", status(500, "InternalError")), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", content) }},
		{name: "a put that collides", fault: times(1, "PUT", status(409, "ConditionalRequestConflict")), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", content) }},
		{name: "unavailable puts", fault: times(99, "PUT", status(500, "InternalError")), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", content) }, text: "status 500"},
		{name: "a put that hangs", fault: times(99, "PUT", hang), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", content[:10]) }, is: os.ErrDeadlineExceeded},
		{name: "a full bucket", fault: times(99, "PUT", status(403, "QuotaExceeded")), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", content) }, is: syscall.EDQUOT},
		{name: "an unavailable list", fault: times(1, "GET", status(503, "SlowDown")), do: func(_ *testing.T, b *bucket.Bucket) error { _, err := b.List(); return err }},
		{name: "a list that hangs", fault: times(99, "GET", hang), do: func(_ *testing.T, b *bucket.Bucket) error { _, err := b.List(); return err }, is: os.ErrDeadlineExceeded},
		{name: "a removal that fails", fault: times(99, "DELETE", status(403, "AccessDenied")), do: func(_ *testing.T, b *bucket.Bucket) error { return b.Remove("a") }, is: os.ErrPermission, text: "AccessDenied"},
		{name: "a put that is not taken", fault: times(99, "PUT", func(_ http.ResponseWriter, r *http.Request) { <-released }), do: func(t *testing.T, b *bucket.Bucket) error { return put(t, b, "b", make([]byte, 64<<20)) }, is: os.ErrDeadlineExceeded},
		{name: "a list without an end", fault: times(99, "GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken><Contents><Key>p/z</Key></Contents></ListBucketResult>")
		}), do: func(_ *testing.T, b *bucket.Bucket) error { _, err := b.List(); return err }, text: "has no end"},
		{name: "a list that is too long", fault: times(99, "GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<ListBucketResult>")
			entries := strings.Repeat("<Contents><Key>p/"+strings.Repeat("z", 1000)+"</Key></Contents>", 100)
			for range 1000 {
				if _, err := io.WriteString(w, entries); err != nil {
					return
				}
			}
		}), do: func(_ *testing.T, b *bucket.Bucket) error { _, err := b.List(); return err }, text: "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.text == "too long" {
				t.Skip("it reads many names on one goroutine, which takes its time with the race detector")
			}
			s, h := newServer(t)
			b := bucketOf(t, h.URL, "p")
			if err := put(t, b, "a", content); err != nil {
				t.Fatal(err)
			}
			s.setFault(c.fault)
			done := make(chan error, 1)
			go func() {
				if c.do == nil {
					done <- getting(b)
				} else {
					done <- c.do(t, b)
				}
			}()
			err := error(nil)
			select {
			case err = <-done:
			case <-time.After(time.Minute): // a guard: no call takes as long
				t.Fatal("the call hangs")
			}
			if c.name == "a put that is not taken" {
				close(released)
			}
			h.CloseClientConnections()
			if (err == nil) != (c.is == nil && c.text == "") || c.is != nil && !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v %q", err, c.is, c.text)
			}
			if known := errors.Is(c.is, os.ErrNotExist) || errors.Is(c.is, syscall.EDQUOT); err != nil && errors.Is(err, provider.ErrUnavailable) == known {
				t.Errorf("%v: says that the provider cannot be reached: %t", err, known)
			}
			s.setFault(nil)
			if got, err := read(b, "a"); !bytes.Equal(got, content) && c.name != "a removal that fails" {
				t.Errorf("after the fault: %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestLostAnswer: the answer to a put is lost after the file was stored. The next attempt finds the name, and the put succeeds if the
// file is its own.
func TestLostAnswer(t *testing.T) {
	s, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	lost := false
	s.after = func(*http.Request) bool {
		was := lost
		lost = true
		return !was
	}
	if err := put(t, b, "a", []byte("mine")); err != nil {
		t.Errorf("an answer is lost: %v", err)
	}
	s.after = nil
	if s.calls["PUT"] != 2 {
		t.Errorf("%d puts", s.calls["PUT"])
	}
	s.setFault(times(1, "PUT", cutConnection))
	if err := put(t, b, "a", []byte("other")); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file of another put: %v", err)
	}
	if got, err := read(b, "a"); string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestUnsuitableServer: a server that ignores the condition of a put is found by a thorough probe.
func TestUnsuitableServer(t *testing.T) {
	s, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"ignores the header If-None-Match": func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("If-None-Match"); return false },
		"does not support the header If-None-Match": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-None-Match") == "" {
				return false
			}
			refuse(w, r, 501, "NotImplemented")
			return true
		},
	} {
		s.setFault(fault)
		_, err := b.Probe(provider.Thorough)
		if !errors.Is(err, provider.ErrUnsuitable) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if names, err := b.List(); len(names) > 0 || err != nil {
			t.Errorf("%s: left %q, %v", name, names, err)
		}
	}
}

// TestTooManyOpenFilesAreReported: if the node has too many open files to read the credentials, the error says so: the bucket has not failed.
func TestTooManyOpenFilesAreReported(t *testing.T) {
	_, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := b.Stat("a")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) || !provider.IsShortage(err) {
		t.Errorf("%v", err)
	}
	if _, err := b.Stat("a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("later: %v", err)
	}
}

// TestSecretIsReadAgain: the file with the secret may be replaced, and an unreadable one is reported.
func TestSecretIsReadAgain(t *testing.T) {
	_, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	for text, want := range map[string]string{"": "two lines", "two words": "two lines", "key\n": "two lines", "key\ngood": ""} {
		if err := os.WriteFile(b.CredentialsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.List(); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "two words")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Remove(b.CredentialsFile); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stat("a"); err == nil || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "secret") {
		t.Errorf("a missing secret: %v", err)
	}
}

// TestStreamIsOneRequest: a range that is announced needs one request, and others do not disturb it.
func TestStreamIsOneRequest(t *testing.T) {
	s, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	if err := put(t, b, "a", make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := read(b, "a"); err != nil || s.calls["GET"] != 1 {
		t.Errorf("%d requests, %v", s.calls["GET"], err)
	}
}

// TestRequestsAreLimited: when all requests are in use, a further one fails in time, and that is no fault of the provider.
func TestRequestsAreLimited(t *testing.T) {
	_, h := newServer(t)
	b := bucketOf(t, h.URL, "p")
	if err := put(t, b, "a", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	var held []fs.File
	buf := make([]byte, 10)
	for range bucket.MaxRequests {
		f, err := b.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
		f.(provider.Sequential).Expect(0, 1000)
		if _, err := f.ReadAt(buf, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Stat("a"); !errors.Is(err, provider.ErrBusy) {
		t.Errorf("a stat: %v", err)
	}
	if _, err := held[0].ReadAt(buf, 500); !errors.Is(err, provider.ErrBusy) {
		t.Errorf("a read: %v", err)
	}
	if _, err := held[0].ReadAt(buf, 10); err != nil {
		t.Errorf("a read of the next part: %v", err)
	}
	for _, f := range held {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Stat("a"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCertificate: a server is trusted by its own certificate, which is a file, and by no other one.
func TestCertificate(t *testing.T) {
	s := &server{files: map[string]stored{}, calls: map[string]int{}, page: 3}
	h := httptest.NewTLSServer(s)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(h.Close)
	b := bucketOf(t, h.URL, "p")
	if err := put(t, b, "a", []byte("text")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	c := b.Config
	c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	b = bucket.New(c)
	if err := put(t, b, "a", []byte("text")); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(c.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(t, b, "a", []byte("text")); err != nil {
		t.Error(err)
	}
	if got, err := read(b, "a"); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

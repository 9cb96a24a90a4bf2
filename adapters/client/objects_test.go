package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/client"
)

// TestDownloadContinues cuts the connection after each part: the object arrives whole, and no byte of it twice.
func TestDownloadContinues(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 30_000)
	address, _, err := client.Address(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests := r.Header.Get("Range")
		mu.Lock()
		asked = append(asked, requests)
		mu.Unlock()
		from := 0
		if requests != "" {
			from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(requests, "bytes="), "-"))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
		if requests != "" {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(content[from:min(from+100_000, len(content))])
		if from+100_000 < len(content) {
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	for _, offset := range []uint64{0, 50_000, 300_000} {
		mu.Lock()
		asked = nil
		mu.Unlock()
		k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		got.Write(content[:offset])
		size, err := k.GetObject(t.Context(), address, "", offset, bytes.NewReader(content), &got)
		mu.Lock()
		if err != nil || size != uint64(len(content)) || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("from %d: %d bytes of %d, %v; asked %q", offset, got.Len(), size, err, asked)
		}
		mu.Unlock()
		k.Close()
	}
}

// TestReceivedContentIsChecked: neither other bytes nor a wrong beginning are taken for the object.
func TestReceivedContentIsChecked(t *testing.T) {
	address, _, _ := client.Address(strings.NewReader("hello"))
	for answer, offset := range map[string]uint64{"hallo": 0, "lo": 3} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = io.WriteString(w, answer)
		}))
		k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.GetObject(t.Context(), address, "", offset, strings.NewReader("hex"), io.Discard); !errors.Is(err, client.ErrContent) {
			t.Errorf("%s from %d: %v", answer, offset, err)
		}
		k.Close()
		s.Close()
	}
}

// TestUploadIsSentAgain: each attempt sends the content from its start.
func TestUploadIsSentAgain(t *testing.T) {
	var mu sync.Mutex
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
		if len(got) < 3 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"address":"b3:0","bucket":"default","size":"5","created":true}`)
	}))
	defer s.Close()
	k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o, err := k.PutObject(t.Context(), "b3:0", "", 5, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil })
	mu.Lock()
	if err != nil || !o.Created || strings.Join(got, ",") != "hello,hello,hello" {
		t.Errorf("%v, %v, sent %q", o, err, got)
	}
	mu.Unlock()
	k2, _ := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
	defer k2.Close()
	if _, err := k2.PutObject(t.Context(), "", "", -1, func() (io.ReadCloser, error) { return nil, errInput }); !errors.Is(err, errInput) {
		t.Errorf("content that cannot be read: %v", err)
	}
}

// TestStatReturnsProblem: a response to HEAD has no body, so the client requests the problem by
// GET.
func TestStatReturnsProblem(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"type":"t","title":"forbidden","status":403,"detail":"no","code":"forbidden","retryable":false,"decision_id":"d_0"}`)
	}))
	defer s.Close()
	k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.StatObject(t.Context(), "b3:0", ""); !errors.Is(err, client.Forbidden) {
		t.Errorf("%v", err)
	}
}

var errInput = errors.New("no input")

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

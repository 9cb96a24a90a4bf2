package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"macronode/adapters/client"
)

// An uploadNode is a node with one upload, as far as a client needs it.
type uploadNode struct {
	mu       sync.Mutex
	content  []byte // of the upload
	complete bool
	received int                                                  // bytes of all parts
	fault    func(n int, w http.ResponseWriter, keep func()) bool // before the n-th part is stored; true: the response was given
	parts    int
}

func (u *uploadNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	problem := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":%q,"retryable":false}`, code)
	}
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprintf(w, `{"upload_id":"0000000000010000","address":"b3:","bucket":"default","offset":"%d","complete":%v}`, len(u.content), u.complete)
		return
	}
	body, err := io.ReadAll(r.Body)
	u.received += len(body)
	if r.Header.Get("Upload-Offset") != strconv.Itoa(len(u.content)) || u.complete {
		problem(409, "upload_offset_mismatch")
		return
	}
	keep := func() {
		u.content = append(u.content, body...)
		u.complete = err == nil && r.Header.Get("Upload-Complete") == "?1"
	}
	if u.parts++; u.fault != nil && u.fault(u.parts, w, keep) {
		return
	}
	if keep(); !u.complete {
		w.WriteHeader(204)
		return
	}
	_, _ = fmt.Fprint(w, `{"address":"b3:","bucket":"default","size":"1","created":true}`)
}

// TestUploadGoesOn: whatever happens to a part or to its response, the node gets the content once, and the client sends
// only what the node lacks.
func TestUploadGoesOn(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), (2*client.PartSize+100)/16)
	cut := func(http.ResponseWriter, func()) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		fault    func(n int, w http.ResponseWriter, keep func()) bool
		begin    int // bytes that the node has
		received int // bytes that are sent in all
		want     error
	}{
		"no fault":         {nil, 0, len(content), nil},
		"resumed":          {nil, client.PartSize + 7, len(content) - client.PartSize - 7, nil},
		"nothing is left":  {nil, len(content), 0, nil},
		"the part is lost": {func(n int, w http.ResponseWriter, keep func()) bool { return n == 2 && lost(func() { cut(w, keep) }) }, 0, len(content) + client.PartSize, nil},
		"the response is lost": {func(n int, w http.ResponseWriter, keep func()) bool {
			return n == 2 && lost(func() { keep(); cut(w, keep) })
		}, 0, len(content), nil},
		"the last response is lost": {func(n int, w http.ResponseWriter, keep func()) bool {
			return n == 3 && lost(func() { keep(); cut(w, keep) })
		}, 0, len(content), nil},
		"busy": {func(n int, w http.ResponseWriter, _ func()) bool {
			if n != 1 {
				return false
			}
			w.WriteHeader(429)
			_, _ = fmt.Fprint(w, `{"code":"busy","retryable":true}`)
			return true
		}, 0, len(content) + client.PartSize, nil},
		"another content": {func(n int, w http.ResponseWriter, keep func()) bool {
			if n != 3 {
				return false
			}
			w.WriteHeader(409)
			_, _ = fmt.Fprint(w, `{"code":"digest_mismatch","retryable":false}`)
			return true
		}, 0, len(content), client.DigestMismatch},
		"a part is lost, and the next one rejected":        {thenForbidden(2, cut), 0, 3 * client.PartSize, client.Forbidden},
		"the last part is lost, and the next one rejected": {thenForbidden(3, cut), 0, len(content) + len(content)%client.PartSize, client.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			n := &uploadNode{content: bytes.Clone(content[:c.begin]), fault: c.fault}
			s := httptest.NewServer(n)
			defer s.Close()
			k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			u, err := k.GetUpload(t.Context(), "b3:", "", "0000000000010000")
			if err != nil {
				t.Fatal(err)
			}
			reached := uint64(0)
			_, err = k.SendUpload(t.Context(), u, uint64(len(content)), bytes.NewReader(content), func(offset uint64) { reached = offset })
			if !errors.Is(err, c.want) || errors.Is(err, client.ErrUnknown) != errors.Is(c.want, client.ErrUnknown) || c.want == nil && (!n.complete || !bytes.Equal(n.content, content) || reached != uint64(len(content))) {
				t.Errorf("%v, complete %v, %d bytes, reached %d", err, n.complete, len(n.content), reached)
			}
			if n.received != c.received {
				t.Errorf("%d bytes were sent, want %d", n.received, c.received)
			}
		})
	}
}

// thenForbidden cuts the n-th part, and rejects all later ones.
func thenForbidden(first int, cut func(http.ResponseWriter, func())) func(n int, w http.ResponseWriter, keep func()) bool {
	return func(n int, w http.ResponseWriter, keep func()) bool {
		switch {
		case n == first:
			cut(w, keep)
		case n > first:
			w.WriteHeader(403)
			_, _ = fmt.Fprint(w, `{"code":"forbidden","retryable":false}`)
			return true
		}
		return false
	}
}

// lost ends a connection without a response.
func lost(f func()) bool { f(); return true }

// TestUploadOfAShorterFileEnds: content that becomes shorter is no reason to retry.
func TestUploadOfAShorterFileEnds(t *testing.T) {
	s := httptest.NewServer(&uploadNode{})
	defer s.Close()
	k, err := client.New(s.URL, "secret", client.Options{Environment: client.Environment{Sleep: noSleep}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	u, err := k.GetUpload(t.Context(), "b3:", "", "0000000000010000")
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.SendUpload(t.Context(), u, 100, strings.NewReader("short"), func(uint64) {})
	if own := (*client.ReadError)(nil); !errors.As(err, &own) {
		t.Error(err)
	}
}

package cli

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/adapters/client"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/testkit"
)

// A front passes requests to a node that may be killed. It counts the bytes of parts, and may end the node after one.
type front struct {
	*httptest.Server
	t    *testing.T
	dir  string
	mu   sync.Mutex
	node *testkit.Killable
	cmd  *exec.Cmd
	sent int
	then func(part int) (respond bool) // after the n-th part was stored
	part int
}

func newFront(t *testing.T) *front {
	f := &front{t: t, dir: t.TempDir()}
	f.node = testkit.StartKillable(t, f.dir)
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		is, err := nodedir.Read(f.dir)
		if err != nil {
			t.Error(err)
		}
		r.SetURL(&url.URL{Scheme: "http", Host: is.Listen.HTTP})
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.node.ProcessState != nil {
			panic(http.ErrAbortHandler)
		}
		if r.Method != http.MethodPatch {
			to.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.sent += len(body)
		answer := httptest.NewRecorder()
		to.ServeHTTP(answer, r)
		if f.part++; !f.then(f.part) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(f.Close)
	return f
}

// put runs the command, and returns its output and the bytes of the parts that were sent.
func (f *front) put(file, state string) (out string, code, sent int) {
	f.t.Helper()
	cmd := exec.Command("macronode", "object", "put", file, "--json", "--url", f.URL, "--api-key-file", filepath.Join(f.dir, "bootstrap.key"), "--state-home", state)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	f.mu.Lock()
	f.sent, f.part, f.cmd = 0, 0, cmd
	err := cmd.Start() // a part that signals the command waits for its start
	f.mu.Unlock()
	testkit.Must(f.t, err)
	_ = cmd.Wait() // its exit code tells the same
	f.mu.Lock()
	defer f.mu.Unlock()
	return output.String(), cmd.ProcessState.ExitCode(), f.sent
}

// TestUploadOutlivesKills kills the node amid uploads: what it has is not sent again, in the same command and in the next.
func TestUploadOutlivesKills(t *testing.T) {
	t.Parallel()
	content := make([]byte, 3*client.PartSize+12_345)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	file, state := filepath.Join(t.TempDir(), "large"), t.TempDir()
	testkit.Must(t, os.WriteFile(file, content, 0o600))
	f := newFront(t)
	old := filepath.Join(state, "macronode", "uploads", "old") // of an upload that no command continued
	testkit.Must(t, os.MkdirAll(filepath.Dir(old), 0o700))
	testkit.Must(t, os.WriteFile(old, nil, 0o600))
	testkit.Must(t, os.Chtimes(old, time.Time{}, time.Now().Add(-maxStateAge-time.Hour)))
	states := func() int {
		list, err := os.ReadDir(filepath.Join(state, "macronode", "uploads"))
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}

	f.then = func(part int) bool { // the response to the second part is lost, the node stays away, and the command is interrupted
		if part == 2 {
			f.node.End()
			testkit.Must(t, f.cmd.Process.Signal(os.Interrupt))
		}
		return part != 2
	}
	out, code, sent := f.put(file, state)
	if code != 3 || !strings.Contains(out, "repeat the command") || sent != 2*client.PartSize || states() != 1 {
		t.Fatalf("exit code %d, %d bytes sent, %d states\n%s", code, sent, states(), out)
	}

	f.node = testkit.StartKillable(t, f.dir)
	f.then = func(part int) bool { // the response to the first part is lost, but the node is back soon
		if part == 1 {
			f.node.End()
			f.node = testkit.StartKillable(t, f.dir)
		}
		return part != 1
	}
	out, code, sent = f.put(file, state)
	if code != 0 || !strings.Contains(out, `"resumed_bytes":"`+strconv.Itoa(2*client.PartSize)+`"`) || sent != len(content)-2*client.PartSize || states() != 0 {
		t.Fatalf("exit code %d, %d bytes sent, %d states\n%s", code, sent, states(), out)
	}
	address, _, err := client.Address(bytes.NewReader(content))
	testkit.Must(t, err)
	if status, got := f.node.Object(t, http.MethodGet, "/o/"+address, nil); status != 200 || !bytes.Equal(got, content) {
		t.Errorf("%d, %d bytes", status, len(got))
	}
	if out, code, sent = f.put(file, state); code != 0 || sent != 0 {
		t.Errorf("again: exit code %d, %d bytes sent\n%s", code, sent, out)
	}
}

// TestBeginOfAnUploadIsRepeatable: a begin with the same idempotency key is the same upload, and with another address
// it is rejected.
func TestBeginOfAnUploadIsRepeatable(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	key, err := os.ReadFile(filepath.Join(f.dir, "bootstrap.key"))
	testkit.Must(t, err)
	begin := func(digit string) (int, string, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.URL+"/o/b3:"+strings.Repeat(digit, 64), nil)
		testkit.Must(t, err)
		for name, value := range map[string]string{"Authorization": "Bearer " + strings.TrimSpace(string(key)), "Idempotency-Key": "begin", "Upload-Complete": "?0"} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		return resp.StatusCode, resp.Header.Get("Location"), resp.Header.Get("Idempotency-Replayed")
	}
	status, first, replayed := begin("a")
	if status != 201 || first == "" || replayed != "" {
		t.Fatal(status, first, replayed)
	}
	f.node.End()
	f.node = testkit.StartKillable(t, f.dir)
	if status, again, replayed := begin("a"); status != 201 || again != first || replayed != "true" {
		t.Errorf("again: %d %s %s", status, again, replayed)
	}
	if status, _, _ := begin("b"); status != 422 {
		t.Errorf("another address: %d", status)
	}
}

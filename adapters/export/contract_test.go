package export

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"macronode/adapters/fs"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if server.database != nil {
			server.stop()
		}
		os.Exit(code)
	}))
}

// A target is what a sink delivers to, with faults.
type target interface {
	sink() Sink // a new one, as after a restart
	// faults are the names of the faults that it has; arm makes the next attempt meet one.
	faults() []string
	arm(fault string)
	seqs() []uint64 // of the items that it has, with repeated ones
}

// item returns an item of the one lane of the tests.
func item(seq uint64) *Item {
	return &Item{Source: "/node/1", ID: fmt.Sprintf("usage_%d", seq), Stream: Usage, Tenant: "default", Dimension: "custom:a/b", Seq: seq, Time: time.Unix(1_700_000_000, 0),
		Body: fmt.Appendf(nil, `{"tenant":"default","dimension":"custom:a/b","seq":%d}`, seq)}
}

// eachTarget runs a check for each kind of sink.
func eachTarget(t *testing.T, check func(t *testing.T, kind string)) {
	for _, kind := range []string{KindFile, KindHTTP, KindWebhook, KindCloudEvents, KindPostgres, KindNATS, KindKafka} {
		t.Run(kind, func(t *testing.T) { check(t, kind) })
	}
}

func newTarget(t testing.TB, kind string) target {
	switch kind {
	case KindFile:
		return &fileTarget{t: t, dir: filepath.Join(t.TempDir(), "exports")}
	case KindPostgres:
		return newPostgresTarget(t)
	case KindNATS:
		return newNATSTarget(t)
	case KindKafka:
		return newKafkaTarget(t)
	}
	return newHTTPTarget(t, kind)
}

// deliver repeats an item as a lane does, with longer and longer pauses, until the receiver has it.
func deliver(t testing.TB, s Sink, i *Item) {
	var reasons []string
	for n := range 12 {
		if n > 1 {
			time.Sleep(time.Millisecond << n)
		}
		switch r := s.Deliver(t.Context(), i); r.Outcome {
		case OK, Duplicate:
			return
		case Retryable:
			if r.Reason == "" || len(r.Reason) > maxReason {
				t.Fatalf("the reason is %q", r.Reason)
			}
			reasons = append(reasons, r.Reason)
		default:
			t.Fatalf("seq %d: %+v", i.Seq, r)
		}
	}
	t.Fatalf("seq %d was not delivered: %q", i.Seq, reasons)
}

// TestSinksDeliverInOrderUnderFaults repeats items under faults and restarts. Without repeated items, the receiver has each
// item once, in order.
func TestSinksDeliverInOrderUnderFaults(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind string) {
		rapid.Check(t, func(r *rapid.T) {
			to := newTarget(t, kind)
			sink := to.sink()
			faults := append(to.faults(), "restart", "none", "none")
			items := uint64(rapid.IntRange(1, 8).Draw(r, "items"))
			for seq := uint64(1); seq <= items; seq++ {
				for range rapid.IntRange(0, 2).Draw(r, "faults") {
					switch fault := rapid.SampledFrom(faults).Draw(r, "fault"); fault {
					case "restart":
						_ = sink.Close()
						sink = to.sink()
					case "none":
					default:
						to.arm(fault)
						if got := sink.Deliver(t.Context(), item(seq)); got.Outcome == Permanent || got.Outcome == Stopped {
							r.Fatalf("%s: %+v", fault, got)
						}
					}
				}
				deliver(t, sink, item(seq))
			}
			if err := sink.Close(); err != nil {
				r.Fatal(err)
			}
			var want []uint64
			for seq := uint64(1); seq <= items; seq++ {
				want = append(want, seq)
			}
			if got := slices.Compact(to.seqs()); !slices.Equal(got, want) {
				r.Fatalf("the receiver has %v, not %v", got, want)
			}
		})
	})
}

// TestFaultsAreRetryable checks that each fault is met, and that no attempt that meets one is acknowledged.
func TestFaultsAreRetryable(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind string) {
		to := newTarget(t, kind)
		sink := to.sink()
		defer sink.Close()
		for n, fault := range to.faults() {
			to.arm(fault)
			if got := sink.Deliver(t.Context(), item(uint64(n+1))); got.Outcome != Retryable {
				t.Errorf("%s: %+v, want retryable", fault, got)
			}
			deliver(t, sink, item(uint64(n+1)))
		}
	})
}

// faulty is a receiver with a fault that it meets once. It also guards what else the receiver has.
type faulty struct {
	mu    sync.Mutex
	fault string
}

// met takes the fault, if it is one of these.
func (f *faulty) met(faults ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(faults, f.fault) {
		return ""
	}
	fault := f.fault
	f.fault = ""
	return fault
}

// httpTarget is a receiver with faults.
type httpTarget struct {
	t    testing.TB
	kind string
	url  string
	file string
	keys [][]byte

	faulty
	got []uint64
}

func newHTTPTarget(t testing.TB, kind string) *httpTarget {
	h := &httpTarget{t: t, kind: kind}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL + "/in"
	if kind == KindWebhook {
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		h.keys, h.file = [][]byte{key}, filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(h.file, []byte(secretPrefix+base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *httpTarget) sink() Sink {
	s, err := New(Config{Name: "test", Kind: h.kind, URL: h.url, SecretFile: h.file, Inflight: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *httpTarget) faults() []string {
	return []string{"drop", "take and drop", "500", "503", "429", "302", "401", "404", "half a response", "torn header"}
}

func (h *httpTarget) arm(fault string) { h.mu.Lock(); h.fault = fault; h.mu.Unlock() }

func (h *httpTarget) seqs() []uint64 { h.mu.Lock(); defer h.mu.Unlock(); return h.got }

func (h *httpTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fault := h.fault
	h.fault = ""
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if fault == "" || fault == "take and drop" {
		seq, err := h.read(r, body)
		if err != nil {
			h.t.Errorf("%s %s: %v: %s", r.Method, r.URL, err, body)
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		h.got = append(h.got, seq)
	}
	switch fault {
	case "":
		_, _ = io.WriteString(w, "<garbage")
	case "half a response", "torn header", "drop", "take and drop":
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			h.t.Error(err)
			return
		}
		if fault == "half a response" {
			_, _ = buffered.WriteString("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\nhalf")
		}
		if fault == "torn header" {
			_, _ = buffered.WriteString("HTTP/1.1 200")
		}
		_ = buffered.Flush()
		_ = conn.Close()
	case "302":
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	default:
		var status int
		_, _ = fmt.Sscan(fault, &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("not now\n", 2000))
	}
}

// read checks a request as a receiver would, and returns the seq of its item.
func (h *httpTarget) read(r *http.Request, body []byte) (seq uint64, err error) {
	var at struct {
		Seq uint64 `json:"seq"`
	}
	switch h.kind {
	case KindHTTP:
		if _, err := fmt.Sscanf(r.RequestURI, "/in/slices/default/custom:a~2Fb/%d", &seq); err != nil || r.Method != http.MethodPut {
			return 0, errors.New("not the URL of a slice")
		}
		if err := json.Unmarshal(body, &at); err != nil || at.Seq != seq || r.Header.Get("Idempotency-Key") != item(seq).ID {
			return 0, errors.New("not the slice of the URL")
		}
		return seq, nil
	case KindWebhook:
		id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		if r.Header.Get("webhook-signature") != signatures(h.keys, id, stamp, body) || r.URL.Path != "/in" || r.Method != http.MethodPost {
			return 0, errors.New("wrong signature")
		}
		_, err := fmt.Sscanf(id, "usage_%d", &seq)
		return seq, err
	}
	var event struct {
		ID, Source, Type, SpecVersion, Subject, Sequence, Partitionkey, Time, DataContentType string
		Data                                                                                  struct{ Seq uint64 }
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return 0, err
	}
	want := event
	want.ID, want.Source, want.Type, want.SpecVersion = item(event.Data.Seq).ID, "/node/1", "macronode.usage.slice", "1.0"
	want.Subject, want.Sequence, want.Partitionkey = "default/custom:a/b", fmt.Sprintf("%020d", event.Data.Seq), "usage/default/custom:a/b"
	want.Time, want.DataContentType = "2023-11-14T22:13:20.000Z", "application/json"
	if event != want || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents+json") {
		return 0, fmt.Errorf("%+v, not %+v", event, want)
	}
	return event.Data.Seq, nil
}

// fileTarget is a directory on a disk with faults.
type fileTarget struct {
	t     testing.TB
	dir   string
	fault string
}

func (f *fileTarget) sink() Sink { return newFile(&Config{Name: "test", Dir: f.dir}, 150, f) }

func (f *fileTarget) faults() []string {
	return []string{"torn write", "no write", "no sync", "no truncate"}
}

func (f *fileTarget) arm(fault string) { f.fault = fault }

// seqs reads the files in their order, and checks that every line is whole.
func (f *fileTarget) seqs() (all []uint64) {
	names, err := filepath.Glob(filepath.Join(f.dir, "usage-*.ndjson"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var at struct{ Seq uint64 }
			if err := json.Unmarshal([]byte(line), &at); err != nil || !strings.HasSuffix(line, "\n") {
				f.t.Fatalf("%s has the line %q: %v", name, line, err)
			}
			all = append(all, at.Seq)
		}
	}
	return all
}

func (f *fileTarget) lock(dir fs.Dir, holder string) (*fs.Held, error) {
	if f.fault == "cannot lock" {
		return nil, syscall.EBADF // as NFS returns
	}
	return disk{}.lock(dir, holder)
}

func (f *fileTarget) open(path string) (file, error) {
	of, err := disk{}.open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{of, f}, nil
}

type faultyFile struct {
	file
	of *fileTarget
}

var errFault = errors.New("the disk is broken")

func (f *faultyFile) Write(b []byte) (int, error) {
	switch f.of.fault {
	case "torn write":
		n, _ := f.file.Write(b[:len(b)/2])
		f.of.fault = ""
		return n, errFault
	case "no truncate": // the torn line stays until the file is opened again
		n, _ := f.file.Write(b[:len(b)/2])
		return n, errFault
	case "no write":
		f.of.fault = ""
		return 0, errFault
	}
	return f.file.Write(b)
}

func (f *faultyFile) Sync() error {
	if f.of.fault == "no sync" {
		f.of.fault = ""
		return errFault
	}
	return f.file.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	is, err := f.Stat()
	if f.of.fault == "no truncate" && err == nil && size < is.Size() {
		f.of.fault = ""
		return errFault
	}
	return f.file.Truncate(size)
}

// TestAttemptEndsWithItsContext cancels an attempt while the receiver has it.
func TestAttemptEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-done
	}))
	defer server.Close()
	defer close(done)
	sink, err := New(Config{Kind: KindHTTP, URL: server.URL, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if got := sink.Deliver(ctx, item(1)); got.Outcome != Retryable || got.Reason != "cancelled" {
		t.Fatalf("%+v", got)
	}
}

package export

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wrongAnswers are the bytes of answers that are none.
var wrongAnswers = map[string]string{
	"half a response": "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\nhalf",
	"torn header":     "HTTP/1.1 200",
	"garbage":         "SSH-2.0-x\r\n",
	"switch":          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}

// httpTarget is a receiver with faults.
type httpTarget struct {
	t       testing.TB
	kind    string
	address string
	file    string
	keys    [][]byte
	serving sync.WaitGroup

	faulty
	server *http.Server
	got    []uint64
}

func newHTTPTarget(t testing.TB, kind string) *httpTarget {
	h := &httpTarget{t: t, kind: kind, address: "127.0.0.1:0"}
	h.listen()
	t.Cleanup(func() {
		h.mu.Lock()
		_ = h.server.Close()
		h.mu.Unlock()
		h.serving.Wait()
	})
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

// listen starts the server at its address.
func (h *httpTarget) listen() {
	l, err := net.Listen("tcp", h.address)
	if err != nil {
		h.t.Error(err)
		return
	}
	if h.server == nil {
		h.address = l.Addr().String()
	}
	server := &http.Server{Handler: h}
	h.server = server
	h.serving.Go(func() { _ = server.Serve(l) }) // returns when it is closed
}

func (h *httpTarget) sink() Sink {
	s, err := New(Config{Name: "test", Kind: h.kind, URL: "http://" + h.address + "/in", SecretFile: h.file, Inflight: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	return attempts{s, &h.faulty, nil}
}

func (h *httpTarget) arm(fault string, _ uint64) { h.set(fault) }

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
	if fault == "slow" { // it takes the item when the sink has gone
		h.end()
		<-r.Context().Done()
	}
	if fault == "" || fault == "slow" || strings.HasPrefix(fault, "take and") {
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
	case "slow":
	case "take and be slow":
		h.end()
		<-r.Context().Done()
	case "restart", "take and restart":
		_ = h.server.Close()
		h.listen()
	case "half a response", "torn header", "garbage", "switch", "drop", "take and drop":
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			h.t.Error(err)
			return
		}
		_, _ = buffered.WriteString(wrongAnswers[fault])
		_ = buffered.Flush()
		if fault == "switch" {
			_, _ = io.Copy(io.Discard, conn) // until the sink closes it
		}
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

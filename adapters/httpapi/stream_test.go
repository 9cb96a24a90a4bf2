package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/adapters/httpserver"
	"macronode/core/event"
	"macronode/core/types"
)

// A streamReader reads a stream of changes.
type streamReader struct {
	t    *testing.T
	resp *http.Response
	from *bufio.Reader
	end  context.CancelFunc
}

// listen opens a stream with a key.
func (s *testServer) listen(t *testing.T, id types.KeyID, query string, headers ...string) *streamReader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/changes"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {bearer(id)}, "Accept": {"text/event-stream"}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &streamReader{t, resp, bufio.NewReader(resp.Body), cancel}
}

// next returns the lines of the next event or comment, joined.
func (e *streamReader) next() string {
	e.t.Helper()
	var lines []string
	for {
		line, err := e.from.ReadString('\n')
		if err != nil {
			return strings.Join(append(lines, err.Error()), "|")
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			return strings.Join(lines, "|")
		}
		lines = append(lines, line)
	}
}

// change returns the next event, without comments.
func (e *streamReader) change() string {
	e.t.Helper()
	for {
		if got := e.next(); got != ":" {
			return got
		}
	}
}

// seqOf returns the ID of an event.
func seqOf(text string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(text, "id: "), "|")
	return id
}

// Movements are streamed in order and once each, as a page shows them. A client that reconnects continues after
// Last-Event-ID.
func TestChangesAreStreamed(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	e := s.listen(t, 1, "?after_seq=1")
	if e.resp.StatusCode != 200 || e.resp.Header.Get("Content-Type") != "text/event-stream" || e.resp.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%+v", e.resp)
	}
	page := parse[struct {
		Changes []jsonText `json:"changes"`
	}](t, s.do(t, 200, "/v1/changes?after_seq=1"))
	for i, want := range page.Changes {
		if got := e.change(); got != fmt.Sprintf("id: %d|event: change|data: %s", i+2, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	s.send(s.post("issue", "k9", issue))
	if got := seqOf(e.change()); got != "4" {
		t.Fatalf("then %s", got)
	}
	e.end()
	s.send(s.post("issue", "k10", issue))
	again := s.listen(t, 1, "?after_seq=1", "Last-Event-ID", "4")
	if got := seqOf(again.change()); got != "5" {
		t.Fatalf("behind 4 comes %s", got)
	}
}

// A jsonText is JSON as it was written.
type jsonText string

func (j *jsonText) UnmarshalJSON(b []byte) error { *j = jsonText(b); return nil }

// The expiry of a hold has no response, and is streamed.
func TestHoldExpiryIsStreamed(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	h.expireHold(h.ledger.log[2].id)
	changes := parse[wire.ChangesPage](t, s.do(t, 200, "/v1/changes?after_seq=3")).Changes
	if len(changes) != 1 || changes[0].Op != wire.EntryOpExpire || *changes[0].HoldId != theHold || *changes[0].HeldMinor != "0" {
		t.Fatalf("%+v", changes)
	}
	entries := parse[wire.EntriesPage](t, s.do(t, 200, "/v1/accounts/mine:a/entries?after_seq=3")).Entries
	if len(entries) != 1 || entries[0].Op != wire.EntryOpExpire || entries[0].Direction != wire.None || entries[0].HeldMinor != "0" {
		t.Fatalf("%+v", entries)
	}
	if hold := parse[wire.Hold](t, s.do(t, 200, "/v1/holds/"+theHold)); hold.State != wire.HoldStateExpired {
		t.Fatalf("%+v", hold)
	}
}

// A long poll ends when there is a movement, or empty after its wait.
func TestLongPollWaits(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h, func(c *httpapi.Config) { c.Deadline = time.Hour })
	if p := parse[wire.ChangesPage](t, s.do(t, 200, "/v1/changes?after_seq=3&wait=1")); len(p.Changes) != 0 || p.NextAfterSeq != 3 {
		t.Fatalf("%+v", p)
	}
	asked, before := make(chan answer), h.waits.Load()
	go func() { asked <- s.send(s.get("/v1/changes?after_seq=3&wait=60000")) }()
	for end := time.Now().Add(time.Minute); h.waits.Load() == before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("nothing has waited for a minute")
		}
	}
	s.send(s.post("issue", "k9", issue))
	if p := parse[wire.ChangesPage](t, <-asked); len(p.Changes) != 1 || p.NextAfterSeq != 4 {
		t.Fatalf("%+v", p)
	}
	short := serve(t, h) // the deadline of this server is short
	if p := parse[wire.ChangesPage](t, short.do(t, 200, "/v1/changes?after_seq=4&wait=60000")); len(p.Changes) != 0 {
		t.Fatalf("%+v", p)
	}
}

func TestIdleStreamSendsHeartbeats(t *testing.T) {
	s := serve(t, build(t), func(c *httpapi.Config) { c.HeartbeatInterval = time.Millisecond })
	e := s.listen(t, 1, "")
	for range 5 {
		if got := e.next(); got != ":" {
			t.Fatalf("got %q", got)
		}
	}
}

// A stream ends with a reason if the node drains or its API key has ended.
func TestStreamEndsWithReason(t *testing.T) {
	for want, end := range map[string]func(*backend){
		"draining":     func(h *backend) { h.set(func(s *event.Status) { s.Phase = types.Draining }) },
		"unauthorized": func(h *backend) { h.lastHolder().LosePermit(event.RejectKeyEnded) },
	} {
		h := build(t)
		s := serve(t, h)
		e := s.listen(t, 1, "")
		if got := e.next(); got != ":" {
			t.Fatalf("got %q", got)
		}
		end(h)
		if got := e.change(); got != `event: end|data: {"reason":"`+want+`"}` {
			t.Errorf("got %q", got)
		}
		if got := e.next(); got != "EOF" {
			t.Errorf("then %q", got)
		}
	}
	h := build(t)
	h.set(func(s *event.Status) { s.Phase = types.LameDuck })
	s := serve(t, h)
	e := s.listen(t, 1, "")
	s.send(s.post("issue", "k", issue))
	if got := e.change(); seqOf(got) != "1" {
		t.Errorf("in lame duck: %q", got)
	}
}

// TestWaitingRequestsUseStreamPermits: requests that may wait and streams need a permit of the facet streams and
// keep it until they end. Other requests do not.
func TestWaitingRequestsUseStreamPermits(t *testing.T) {
	h := withMovements(t, true)
	s := serve(t, h)
	for _, c := range []struct {
		path, accept string
		want         types.Facet
	}{
		{"/v1/changes", "", types.FacetQuery},
		{"/v1/changes?wait=1", "", types.Streams},
		{"/v1/changes?w%61it=1", "", types.Streams},
		{"/v1/accounts?min_seq=1", "", types.Streams},
		{"/v1/balance?account=mine:a&asset=USD", "", types.FacetWallet},
		{"/v1/balance?account=mine:a&asset=USD&min_seq=1", "", types.Streams},
		{"/v1/accounts/mine:a/entries", "", types.FacetQuery},
		{"/v1/accounts/mine:a/entries?format=csv", "", types.Streams},
		{"/v1/accounts/mine:a/entries", "Text/CSV", types.Streams},
		{"/v1/accounts/mine:a/entries?limit=1%30", "", types.FacetQuery},
		{"/o/b3:" + strings.Repeat("0", 64), "", types.FacetStorage},
		{"/o/b3:" + strings.Repeat("0", 64) + "?wait=1", "text/csv", types.FacetStorage},
	} {
		r := s.get(c.path)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		a := s.send(r)
		h.mu.Lock()
		if last := h.admits[len(h.admits)-1]; last.Facet != c.want {
			t.Errorf("%s, %q: must be a permit of %v, %d %s", c.path, c.accept, last.Facet, a.status, a.body)
		}
		h.mu.Unlock()
	}
	first := s.listen(t, 1, "")
	first.next()
	h.mu.Lock()
	if last := h.admits[len(h.admits)-1]; last.Facet != types.Streams || last.PermitFor < 12*time.Hour || len(h.permits) != 1 {
		t.Errorf("the stream was admitted as %+v, and %d permits are held", last, len(h.permits))
	}
	h.mu.Unlock()
	first.end()
	for n := 1; n > 0; { // until the disconnect is noticed
		h.mu.Lock()
		n = len(h.permits)
		h.mu.Unlock()
		runtime.Gosched()
	}
}

// A stalledWriter fails after some writes.
type stalledWriter struct {
	*httptest.ResponseRecorder
	took      int
	deadlines []time.Time
}

func (d *stalledWriter) SetWriteDeadline(t time.Time) error {
	d.deadlines = append(d.deadlines, t)
	return nil
}
func (d *stalledWriter) Write(b []byte) (int, error) {
	if d.took -= 1; d.took < 0 {
		return 0, os.ErrDeadlineExceeded // as a connection does at its write deadline
	}
	return d.ResponseRecorder.Write(b)
}

// A client that does not read is disconnected at the part that it does not take. Nothing is buffered for it, and
// its permit is returned.
func TestSlowReaderIsDisconnected(t *testing.T) {
	h := withMovements(t, true)
	c := httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler),
		Deadline: time.Minute, StreamWriteTimeout: time.Hour}
	lines := new(bytes.Buffer)
	c.Log = slog.New(slog.NewTextHandler(lines, nil))
	api := httpapi.New(c)
	defer func() {
		if lines.Len() > 0 {
			t.Errorf("the node calls it a failure of its own: %s", lines)
		}
	}()
	for _, took := range []int{0, 1, 2} {
		for _, path := range []string{"/v1/changes", "/v1/accounts/mine:a/entries?format=csv"} {
			if took > 0 && path != "/v1/changes" {
				continue // there is only one part
			}
			w := &stalledWriter{ResponseRecorder: httptest.NewRecorder(), took: took}
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header = http.Header{"Authorization": {bearer(1)}, "Accept": {"text/event-stream"}}
			began := time.Now()
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
						t.Errorf("%s: ended with %v", path, err)
					}
				}()
				api.ServeHTTP(w, r)
			}()
			if len(w.deadlines) != took+1 || w.deadlines[took].Before(began.Add(c.StreamWriteTimeout)) {
				t.Errorf("%s, left after %d parts: deadlines %v", path, took, w.deadlines)
			}
		}
	}
}

// The timeouts of other requests do not end a stream.
func TestStreamOutlivesRequestTimeouts(t *testing.T) {
	h := build(t)
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: h, ReadModel: h, Index: fakeIndex{h}, Meter: noMeter{}, Log: slog.New(slog.DiscardHandler),
		Deadline: time.Millisecond, HeartbeatInterval: 5 * time.Millisecond})
	up := make(chan net.Addr, 1)
	c := httpserver.Default("127.0.0.1:0")
	c.Read, c.Request, c.Write = 20*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	server := httpserver.New(c, api, httpserver.Hooks{Listening: func(a net.Addr) { up <- a }}, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(context.Background()) }()
	s := &testServer{backend: h, url: "http://" + (<-up).String()}
	e := s.listen(t, 1, "")
	for i := range 60 { // at least 5 ms apart
		if got := e.next(); got != ":" {
			t.Fatalf("after %d beats: %q", i, got)
		}
	}
	h.set(func(s *event.Status) { s.Phase = types.Draining })
	if got := e.change(); !strings.Contains(got, "draining") {
		t.Errorf("got %q", got)
	}
	if _, err := io.Copy(io.Discard, e.from); err != nil {
		t.Error(err)
	}
	server.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A slowIndex reads changes when released, and counts the reads at the same time.
type slowIndex struct {
	fakeIndex
	reads, now, most *atomic.Int32
	released         chan struct{}
}

func (i slowIndex) Changes(t types.Tenant, after types.Seq, limit int) ([]event.Change, event.Watermark, error) {
	defer i.now.Add(-1)
	if now := i.now.Add(1); now > i.most.Load() {
		i.most.Store(now)
	}
	i.reads.Add(1)
	<-i.released
	return i.fakeIndex.Changes(t, after, limit)
}

// TestStreamsReadInTurn: streams of a tenant read their parts one after the other, and leave the other turn to another tenant.
func TestStreamsReadInTurn(t *testing.T) {
	h := build(t)
	h.addKey(90, 90, event.AllScopes)
	index := slowIndex{fakeIndex{h}, new(atomic.Int32), new(atomic.Int32), new(atomic.Int32), make(chan struct{})}
	s := serve(t, h, func(c *httpapi.Config) { c.Index = index })
	for _, key := range []types.KeyID{1, 1, 1, 90} {
		s.listen(t, key, "")
	}
	for depth, limit := s.api.HistoryReads(); depth < 2 && index.now.Load() < 3; depth, limit = s.api.HistoryReads() {
		if limit != 2 {
			t.Fatalf("%d parts are read at the same time", limit)
		}
		runtime.Gosched() // until both read
	}
	close(index.released)
	for index.reads.Load() < 6 { // some of them again
		runtime.Gosched()
	}
	if most := index.most.Load(); most != 2 {
		t.Errorf("%d parts were read at the same time", most)
	}
}

// A panickingIndex panics when a stream waits.
type panickingIndex struct{ fakeIndex }

func (panickingIndex) Await(context.Context, types.Tenant, types.Seq) bool { panic("a bug") }

// A panic in a response ends the connection, so that the response does not look complete. It is logged and
// counted, and the permit is returned.
func TestPanicInStreamCutsConnection(t *testing.T) {
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Index = panickingIndex{fakeIndex{h}} })
	for range 2 {
		e := s.listen(t, 1, "")
		if got := e.next(); got != ":" {
			t.Fatalf("got %q", got)
		}
		if got := e.next(); got != "unexpected EOF" {
			t.Errorf("then %q", got)
		}
	}
	if got := s.count.get("panicked"); got != 2 {
		t.Errorf("counted %d", got)
	}
}

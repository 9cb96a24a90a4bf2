package httpapi_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
)

type keptDecisions chan httpapi.Decision

func (k keptDecisions) Keep(d httpapi.Decision) { k <- d }

// TestDecisionsDoNotPinRequests keeps the decisions of requests with long request lines. Each
// may keep only its own texts, not the buffer that its request was read into.
func TestDecisionsDoNotPinRequests(t *testing.T) {
	const requests, line, limit = 256, 8 << 10, 2 << 10
	kept := make(keptDecisions, requests)
	s := serve(t, build(t), func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = fakeProxy{}, kept })
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	get := func() {
		req, err := http.NewRequest(http.MethodGet, s.url+"/keyed?"+strings.Repeat("q", line), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	get()
	<-kept
	before := heap()
	for range requests {
		get()
	}
	if grown := heap() - before; grown > requests*limit {
		t.Errorf("%d decisions keep %d bytes, more than %d each", requests, grown, limit)
	}
	if len(kept) != requests {
		t.Errorf("%d decisions were kept", len(kept))
	}
}

// TestPathOfDecisionIsText: the path of a decision is valid UTF-8, also if the request has other bytes or the path is cut within a character. JSON
// cannot have other bytes: the decision could not be shown.
func TestPathOfDecisionIsText(t *testing.T) {
	kept := make(keptDecisions, 1)
	s := serve(t, build(t), func(c *httpapi.Config) { c.Decisions = kept })
	for path, want := range map[string]string{
		"/a%ff%c2b": "/a\ufffdb", "/%e4%b8%96": "/世", "/" + strings.Repeat("%c3%a9", 70): "/" + strings.Repeat("é", 63) + "\ufffd",
	} {
		res, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if d := <-kept; d.Path != want {
			t.Errorf("%s: %q, want %q", path, d.Path, want)
		}
	}
}

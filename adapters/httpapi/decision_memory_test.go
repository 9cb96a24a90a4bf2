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

package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// TestBodyBytesAreReserved: bytes of a body beyond the credit are reserved before they are used. The permit is
// returned with the bytes that were forwarded.
func TestBodyBytesAreReserved(t *testing.T) {
	for _, free := range []int{0, 100, 1 << 20} {
		h := build(t)
		h.freeBytes = uint64(free)
		s := serve(t, h)
		body := strings.Repeat(" ", 3000) + issue
		a := s.send(s.post("issue", "k", body))
		if a.status != 200 {
			t.Fatalf("%+v", a)
		}
		asked := 0
		for _, n := range h.reserved {
			asked += int(n)
		}
		if want := max(0, len(body)-free); asked != want {
			t.Errorf("credit of %d: reserved %d, want %d", free, asked, want)
		}
		if want := uint64(len(body) + len(a.body)); len(h.finishedBytes) != 1 || h.finishedBytes[0] != want {
			t.Errorf("finished with %v, want %d", h.finishedBytes, want)
		}
	}
}

// TestBodyQuotaRejects: if a quota rejects a part of a body, the client gets the quota and Retry-After. The node
// is not asked, and the bytes do not count.
func TestBodyQuotaRejects(t *testing.T) {
	h, kept := build(t), new(decisionLog)
	h.byteDecision = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded, Rule: 1, RetryAfter: 40 * time.Second}
	s := serve(t, h, func(c *httpapi.Config) {
		c.Decisions, c.Snapshot.Quotas = kept, []httpapi.Policy{{Name: "all", Quota: 9, Window: time.Second}}
	})
	a := s.send(s.post("issue", "k", issue))
	if a.status != 429 || !strings.Contains(a.body, "A quota is used up") || a.header.Get("RateLimit") != `"all";r=0;t=0` {
		t.Errorf("%+v", a)
	}
	if after := a.header.Get("Retry-After"); len(after) != 2 || after < "40" {
		t.Errorf("Retry-After %s", after)
	}
	if len(h.requests) != 0 || len(h.permits) != 0 || len(kept.all) != 1 || kept.all[0].Verdict.Reason != event.RejectQuotaExceeded || kept.all[0].Verdict.Rule != 1 {
		t.Errorf("the node got %d, %d have permits, kept %+v", len(h.requests), len(h.permits), kept.all)
	}
	if len(h.finishedBytes) != 1 || h.finishedBytes[0] != uint64(len(a.body)) {
		t.Errorf("finished with %v", h.finishedBytes)
	}
	if n := s.count.get("barred internal quota_exceeded"); n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestBothBodiesAreMetered: the proxy reserves the bytes of both bodies, and a rejection is recorded.
func TestBothBodiesAreMetered(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		h, kept := build(t), new(decisionLog)
		if h.freeBytes = 10; refuses {
			h.byteDecision = &event.Decision{Problem: event.RateLimited, Reason: event.RejectPacingTimeout}
		}
		s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = echoProxy{}, kept })
		r := s.post("issue", "k", strings.Repeat("x", 30))
		r.URL.Path = "/echo"
		a := s.send(r)
		if refuses {
			if a.status != 429 || kept.all[0].Verdict.Reason != event.RejectPacingTimeout || h.finishedBytes[0] != uint64(len(a.body)) {
				t.Errorf("%+v; finished with %v", a, h.finishedBytes)
			}
			continue
		}
		if a.status != 200 || len(a.body) != 30 || len(h.reserved) != 2 || h.reserved[0] != 20 || h.reserved[1] != 30 || h.finishedBytes[0] != 60 {
			t.Errorf("%+v; reserved %v, finished with %v", a, h.reserved, h.finishedBytes)
		}
	}
}

// TestPermittedBytesAreTaken: if the quotas do not decide on the rest promptly, the bytes that they permit are taken
// without it. A request that ends gets nothing.
func TestPermittedBytesAreTaken(t *testing.T) {
	h := build(t)
	h.freeBytes, h.undecided = 10, true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // ends what waits for the rest
	s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy = takeProxy{t, cancel} })
	w := httptest.NewRecorder()
	if s.api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/a", http.NoBody)); w.Code != http.StatusNoContent || !slices.Equal(h.reserved, []uint64{20, 20}) {
		t.Errorf("%d; reserved %v", w.Code, h.reserved)
	}
}

// takeProxy takes 30 bytes, ends its request, and takes the rest.
type takeProxy struct {
	t   *testing.T
	end func() // of the request
}

func (p takeProxy) Match(*http.Request) (httpapi.ProxyRoute, event.Problem) {
	return httpapi.ProxyRoute{Deadline: time.Minute, Serve: func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
		m := w.(interface {
			Take(int) (int, event.Problem)
		})
		if took, why := m.Take(30); took != 10 || why != event.None || r.Context().Err() != nil {
			p.t.Errorf("took %d, %v; the request: %v", took, why, r.Context().Err())
		}
		p.end()
		if took, why := m.Take(20); took != 0 || why != event.Timeout {
			p.t.Errorf("then took %d, %v", took, why)
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	}}, event.None
}

// echoProxy responds with the body of the request.
type echoProxy struct{}

func (echoProxy) Match(*http.Request) (httpapi.ProxyRoute, event.Problem) {
	return httpapi.ProxyRoute{Deadline: time.Second, Serve: func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
		m := w.(interface {
			TryTake(int) bool
			Wait(int) event.Problem
			Count(int)
		})
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		if why := m.Wait(len(body)); why != event.None {
			httpapi.WriteProblem(w, r, why)
			return
		}
		m.Count(len(body))
		if !m.TryTake(len(body)) {
			m.Wait(len(body))
		}
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
	}}, event.None
}

// tunnelProxy responds like a tunnel that got 5 bytes and sent 7.
type tunnelProxy struct{}

func (tunnelProxy) Match(*http.Request) (httpapi.ProxyRoute, event.Problem) {
	return httpapi.ProxyRoute{Deadline: time.Second, NeedsKey: true, Serve: func(w http.ResponseWriter, _ *http.Request, _ types.Flow, _ *httpapi.ProxyTrace) {
		m := w.(interface {
			Count(int)
			CountSent(int)
		})
		m.Count(5)
		m.CountSent(7)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	}}, event.None
}

// meteredRequests takes the requests that count. Those of a prepaid tenant get a problem, if there is one.
type meteredRequests struct {
	usage    chan accounting.Request
	why      event.Problem
	lacks    event.Shortfall
	reserved []accounting.Request
	sizes    []uint64      // of responses
	unpaid   event.Problem // of responses
	canceled int
}

func (m *meteredRequests) Reserve(r *accounting.Request, _ *flow.Terms) (flow.Reservation, event.Problem, event.Shortfall) {
	m.reserved = append(m.reserved, *r)
	return flow.Reservation{}, m.why, m.lacks
}

func (m *meteredRequests) ReserveResponse(r flow.Reservation, _ types.Time, size uint64) (flow.Reservation, event.Problem, event.Shortfall) {
	m.sizes = append(m.sizes, size)
	return r, m.unpaid, m.lacks
}

func (m *meteredRequests) Count(r accounting.Request, _ flow.Reservation) { m.usage <- r }
func (m *meteredRequests) Cancel(flow.Reservation)                        { m.canceled++ }

// TestUsageOfTunnels: the bytes that a tunnel sends are those of the response.
func TestUsageOfTunnels(t *testing.T) {
	h, kept, usage := build(t), new(decisionLog), make(chan accounting.Request, 1)
	s := serve(t, h, func(c *httpapi.Config) {
		c.Snapshot.Proxy, c.Decisions = tunnelProxy{}, kept
		c.Metering = &meteredRequests{usage: usage}
	})
	s.send(s.get("/a"))
	if r := <-usage; r.In != 5 || r.Out != 7 {
		t.Errorf("usage of %d and %d bytes", r.In, r.Out)
	}
	if d := kept.all[0]; d.In != 5 || d.Out != 7 || h.finishedBytes[0] != 12 {
		t.Errorf("decision with %d and %d bytes, finished with %v", d.In, d.Out, h.finishedBytes)
	}
}

// TestRequestsThatClientsEndCount: a request that an upstream works for counts, also if its client does not wait for the response.
// A problem of the node does not count.
func TestRequestsThatClientsEndCount(t *testing.T) {
	m := &meteredRequests{usage: make(chan accounting.Request, 9)}
	s := serve(t, build(t), func(c *httpapi.Config) { c.Snapshot.Proxy, c.Metering = fakeProxy{}, m })
	for path, want := range map[string]int{"/ended": 1, "/ended-late": 1, "/late": 0, "/gone": 0, "/early": 0, "/their-503": 1, "/cut": 1} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", bearer(1))
		func() {
			defer func() { _ = recover() }() // a connection that is cut
			s.api.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if len(m.usage) != want {
			t.Errorf("%s counts %d times, want %d", path, len(m.usage), want)
		}
		for len(m.usage) > 0 {
			<-m.usage
		}
	}
}

package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// TestParts: of a body no more is read in than may go on without asking; the rest is asked
// for before it is used. What went is what a call is settled for.
func TestParts(t *testing.T) {
	for _, free := range []int{0, 100, 1 << 20} {
		h := build(t)
		h.free = uint64(free)
		s := serve(t, h)
		body := strings.Repeat(" ", 3000) + issue
		a := s.send(s.post("issue", "k", body))
		if a.status != 200 {
			t.Fatalf("%+v", a)
		}
		asked := 0
		for _, n := range h.streamed {
			asked += int(n)
		}
		if want := max(0, len(body)-free); asked != want {
			t.Errorf("%d are free: asked for %d, want %d", free, asked, want)
		}
		if want := uint64(len(body) + len(a.body)); len(h.settled) != 1 || h.settled[0] != want {
			t.Errorf("settled for %v, want %d", h.settled, want)
		}
	}
}

// TestAPartIsRefused: whose quota does not have a part of his body in time is told which it is
// and when to come again; nothing is done for him, and what was read in is not settled.
func TestAPartIsRefused(t *testing.T) {
	h, kept := build(t), new(diary)
	h.part = &event.Decision{Problem: event.RateLimited, Reason: event.RejectQuotaExceeded, Rule: 1, RetryAfter: 40 * time.Second}
	s := serve(t, h, func(c *httpapi.Config) {
		c.Decisions, c.Face.Quotas = kept, []httpapi.Policy{{Name: "all", Quota: 9, Window: time.Second}}
	})
	a := s.send(s.post("issue", "k", issue))
	if a.status != 429 || !strings.Contains(a.body, "A quota is used up") || a.header.Get("RateLimit") != `"all";r=0;t=0` {
		t.Errorf("%+v", a)
	}
	if after := a.header.Get("Retry-After"); len(after) != 2 || after < "40" {
		t.Errorf("come again in %s", after)
	}
	if len(h.asked) != 0 || len(h.in) != 0 || len(kept.all) != 1 || kept.all[0].Verdict.Reason != event.RejectQuotaExceeded || kept.all[0].Verdict.Rule != 1 {
		t.Errorf("%d were asked, %d are in, kept %+v", len(h.asked), len(h.in), kept.all)
	}
	if len(h.settled) != 1 || h.settled[0] != uint64(len(a.body)) {
		t.Errorf("settled for %v", h.settled)
	}
	if n := s.count.get("barred internal quota_exceeded"); n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestBothBodiesPass: who sends a request on asks for the parts of both its bodies, and what
// cannot go on is kept with the call.
func TestBothBodiesPass(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		h, kept := build(t), new(diary)
		if h.free = 10; refuses {
			h.part = &event.Decision{Problem: event.RateLimited, Reason: event.RejectPacingTimeout}
		}
		s := serve(t, h, func(c *httpapi.Config) { c.Face.Beyond, c.Decisions = echoing{}, kept })
		r := s.post("issue", "k", strings.Repeat("x", 30))
		r.URL.Path = "/echo"
		a := s.send(r)
		if refuses {
			if a.status != 429 || kept.all[0].Verdict.Reason != event.RejectPacingTimeout || h.settled[0] != uint64(len(a.body)) {
				t.Errorf("%+v; settled for %v", a, h.settled)
			}
			continue
		}
		if a.status != 200 || len(a.body) != 30 || len(h.streamed) != 2 || h.streamed[0] != 20 || h.streamed[1] != 30 || h.settled[0] != 60 {
			t.Errorf("%+v; asked for %v, settled for %v", a, h.streamed, h.settled)
		}
	}
}

// echoing answers what it is sent.
type echoing struct{}

func (echoing) Match(*http.Request) (httpapi.Way, event.Problem) {
	return httpapi.Way{Deadline: time.Second, Serve: func(w http.ResponseWriter, r *http.Request, _ types.Flow, _ *httpapi.Course) {
		m := w.(interface {
			May(int) bool
			Pass(int) event.Problem
			Took(int)
		})
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		if why := m.Pass(len(body)); why != event.None {
			httpapi.Fail(w, r, why)
			return
		}
		m.Took(len(body))
		if !m.May(len(body)) {
			m.Pass(len(body))
		}
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
	}}, event.None
}

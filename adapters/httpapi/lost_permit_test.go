package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/types"
)

// waitingProxy serves every path: it reads the body and answers busy if that fails.
type waitingProxy struct {
	in     chan struct{}
	failed chan error
	ended  chan struct{} // it gave way
}

func (p *waitingProxy) LosePermit(event.RejectReason) { p.ended <- struct{}{} }

func (p *waitingProxy) Match(*http.Request) (httpapi.ProxyRoute, event.Problem) {
	return httpapi.ProxyRoute{Deadline: time.Minute, Serve: func(w http.ResponseWriter, r *http.Request, _ types.Flow, to *httpapi.ProxyTrace) {
		*to = fakeTrace("well")
		w.(interface{ OnLostPermit(httpapi.Holder) }).OnLostPermit(p)
		p.in <- struct{}{}
		if r.ContentLength < 0 {
			<-p.ended // it gives way before it reads
		}
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(time.Now().Add(time.Hour)) // as each read of the proxy does
		_, err := io.ReadAll(r.Body)
		if err == nil {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, "read")
			return
		}
		p.failed <- err
		_ = c.SetWriteDeadline(time.Time{})
		httpapi.WriteProblem(w, r, event.Busy)
	}}, event.None
}

// TestGiveWayEndsCall: a call whose permit was given to another one reads nothing more, and its client gets the reason. A call that has
// ended is not touched: its connection may serve another one.
func TestGiveWayEndsCall(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		h, kept, p := build(t), new(decisionLog), &waitingProxy{in: make(chan struct{}, 1), failed: make(chan error, 1), ended: make(chan struct{}, 9)}
		s := serve(t, h, func(c *httpapi.Config) { c.Snapshot.Proxy, c.Decisions = p, kept })
		server := httptest.NewUnstartedServer(s.api)
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		send := func(body io.Reader) (*http.Response, error) {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/a", body)
			noError(t, err)
			return server.Client().Do(r)
		}
		silent, end := io.Pipe()
		answered := make(chan *http.Response, 1)
		go func() {
			resp, err := send(silent)
			if err != nil {
				t.Error(err)
			}
			answered <- resp
		}()
		<-p.in
		h.holder.LosePermit(event.RejectGaveWay)
		select {
		case err := <-p.failed:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("HTTP/2 %v: a read failed with %v", http2, err)
			}
		case <-time.After(time.Minute):
			noError(t, end.Close())
			t.Fatalf("HTTP/2 %v: it goes on reading", http2)
		}
		resp := <-answered
		if resp == nil {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		noError(t, err)
		if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), "permit was given") || !http2 && !resp.Close {
			t.Errorf("HTTP/2 %v: %d %s, closes %v", http2, resp.StatusCode, text, resp.Close)
		}
		noError(t, resp.Body.Close())
		noError(t, end.Close())
		if d := kept.all[0]; d.Verdict.Reason != event.RejectGaveWay || s.count.of["barred anon gave_way"] != 1 {
			t.Errorf("HTTP/2 %v: %+v, counted %v", http2, d.Verdict, s.count.of)
		}
		gone := h.holder
		for range 2 { // on one connection
			resp, err := send(strings.NewReader("body"))
			noError(t, err)
			<-p.in
			text, err := io.ReadAll(resp.Body)
			noError(t, err)
			if noError(t, resp.Body.Close()); string(text) != "read" {
				t.Errorf("HTTP/2 %v: then %d %s", http2, resp.StatusCode, text)
			}
			gone.LosePermit(event.RejectGaveWay)
			h.holder.LosePermit(event.RejectGaveWay)
		}
		if len(p.ended) > 0 {
			t.Errorf("HTTP/2 %v: a call that has ended gave way", http2)
		}
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

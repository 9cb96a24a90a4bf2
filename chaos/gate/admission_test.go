// Package gate tests the admission of the real binary: no caller exceeds its quota, equal tenants are served
// equally, a flood does not lock out others, and no permit is lost, whatever clients do.
package gate_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"macronode/chaos/kill"
)

var aborts = flag.Int("aborts", 20_000, "requests that are given up midway")

// gatewayNode is a node in front of an upstream that answers at once.
type gatewayNode struct {
	*kill.Node
	t    *testing.T
	hold atomic.Int64 // nanoseconds that the service takes
	took receivedBytes
}

func start(t *testing.T, sets ...string) *gatewayNode { return startBy(t, "auto", sets...) }

// startBy starts a node that calls the upstream with a protocol.
func startBy(t *testing.T, protocol string, sets ...string) *gatewayNode {
	t.Helper()
	h := &gatewayNode{t: t}
	far := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.took.read(r)
		pause := time.NewTimer(time.Duration(h.hold.Load()))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "here")
	}))
	far.Config.Protocols = new(http.Protocols)
	far.Config.Protocols.SetHTTP1(true)
	far.Config.Protocols.SetUnencryptedHTTP2(true)
	far.Start()
	t.Cleanup(far.Close)
	binary, err := kill.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sets = append(sets, fmt.Sprintf(`upstreams={"app":{"url":%q,"protocol":%q}}`, far.URL, protocol), `routes=[{"path":"/open","upstream":"app","auth":"none"},{"path":"/keyed","upstream":"app","auth":"key"}]`)
	h.Node = &kill.Node{Binary: binary, Data: t.TempDir()}
	for _, s := range sets {
		h.Args = append(h.Args, "--set", s)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if output, code := h.Stop(); code != 0 {
			t.Errorf("exit %d:\n%s", code, output)
		}
	})
	return h
}

// key creates an API key of a tenant.
func (h *gatewayNode) key(tenant int, scopes string) string {
	h.t.Helper()
	body := fmt.Sprintf(`{"name":"k","tenant":"%d","scopes":[%s]}`, tenant, scopes)
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.HTTP+"/v1/keys", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ Key string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Key == "" {
		h.t.Fatalf("%d %v", resp.StatusCode, err)
	}
	return made.Key
}

// A caller sends requests without pause over one connection, and never backs off.
type caller struct {
	key         string
	path        string
	went, other int
	refused     int
	slowest     time.Duration
}

func (c *caller) run(ctx context.Context, h *gatewayNode) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.HTTP+c.path, nil)
		if err != nil {
			panic(err)
		}
		if c.key != "" {
			req.Header.Set("Authorization", "Bearer "+c.key)
		}
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			continue // the time is over
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			c.went++
			c.slowest = max(c.slowest, time.Since(began))
		case http.StatusTooManyRequests:
			c.refused++
		default:
			c.other++
		}
	}
}

// together runs callers for a time, and returns how long it was.
func together(h *gatewayNode, span time.Duration, all ...*caller) time.Duration {
	ctx, stop := context.WithTimeout(h.t.Context(), span)
	defer stop()
	var wg sync.WaitGroup
	began := time.Now()
	for _, c := range all {
		wg.Go(func() { c.run(ctx, h) })
	}
	wg.Wait()
	return time.Since(began)
}

// TestQuota: callers that never back off get exactly what the quota allows, at any rate.
func TestQuota(t *testing.T) {
	const rate, burst = 200, 20
	h := start(t, fmt.Sprintf(`quotas=[{"scope":"key","requests_per_second":%d,"burst":%d}]`, rate, burst))
	for _, callers := range []int{2, 8} {
		key, all := h.key(7, `"read"`), []*caller{}
		for range callers {
			all = append(all, &caller{key: key, path: "/keyed"})
		}
		took := together(h, 3*time.Second, all...)
		went, refused := 0, 0
		for _, c := range all {
			if went, refused = went+c.went, refused+c.refused; c.other > 0 {
				t.Errorf("%d responses have another status", c.other)
			}
		}
		most := burst + int(took.Seconds()*rate) + 1
		if went > most || went < burst || refused == 0 {
			t.Errorf("%d callers: %d were served, at most %d, %d were rejected", callers, went, most, refused)
		}
		t.Logf("evidence: gate.quota = %.4f of the quota served to %d callers, at %.0f times its load", float64(went)/float64(most), callers, float64(went+refused)/float64(most))
	}
}

// TestTenantsShareEqually: tenants that all ask for more than there is get equal shares, even if one has ten times
// the callers of another.
func TestTenantsShareEqually(t *testing.T) {
	h := start(t, `quotas=[{"scope":"instance","requests_per_second":120,"burst":1}]`, "queue.max_wait=1s")
	var all []*caller
	for tenant := range 4 {
		key := h.key(tenant+2, `"read"`)
		for range []int{20, 10, 5, 5}[tenant] {
			all = append(all, &caller{key: key, path: "/keyed"})
		}
	}
	together(h, 4*time.Second, all...)
	got := map[string]float64{}
	for _, c := range all {
		got[c.key] += float64(c.went)
	}
	sum, squares := 0.0, 0.0
	for _, n := range got {
		sum, squares = sum+n, squares+n*n
	}
	jain := sum * sum / (float64(len(got)) * squares)
	if jain < 0.99 || sum < 100 {
		t.Errorf("Jain %.4f over %v", jain, got)
	}
	t.Logf("evidence: gate.jain = %.4f over four tenants with 20, 10, 5 and 5 callers, %.0f requests", jain, sum)
}

// TestFlood: anonymous callers that flood the node do not lock out a caller with an internal key: all its requests
// are served while theirs are rejected.
func TestFlood(t *testing.T) {
	h := start(t, "permits.proxy=4", "queue.proxy=32", "queue.max_wait=1s")
	h.hold.Store(int64(2 * time.Millisecond))
	own := &caller{key: h.Key, path: "/open"}
	all := []*caller{own}
	for range 40 {
		all = append(all, &caller{path: "/open"})
	}
	together(h, 3*time.Second, all...)
	refused, went := 0, 0
	for _, c := range all[1:] {
		refused, went = refused+c.refused, went+c.went
	}
	if own.refused > 0 || own.other > 0 || own.went < 5 || refused == 0 || went == 0 {
		t.Errorf("%+v; of the requests without a key %d were served, %d rejected", own, went, refused)
	}
	t.Logf("evidence: gate.flood = %d of %d internal requests served, the slowest in %v; without a key %d were served and %d rejected", own.went, own.went+own.refused, own.slowest.Round(time.Millisecond), went, refused)
}

// TestAborts: clients disconnect at any moment and the upstream hangs. In the end all permits are free.
func TestAborts(t *testing.T) {
	h := start(t, "permits.proxy=64", "queue.proxy=64")
	h.hold.Store(int64(5 * time.Millisecond))
	var wg sync.WaitGroup
	var gave atomic.Int64
	for i := range 32 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
			defer client.CloseIdleConnections()
			for n := range *aborts / 32 {
				ctx, stop := context.WithTimeout(t.Context(), time.Duration((n*7919+i*104729)%9000)*time.Microsecond)
				path := []string{"/open", "/keyed", "/v1/accounts", "/openapi.json"}[(n+i)%4]
				req, err := http.NewRequestWithContext(ctx, []string{http.MethodGet, http.MethodPost}[n%2], h.HTTP+path, strings.NewReader("{}"))
				if err != nil {
					panic(err)
				}
				if n%3 == 0 {
					req.Header.Set("Authorization", "Bearer "+h.Key)
				}
				resp, err := client.Do(req)
				if err != nil {
					gave.Add(1)
				} else {
					_ = resp.Body.Close()
				}
				stop()
			}
		})
	}
	wg.Wait()
	if gave.Load() < int64(*aborts/100) {
		t.Errorf("only %d were aborted", gave.Load())
	}
	h.awaitIdle()
	t.Logf("evidence: gate.aborts = all, after %d of %d requests were aborted", gave.Load(), *aborts)
}

// awaitIdle waits until no request is in progress, and checks the gauges.
func (h *gatewayNode) awaitIdle() {
	h.t.Helper()
	var last []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // between two looks at another process
		last = h.busyGauges()
		if len(last) == 0 {
			return
		}
	}
	h.t.Errorf("never quiet: %v", last)
}

// busyGauges returns the gauges of admission that are not 0.
func (h *gatewayNode) busyGauges() (all []string) {
	h.t.Helper()
	seen, err := h.Gauges(h.t.Context(), kill.AtGate()...)
	if err != nil || len(seen) < 10 {
		h.t.Fatalf("%d gauges, %v", len(seen), err)
	}
	for name, v := range seen {
		if v != 0 {
			all = append(all, fmt.Sprintf("%s %v", name, v))
		}
	}
	slices.Sort(all)
	return all
}

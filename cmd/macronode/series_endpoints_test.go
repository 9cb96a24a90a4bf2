package main

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/httpapi"
	"macronode/adapters/registry"
)

// endpointPaths returns a path for each series of request_latency_seconds: endpoint and method.
func endpointPaths(t *testing.T) map[[2]string]string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(httpapi.Document(), &document); err != nil {
		t.Fatal(err)
	}
	all := map[[2]string]string{
		{"proxy", "GET"}: "/app", {"proxy", "POST"}: "/app", {"proxy", "other"}: "/app",
		{"other", "GET"}: "/v1/nowhere", {"other", "POST"}: "/v1/nowhere", {"other", "other"}: "/v1/nowhere",
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document.Paths {
		for method, operation := range methods {
			all[[2]string{operation.ID, strings.ToUpper(method)}] = parameter.ReplaceAllString(path, "x")
		}
	}
	return all
}

// scrapedValues are the series of a scrape of the real node.
func (p process) scrapedValues(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.SplitSeq(p.asks(t, "/metrics"), "\n") {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
				all[line[:at]] = value
			}
		}
	}
	return all
}

// TestEachEndpointIsCounted asks each endpoint of the real node once, when its quota is used up:
// every counter of that request moves by 1 under the endpoint, the plane, the class and the
// quota of the request, and under no other.
func TestEachEndpointIsCounted(t *testing.T) {
	p := serves(t, "log.level=error", `upstreams={"app":{"url":"http://127.0.0.1:9"}}`, `routes=[{"path":"/app","upstream":"app","auth":"none"}]`,
		`quotas=[{"name":"none","scope":"peer","requests_per_second":0.000001,"burst":1},{"name":"more","scope":"peer","requests_per_second":9000}]`)
	p.asked(t, http.MethodGet, "/v1/nowhere")
	paths := endpointPaths(t)
	for _, of := range registry.Endpoints {
		endpoint, method := of[0], of[1]
		path, ok := paths[[2]string{endpoint, method}]
		if endpoint == "stream" {
			continue // a stream is one only when it has begun: TestBodiesAndStreamsAreCounted
		}
		if !ok {
			t.Errorf("%s %s has no path", endpoint, method)
			continue
		}
		asked := method
		if method == "other" {
			asked = http.MethodPut
		}
		was := p.counters(t)
		if status, _ := p.asked(t, asked, path); status != http.StatusTooManyRequests {
			t.Errorf("%s %s: %d", asked, path, status)
		}
		plane := "wallet"
		switch endpoint {
		case "proxy":
			plane = "proxy"
		case "put_object", "post_object", "get_object":
			plane = "storage"
		}
		want := moves{
			seriesOf("request_latency_seconds_count", "endpoint", endpoint, "method", method):   1,
			seriesOf("http_requests_total", "route", endpoint, "method", method, "code", "4xx"): 1,
			seriesOf("busy_rejections_total", "endpoint", endpoint):                             1,
			seriesOf("rejected_total", "plane", plane, "reason", "rate_limited"):                1,
			seriesOf("admission_refused_total", "class", "anon", "reason", "quota_exceeded"):    1,
			seriesOf("quota_refused_total", "quota", "none", "outcome", "refused"):              1,
		}
		var got moves
		for range 200 { // what is counted when the answer has left may come after it
			if got = seriesMoved(was, p.counters(t)); got.same(want) {
				break
			}
		}
		if !got.same(want) {
			t.Fatalf("%s %s: moved%v\nwant%v", asked, path, got, want)
		}
	}
}

// counters are the series that requests move, and nothing else does.
func (p process) counters(t *testing.T) map[string]float64 {
	t.Helper()
	all := p.scrapedValues(t)
	maps.DeleteFunc(all, func(name string, _ float64) bool {
		base, _, _ := strings.Cut(name, "{")
		return !slices.Contains([]string{"request_latency_seconds_count", "http_requests_total", "busy_rejections_total", "rejected_total", "admission_refused_total", "quota_refused_total",
			"decision_seconds_count", "idempotency_replays_total", "io_timeouts_total", "io_errors_total", "upstream_requests_total", "upstream_fail_total"}, base)
	})
	return all
}

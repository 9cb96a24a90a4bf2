package cli

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
	"macronode/cmd/macronode/internal/testkit"
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

// scrapedValues returns the series of a scrape of the real node.
func (p process) scrapedValues(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.SplitSeq(p.adminText(t, "/metrics"), "\n") {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
				all[line[:at]] = value
			}
		}
	}
	return all
}

// TestEachEndpointIsCounted requests each endpoint of the real node once, with an exhausted quota. Each counter of
// that request moves by 1 under its endpoint, plane, class and quota, and no other moves.
func TestEachEndpointIsCounted(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", `upstreams={"app":{"url":"http://127.0.0.1:9"}}`, `routes=[{"path":"/app","upstream":"app","auth":"none"}]`,
		`quotas=[{"name":"none","scope":"peer","requests_per_second":0.000001,"burst":1},{"name":"more","scope":"peer","requests_per_second":9000}]`)
	p.requestID(t, http.MethodGet, "/v1/nowhere")
	paths := endpointPaths(t)
	for _, of := range registry.Endpoints {
		endpoint, method := of[0], of[1]
		path, ok := paths[[2]string{endpoint, method}]
		if strings.HasPrefix(endpoint, "s3_") && endpoint != "s3_credentials" {
			continue // TestEachOperationOfS3IsCounted
		}
		if endpoint == "stream" {
			continue // a stream counts as one only after it has begun: TestBodiesAndStreamsAreCounted
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
		if status, _ := p.requestID(t, asked, path); status != http.StatusTooManyRequests {
			t.Errorf("%s %s: %d", asked, path, status)
		}
		plane := "wallet"
		switch endpoint {
		case "proxy":
			plane = "proxy"
		case "put_object", "post_object", "get_object", "append_object_upload":
			plane = "storage"
		}
		want := testkit.Moves{
			testkit.Series("request_latency_seconds_count", "endpoint", endpoint, "method", method):   1,
			testkit.Series("http_requests_total", "route", endpoint, "method", method, "code", "4xx"): 1,
			testkit.Series("busy_rejections_total", "endpoint", endpoint):                             1,
			testkit.Series("rejected_total", "plane", plane, "reason", "rate_limited"):                1,
			testkit.Series("admission_refused_total", "class", "anon", "reason", "quota_exceeded"):    1,
			testkit.Series("quota_refused_total", "quota", "none", "outcome", "refused"):              1,
		}
		var got testkit.Moves
		for range 200 { // counters may follow the response
			if got = testkit.SeriesMoved(was, p.counters(t)); got.Same(want) {
				break
			}
		}
		if !got.Same(want) {
			t.Fatalf("%s %s: moved%v\nwant%v", asked, path, got, want)
		}
	}
}

// s3Requests has a request for each operation of S3: its target, and a header.
var s3Requests = map[string][]string{
	"s3_unknown": {"/b/k?torrent"}, "s3_list_buckets": {"/"}, "s3_create_bucket": {"/b"}, "s3_head_bucket": {"/b"}, "s3_delete_bucket": {"/b"},
	"s3_get_bucket_location": {"/b?location"}, "s3_get_bucket_versioning": {"/b?versioning"}, "s3_get_bucket_acl": {"/b?acl"}, "s3_list_objects": {"/b"},
	"s3_list_objects_v2": {"/b?list-type=2"}, "s3_list_multipart_uploads": {"/b?uploads"}, "s3_delete_objects": {"/b?delete"}, "s3_put_object": {"/b/k"},
	"s3_copy_object": {"/b/k", "X-Amz-Copy-Source", "/b/l"}, "s3_get_object": {"/b/k"}, "s3_head_object": {"/b/k"}, "s3_delete_object": {"/b/k"},
	"s3_get_object_acl": {"/b/k?acl"}, "s3_get_object_tagging": {"/b/k?tagging"}, "s3_create_multipart_upload": {"/b/k?uploads"}, "s3_upload_part": {"/b/k?partNumber=1&uploadId=x"},
	"s3_upload_part_copy": {"/b/k?partNumber=1&uploadId=x", "X-Amz-Copy-Source", "/b/l"}, "s3_list_parts": {"/b/k?uploadId=x"},
	"s3_complete_multipart_upload": {"/b/k?uploadId=x"}, "s3_abort_multipart_upload": {"/b/k?uploadId=x"},
}

// TestEachOperationOfS3IsCounted sends each operation once, without a signature, when the quota is used up.
func TestEachOperationOfS3IsCounted(t *testing.T) {
	t.Parallel()
	p := startNode(t, "log.level=error", "listen.s3=127.0.0.1:0", `quotas=[{"name":"none","scope":"peer","requests_per_second":0.000001,"burst":1}]`)
	p.requestID(t, http.MethodGet, "/v1/nowhere")
	p.HTTP = p.S3
	for _, of := range registry.Endpoints {
		endpoint, method := of[0], of[1]
		if !strings.HasPrefix(endpoint, "s3_") || endpoint == "s3_credentials" {
			continue
		}
		request := s3Requests[endpoint]
		if len(request) == 0 {
			t.Errorf("%s has no request", endpoint)
			continue
		}
		asked := method
		if method == "other" {
			asked = http.MethodPut
		}
		was := p.counters(t)
		if status, _ := p.requestID(t, asked, request[0], request[1:]...); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d, want that of SlowDown", endpoint, status)
		}
		plane := "storage"
		if strings.HasPrefix(endpoint, "s3_list_") && endpoint != "s3_list_parts" {
			plane = "wallet" // it has the requests of the facet query
		}
		want := testkit.Moves{
			testkit.Series("request_latency_seconds_count", "endpoint", endpoint, "method", method):   1,
			testkit.Series("http_requests_total", "route", endpoint, "method", method, "code", "5xx"): 1,
			testkit.Series("busy_rejections_total", "endpoint", endpoint):                             1,
			testkit.Series("rejected_total", "plane", plane, "reason", "rate_limited"):                1,
			testkit.Series("admission_refused_total", "class", "anon", "reason", "quota_exceeded"):    1,
			testkit.Series("quota_refused_total", "quota", "none", "outcome", "refused"):              1,
		}
		var got testkit.Moves
		for range 200 { // the counters may follow the response
			if got = testkit.SeriesMoved(was, p.counters(t)); got.Same(want) {
				break
			}
		}
		if !got.Same(want) {
			t.Fatalf("%s: moved%v\nwant%v", endpoint, got, want)
		}
	}
}

// counters returns the series that only requests move.
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

package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"macronode/adapters/httpapi"
	"macronode/adapters/inflate"
)

// contract parses the document once.
var contract = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.Document())
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return doc, router
})

// The document describes these media types as text only.
func init() {
	for _, kind := range []string{"application/x-ndjson", "text/csv", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
}

// documentChecker validates each request and response of a test against the document.
type documentChecker struct {
	t  testing.TB
	of http.RoundTripper
}

var decisionID = regexp.MustCompile("^d_[0-9a-f]{32}$")

func (c *documentChecker) RoundTrip(r *http.Request) (*http.Response, error) {
	c.t.Helper()
	_, router := contract()
	sent := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body, sent.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(plain(body))
		sent.GetBody = nil
	}
	resp, err := c.of.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.checkHeaders(resp)
	route, params, err := router.FindRoute(sent)
	if errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed) {
		return resp, nil
	}
	for name, value := range params { // the router returns them escaped
		if params[name], err = url.PathUnescape(value); err != nil {
			return resp, nil // not a name; other tests check that it is rejected
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: sent, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && resp.StatusCode < 400 {
		c.t.Errorf("%s %s: the document forbids it: %v", r.Method, r.URL, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Options: in.Options}
	if err := openapi3filter.ValidateResponse(r.Context(), out.SetBodyBytes(body)); err != nil {
		c.t.Errorf("%s %s: the document does not know the answer %d %s: %v", r.Method, r.URL, resp.StatusCode, body, err)
	}
	return resp, nil
}

// plain returns the decompressed body.
func plain(body []byte) io.Reader {
	if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		return z
	}
	if bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")) {
		return inflate.New(bytes.NewReader(body), inflate.Zstd, inflate.Limits{Window: inflate.MaxWindow})
	}
	return bytes.NewReader(body)
}

// checkHeaders checks the header fields that every response has.
func (c *documentChecker) checkHeaders(resp *http.Response) {
	c.t.Helper()
	if id := resp.Header.Get("X-Decision-Id"); !decisionID.MatchString(id) {
		c.t.Errorf("%d without a decision id: %q", resp.StatusCode, id)
	}
	wantRetryAfter := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
	if (resp.Header.Get("Retry-After") != "") != wantRetryAfter {
		c.t.Errorf("%d with Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	kind := resp.Header.Get("Content-Type")
	if (resp.StatusCode >= 400) != (kind == "application/problem+json") {
		c.t.Errorf("%d with Content-Type %q", resp.StatusCode, kind)
	}
	caching := resp.Header.Get("Cache-Control")
	if object := strings.HasPrefix(resp.Request.URL.Path, "/o/") && resp.StatusCode < 400 && caching == "private, max-age=31536000, immutable"; caching != "no-store" && !object {
		c.t.Errorf("%d may be stored", resp.StatusCode)
	}
}

// The router and the document have the same endpoints.
func TestDocumentIsServed(t *testing.T) {
	s := serve(t, build(t))
	doc, _ := contract()
	for path, item := range doc.Paths.Map() {
		at := strings.ReplaceAll(path, "{txid}", "tx_0123456789abcdef0000000000010000")
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			r := s.get(at)
			r.Method = method
			if got := s.send(r).status; (got != http.StatusMethodNotAllowed) != (item.GetOperation(method) != nil) {
				t.Errorf("%s %s: %d", method, path, got)
			}
		}
	}
	a := s.send(s.get("/openapi.json"))
	if a.status != 200 || a.body != string(httpapi.Document()) {
		t.Fatalf("the document is not served: %d", a.status)
	}
	if a := s.send(s.get("/openapi.json?x=1")); a.status != 400 {
		t.Fatalf("with a query: %d", a.status)
	}
}

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
	"macronode/core/types"
)

// contract is the document, read once.
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

// What else answers are made of: the document says no more of it than that it is text.
func init() {
	for _, kind := range []string{"application/x-ndjson", "text/csv", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.PlainBodyDecoder)
	}
}

// checked holds every request and every answer of a test against the document: what
// it does not allow is refused, and no answer is one that it does not know.
type checked struct {
	t  testing.TB
	of http.RoundTripper
}

var decisionID = regexp.MustCompile("^d_[0-9a-f]{32}$")

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	c.t.Helper()
	_, router := contract()
	asked := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body, asked.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(plain(body))
		asked.GetBody = nil
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
	c.always(resp)
	route, params, err := router.FindRoute(asked)
	if errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed) {
		return resp, nil
	}
	for name, said := range params { // the router gives them as they are in the path
		if params[name], err = url.PathUnescape(said); err != nil {
			return resp, nil // no name at all: that it was refused is seen elsewhere
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route, Options: &openapi3filter.Options{
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

// plain is a body as the document speaks of it.
func plain(body []byte) io.Reader {
	if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		return z
	}
	if bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")) {
		return inflate.New(bytes.NewReader(body), inflate.Zstd, inflate.Limits{Window: types.MaxBody})
	}
	return bytes.NewReader(body)
}

// always is what holds of every answer, whatever was asked.
func (c *checked) always(resp *http.Response) {
	c.t.Helper()
	if id := resp.Header.Get("X-Decision-Id"); !decisionID.MatchString(id) {
		c.t.Errorf("%d without a decision id: %q", resp.StatusCode, id)
	}
	told := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
	if (resp.Header.Get("Retry-After") != "") != told {
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

// The router and the document know the same endpoints.
func TestTheDocumentIsServed(t *testing.T) {
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

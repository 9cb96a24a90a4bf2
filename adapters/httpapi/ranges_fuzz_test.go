package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
)

var (
	oneRange = regexp.MustCompile(`^bytes=[ \t]*([0-9]+-[0-9]*|-[0-9]+)[ \t]*$`)
	noBytes  = regexp.MustCompile(`=[ \t]*-0+[ \t]*$`) // not satisfiable
)

// FuzzRanges compares the answer to a Range with that of net/http's file server: the same part, or all of the object where one
// of them ignores what it does not understand.
func FuzzRanges(f *testing.F) {
	for _, said := range []string{"bytes=0-0", "bytes=5-", "bytes=-3", "bytes=9-1", "bytes=0-1,3-4", "bytes= 1-2", "bytes=00-01", "bytes=-0", "bytes=99999999999999999999-", "x=0-1", "bytes=+1-2", "bytes=1 - 2", ""} {
		f.Add(said)
	}
	h := build(f)
	h.objects().put(1, large)
	api := httpapi.New(httpapi.Config{Large: 2, Node: node{h}, Gate: open{}, Books: h, Views: views{h}, Rows: h.objects(), Contents: h.objects().store, Transfers: still{}, Meter: still{},
		Log: slog.New(slog.DiscardHandler), Deadline: time.Second})
	f.Fuzz(func(t *testing.T, said string) {
		said = strings.TrimSpace(said) // values with blanks at their ends are refused
		if len(said) > 5 && strings.EqualFold(said[:5], "bytes") {
			said = "bytes" + said[5:] // net/http knows no other spelling
		}
		ask := func(serve http.Handler) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/o/"+addressOf(large), nil)
			r.Header = http.Header{"Authorization": {bearer(1)}, "Range": {said}}
			w := httptest.NewRecorder()
			serve.ServeHTTP(w, r)
			return w
		}
		got := ask(api)
		want := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(large))
		}))
		if !oneRange.MatchString(said) || noBytes.MatchString(said) || got.Code == http.StatusOK && want.Code == http.StatusRequestedRangeNotSatisfiable {
			if got.Code == http.StatusOK && got.Body.String() != large || got.Code == http.StatusPartialContent {
				t.Fatalf("%q: %d with %d bytes", said, got.Code, got.Body.Len())
			}
			return // more than one range, and what is malformed, are ignored; net/http is more lenient
		}
		if got.Code != want.Code || got.Code < 300 && got.Body.String() != want.Body.String() || got.Code == 206 && got.Header().Get("Content-Range") != want.Header().Get("Content-Range") {
			t.Fatalf("%q: %d %q, %d bytes; want %d %q, %d bytes", said, got.Code, got.Header().Get("Content-Range"), got.Body.Len(), want.Code, want.Header().Get("Content-Range"), want.Body.Len())
		}
	})
}

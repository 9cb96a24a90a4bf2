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

// FuzzRanges compares the response to a Range with that of the file server of net/http: the same part, or the
// whole object if one of them ignores the header.
func FuzzRanges(f *testing.F) {
	for _, value := range []string{"bytes=0-0", "bytes=5-", "bytes=-3", "bytes=9-1", "bytes=0-1,3-4", "bytes= 1-2", "bytes=00-01", "bytes=-0", "bytes=99999999999999999999-", "x=0-1", "bytes=+1-2", "bytes=1 - 2", ""} {
		f.Add(value)
	}
	h := build(f)
	h.objects().put(1, large)
	api := httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: node{h}, Admission: admitAll{}, ReadModel: h, Index: fakeIndex{h}, Rows: h.objects(), Names: h.objects(), Contents: h.objects().store, Transfers: noMeter{}, Meter: noMeter{},
		Log: slog.New(slog.DiscardHandler), Deadline: time.Second})
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.TrimSpace(value) // values with blanks at their ends are rejected
		if len(value) > 5 && strings.EqualFold(value[:5], "bytes") {
			value = "bytes" + value[5:] // net/http accepts no other spelling
		}
		send := func(serve http.Handler) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/o/"+addressOf(large), nil)
			r.Header = http.Header{"Authorization": {bearer(1)}, "Range": {value}}
			w := httptest.NewRecorder()
			serve.ServeHTTP(w, r)
			return w
		}
		got := send(api)
		want := send(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(large))
		}))
		if !oneRange.MatchString(value) || noBytes.MatchString(value) || got.Code == http.StatusOK && want.Code == http.StatusRequestedRangeNotSatisfiable {
			if got.Code == http.StatusOK && got.Body.String() != large || got.Code == http.StatusPartialContent {
				t.Fatalf("%q: %d with %d bytes", value, got.Code, got.Body.Len())
			}
			return // several ranges and malformed ones are ignored; net/http is more lenient
		}
		if got.Code != want.Code || got.Code < 300 && got.Body.String() != want.Body.String() || got.Code == 206 && got.Header().Get("Content-Range") != want.Header().Get("Content-Range") {
			t.Fatalf("%q: %d %q, %d bytes; want %d %q, %d bytes", value, got.Code, got.Header().Get("Content-Range"), got.Body.Len(), want.Code, want.Header().Get("Content-Range"), want.Body.Len())
		}
	})
}

package proxy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRangesAreForwarded: Range is forwarded as it is, and so is the response. The proxy does not
// enlarge either.
func TestRangesAreForwarded(t *testing.T) {
	const thing = "0123456789"
	var asked []string
	h := newGateway(t, nil, startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		http.ServeContent(w, r, "thing.txt", time.Time{}, strings.NewReader(thing))
	}))
	many := "bytes=0-" + strings.Repeat(",0-", 2000)
	for _, c := range []struct {
		value  string
		status int
	}{
		{"bytes=2-4", http.StatusPartialContent},
		{"bytes=-3", http.StatusPartialContent},
		{many, http.StatusOK}, // the whole body, once
		{"bytes=9999999999-", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=99999999999999999999-", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=5-2", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=--1", http.StatusRequestedRangeNotSatisfiable},
		{"rows=all", http.StatusRequestedRangeNotSatisfiable},
	} {
		a := h.get("/thing", "Range", c.value)
		if is := asked[len(asked)-1]; a.status != c.status || len(a.body) > 64 || is != c.value {
			t.Errorf("%.40q: the upstream was asked %.40q, answered %d %q", c.value, is, a.status, a.body)
		}
	}
}

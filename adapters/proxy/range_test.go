package proxy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAbsurdRanges: what a client asks to have of a thing is the upstream's to answer. The
// words go through as they are, the answer comes as it is, and none is made larger here.
func TestAbsurdRanges(t *testing.T) {
	const thing = "0123456789"
	var asked []string
	h := build(t, nil, serves(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		http.ServeContent(w, r, "thing.txt", time.Time{}, strings.NewReader(thing))
	}))
	many := "bytes=0-" + strings.Repeat(",0-", 2000)
	for _, c := range []struct {
		says   string
		status int
	}{
		{"bytes=2-4", http.StatusPartialContent},
		{"bytes=-3", http.StatusPartialContent},
		{many, http.StatusOK}, // all of it, once
		{"bytes=9999999999-", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=99999999999999999999-", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=5-2", http.StatusRequestedRangeNotSatisfiable},
		{"bytes=--1", http.StatusRequestedRangeNotSatisfiable},
		{"rows=all", http.StatusRequestedRangeNotSatisfiable},
	} {
		a := h.get("/thing", "Range", c.says)
		if is := asked[len(asked)-1]; a.status != c.status || len(a.body) > 64 || is != c.says {
			t.Errorf("%.40q: the upstream was asked %.40q, answered %d %q", c.says, is, a.status, a.body)
		}
	}
}

package httpapi_test

import (
	"context"
	"sync/atomic"
	"testing"

	"macronode/adapters/httpapi"
)

// TestKeyedReportsValidKeysOnly: a request without a key, or with a wrong one, is not reported.
func TestKeyedReportsValidKeysOnly(t *testing.T) {
	var keyed atomic.Int32
	s := serve(t, build(t), func(c *httpapi.Config) { c.Authenticated = func(context.Context) { keyed.Add(1) } })
	for _, c := range []struct {
		header string
		want   int32
	}{{"", 0}, {bearer(1) + "x", 0}, {"Bearer mk_0000000000000001_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 0}, {bearer(1), 1}} {
		r := s.command("keys", `{"name":"n","scopes":["read"]}`)
		r.Header.Del("Authorization")
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		s.send(r)
		if got := keyed.Swap(0); got != c.want {
			t.Errorf("%q: reported %d times, want %d", c.header, got, c.want)
		}
	}
}

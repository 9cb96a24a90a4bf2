package cli

import (
	"strings"
	"testing"
)

// TestUnreachableRouteIsRejected: a route that no request can match is rejected at the start.
func TestUnreachableRouteIsRejected(t *testing.T) {
	t.Parallel()
	for path, wrong := range map[string]bool{"/v1": true, "/v1/wallet": true, "/openapi.json": true, "/o": true, "/o/x": true, "/of": false, "/": false, "/v10": false, "/app": false} {
		c := newTestConsole()
		c.tree = &tree{Set: []string{`upstreams={"app":{"url":"http://127.0.0.1:9"}}`, `routes=[{"upstream":"app","path":"` + path + `"}]`}}
		_, err := c.load()
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "reserved for the node's own API") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

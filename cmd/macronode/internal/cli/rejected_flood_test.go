package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestFloodOfRejectedRequestsIsCut sends requests without a key on one connection of each listener,
// more than are read: the node ends the connection, and counts that.
func TestFloodOfRejectedRequestsIsCut(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	for i, c := range []struct{ url, path string }{{p.HTTP, "/v1/balance?account=a&asset=A"}, {p.Admin, "/debug/queues"}} {
		n := floodWithoutKey(t, strings.TrimPrefix(c.url, "http://"), "GET "+c.path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if text := p.adminText(t, "/metrics"); !strings.Contains(text, fmt.Sprintf("\nrejected_total{plane=\"node\",reason=\"rejected_flood\"} %d\n", i+1)) {
			t.Errorf("%s: the connection ended after %d responses, and is not counted", c.url, n)
		}
	}
}

// floodWithoutKey sends a request until the node ends the connection, and returns how many responses
// were read. It gives up after 20000: then more than 100 a second were rejected, on any machine.
func floodWithoutKey(t *testing.T, to, request string) (n int) {
	t.Helper()
	c, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		for many := strings.Repeat(request, 1000); err == nil; {
			_, err = io.WriteString(c, many)
		}
	}()
	for from := bufio.NewReader(c); ; n++ {
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			return n
		}
		if resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("response %d: %s", n, resp.Status)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if n == 20000 {
			t.Fatalf("%s: %d requests are rejected, and the connection is open", to, n)
		}
	}
}

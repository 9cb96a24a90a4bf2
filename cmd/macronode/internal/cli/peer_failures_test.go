package cli

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// peerClient returns a client without an API key that connects from an address of this host.
func peerClient(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// status sends a request and returns the status of the response.
func (p process) status(t *testing.T, c *http.Client, method, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.HTTP+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// circuitOfAnonymous returns the metric of the circuit of the upstream for callers without a key.
func (p process) circuitOfAnonymous(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(p.adminText(t, "/metrics"), "\n"+`circuit_state{callers="anonymous",upstream="app"} `)
	value, _, _ := strings.Cut(text, "\n")
	return value
}

// TestFailuresOfAPeerSpareOthers: one address without a key makes the upstream answer 503. The circuit opens for that
// address only. Another address gets the answers of the upstream, and they close the circuit.
func TestFailuresOfAPeerSpareOthers(t *testing.T) {
	t.Parallel()
	p := startNode(t, `upstreams={"app":{"url":"`+newUpstream(t)+`","max_attempts":1}}`, `routes=[{"path":"/","upstream":"app","auth":"none"}]`)
	failing, other := peerClient("127.0.0.2"), peerClient("127.0.0.3")
	fail := func(n int) {
		for range n {
			if status := p.status(t, failing, http.MethodPost, "/refuses"); status != http.StatusServiceUnavailable {
				t.Fatalf("a request that fails: %d", status)
			}
		}
	}
	served := func(when string) {
		for range 5 {
			if status := p.status(t, other, http.MethodGet, "/list"); status != http.StatusOK {
				t.Fatalf("%s: %d", when, status)
			}
		}
		if state := p.circuitOfAnonymous(t); state != "0" {
			t.Errorf("%s: the circuit is %s, want closed", when, state)
		}
	}
	fail(60)
	if state := p.circuitOfAnonymous(t); state == "0" {
		t.Error("only one address has sent requests, all failed, and the circuit is closed")
	}
	served("after the failures of another address")
	for range 5 {
		fail(60)
		served("while requests of another address fail")
	}
}

package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// A caller is a tenant with a key.
type caller struct {
	p   process
	key string
}

// call sends a request with a new idempotency key, and returns its status and response.
func (c caller) call(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.p.HTTP+path, strings.NewReader(body))
	testkit.Must(t, err)
	for name, value := range map[string]string{"Authorization": "Bearer " + c.key, "Idempotency-Key": fmt.Sprintf("k%d", requestIDs.Add(1))} {
		req.Header.Set(name, value)
	}
	if strings.HasPrefix(body, "{") {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp.StatusCode, string(got)
}

// wants compares the outcome of a request: success for an empty key, else a rejection that names the key.
func (c caller) wants(t *testing.T, key, path, body string) {
	t.Helper()
	status, got := c.call(t, http.MethodPost, path, body)
	rejected := status == http.StatusForbidden && strings.Contains(got, `"limits_exceeded"`) && strings.Contains(got, key)
	if key == "" && status/100 != 2 || key != "" && !rejected {
		t.Errorf("%s %.200s: %d %s, want %q", path, body, status, got, key)
	}
}

// fill makes entries, each by a request of its own, until half of the table is full, and wants a rejection of one more.
func (c caller) fill(t *testing.T, half int, key, path string, body func(int) string) {
	t.Helper()
	for i := range half {
		c.wants(t, "", path, body(i))
	}
	c.wants(t, key, path, body(half))
}

func issueTo(to, asset string) string {
	return fmt.Sprintf(`{"to":%q,"asset":%q,"amount_minor":"100"}`, to, asset)
}

func holdOf(from string, nonce int) string {
	return fmt.Sprintf(`{"from":%q,"asset":"EUR","amount_minor":"1","nonce":%d,"expires_at":%q}`, from, nonce, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

// callers returns the keys of two tenants: the default one, whose key is that of the administrator, and another one.
func (p process) callers(t *testing.T) (admin, other caller) {
	t.Helper()
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	own := strings.TrimSpace(string(boot))
	key, _ := p.makeKey(t, own, `{"name":"other","scopes":["read","issue","transfer","hold","store","meter"],"tenant":"9"}`)
	return caller{p, own}, caller{p, key}
}

// TestTenantsLeaveRoom: a tenant takes all that it gets of each table, and another one begins, also if that is the administrator's.
func TestTenantsLeaveRoom(t *testing.T) {
	t.Parallel()
	p := startNode(t, "wallet.limits.accounts=8", "wallet.limits.holdings=12", "wallet.limits.assets=4", "wallet.limits.holds=4",
		"storage.objects=8", "storage.buckets=4", "storage.uploads=2", "http.read_timeout=1m", "log.level=error")
	admin, greedy := p.callers(t)
	greedy.fill(t, 4, "wallet.limits.tenant_accounts", "/v1/issue", func(i int) string { return issueTo(fmt.Sprint("a", i), "EUR") })
	greedy.wants(t, "", "/v1/issue", issueTo("a0", "USD"))
	greedy.wants(t, "wallet.limits.tenant_assets", "/v1/issue", issueTo("a0", "GBP"))
	greedy.wants(t, "", "/v1/issue", issueTo("a1", "USD"))
	greedy.wants(t, "wallet.limits.tenant_holdings", "/v1/issue", issueTo("a2", "USD"))
	greedy.fill(t, 2, "wallet.limits.tenant_holds", "/v1/holds", func(i int) string { return holdOf("a0", i+1) })
	greedy.fill(t, 4, "storage.tenant_objects", "/o", func(i int) string { return fmt.Sprint("object ", i) })

	admin.wants(t, "", "/v1/issue", issueTo("b", "EUR"))
	admin.wants(t, "", "/v1/holds", holdOf("b", 1))
	admin.wants(t, "", "/o", "an object of another tenant")

	arrives := greedy.upload(t)
	p.awaitDepth(t, "uploads", "1")
	if status, got := greedy.call(t, http.MethodPost, "/o", "another one"); status != http.StatusTooManyRequests || !strings.Contains(got, "storage.uploads") {
		t.Errorf("a second upload of the tenant: %d %s", status, got)
	}
	admin.wants(t, "", "/o", "an upload of another tenant")
	testkit.Must(t, arrives.Close())
}

// upload sends a part of an object, and keeps the connection open.
func (c caller) upload(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.p.HTTP, "http://"))
	testkit.Must(t, err)
	_, err = fmt.Fprintf(conn, "POST /o HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nbegun", c.key)
	testkit.Must(t, err)
	return conn
}

// awaitDepth waits until a queue has a depth.
func (p process) awaitDepth(t *testing.T, queue, want string) {
	t.Helper()
	for check := testkit.HangGuard(t); ; check() {
		if strings.Contains(p.adminText(t, "/metrics"), "\n"+testkit.QueueSeries(queue)+" "+want+"\n") {
			return
		}
		time.Sleep(time.Millisecond) // the next scrape
	}
}

// TestJournalAboveShareIsRead: a node without limits of tenants starts with a tenant that has whole tables, and keeps
// them. It gets no more, and others begin.
func TestJournalAboveShareIsRead(t *testing.T) {
	t.Parallel()
	p := startNode(t, "wallet.limits.accounts=6", "wallet.limits.tenant_accounts=6", "wallet.limits.holds=3", "wallet.limits.tenant_holds=3", "storage.objects=3", "storage.tenant_objects=3")
	_, greedy := p.callers(t)
	greedy.fill(t, 6, "wallet.limits.accounts", "/v1/issue", func(i int) string { return issueTo(fmt.Sprint("a", i), "EUR") })
	greedy.fill(t, 3, "wallet.limits.holds", "/v1/holds", func(i int) string { return holdOf("a0", i+1) })
	for i := range 3 {
		greedy.wants(t, "", "/o", fmt.Sprint("object ", i))
	}
	p.end()

	more := startInDir(t, p.dir, "--set", "wallet.limits.accounts=10", "--set", "wallet.limits.holds=5", "--set", "storage.objects=5")
	greedy.p = more
	own, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	admin := caller{more, strings.TrimSpace(string(own))}
	greedy.wants(t, "", "/v1/issue", issueTo("a5", "EUR"))
	greedy.wants(t, "wallet.limits.tenant_accounts", "/v1/issue", issueTo("a6", "EUR"))
	greedy.wants(t, "wallet.limits.tenant_holds", "/v1/holds", holdOf("a0", 4))
	greedy.wants(t, "storage.tenant_objects", "/o", "object 3")
	admin.wants(t, "", "/v1/issue", issueTo("b", "EUR"))
	admin.wants(t, "", "/v1/holds", holdOf("b", 1))
	admin.wants(t, "", "/o", "an object of another tenant")
}

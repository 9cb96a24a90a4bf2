package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsageLeavesKeysForPayments: usage events take at most three quarters of the idempotency keys. The next batch gets 429,
// one that can never fit gets 413, and payments succeed with the rest.
func TestUsageLeavesKeysForPayments(t *testing.T) {
	t.Parallel()
	const keys, batch = 64, 16
	p := startNode(t, fmt.Sprintf("wallet.idempotency.keys=%d", keys), "http.request_deadline=60s") // no key is evicted for twice this time
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, media, key, body string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(boot)))
		r.Header.Set("Content-Type", media)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp, string(text)
	}
	report := func(from, n int) (*http.Response, string) {
		var events []string
		for i := range n {
			events = append(events, fmt.Sprintf(`{"specversion":"1.0","type":"u","source":"s","id":"%d","data":{"dimension":"requests","value":1}}`, from+i))
		}
		return post("/v1/usage-events", "application/cloudevents-batch+json", "", "["+strings.Join(events, ",")+"]")
	}
	for n := range 3 {
		if resp, text := report(n*batch, batch); resp.StatusCode != http.StatusAccepted {
			t.Fatalf("batch %d: %d %s", n, resp.StatusCode, text)
		}
	}
	if resp, text := report(1000, 1); resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, `"code":"idempotency_capacity"`) || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more event: %d %s", resp.StatusCode, text)
	}
	if resp, text := report(1000, batch+1); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, `"retryable":false`) {
		t.Errorf("a large batch: %d %s", resp.StatusCode, text)
	}
	for n := range keys / 4 {
		if resp, text := post("/v1/issue", "application/json", fmt.Sprintf("k%d", n), `{"to":"ann","asset":"EUR/2","amount_minor":"1"}`); resp.StatusCode != http.StatusOK {
			t.Fatalf("payment %d: %d %s", n, resp.StatusCode, text)
		}
	}
}

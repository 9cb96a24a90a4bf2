package cli

import (
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestArrearsOfPostpaidTenant: what a prepaid tenant owes is reported when it becomes postpaid, also after a restart, and is collected
// with arrears_only. What it uses then is postpaid.
func TestArrearsOfPostpaidTenant(t *testing.T) {
	t.Parallel()
	const (
		prices  = "accounting: {meter_requests: true, flush_interval: 100ms, prices: [{name: calls, dimension: requests, model: per_unit, price: '1', asset: EUR/2}]"
		account = "{tenant: default, payer: 'usage:prepaid', beneficiary: 'usage:revenue'"
	)
	c := startWithFile(t, prices+", prepaid: ["+account+"}]}\n")
	owes := func(want string, lines int, why string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(c.adminText(t, "/metrics"), "\nprepaid_uncollected_tenants "+want+"\n"); check() {
			time.Sleep(10 * time.Millisecond)
		}
		if n := strings.Count(c.log.String(), "no entry of accounting.prepaid collects it"); n != lines {
			t.Fatalf("%s: the log reports it %d times, want %d", why, n, lines)
		}
	}
	issue := func(to, key string) {
		t.Helper()
		if status, body := c.sendWithKey("POST", "/v1/issue", key, `{"to":"`+to+`","asset":"EUR/2","amount_minor":"500"}`); status != 200 {
			t.Fatal(status, body)
		}
	}
	balance := func() string {
		_, body := c.sendWithKey("GET", "/v1/balance?account=usage:revenue&asset=EUR/2", "", "")
		return body
	}
	owes("0", 0, "nothing is due")
	issue("a", "k1") // it is served, and its price is due
	c.reload(prices + "}\n")
	owes("1", 1, "it is postpaid")
	c.end()
	c.process = startInDir(t, c.dir, "--config", c.file)
	owes("1", 1, "it is postpaid, after a restart")
	c.reload(prices + ", prepaid: [" + account + ", arrears_only: true}]}\n")
	owes("0", 1, "its arrears are collected")
	issue("usage:prepaid", "k2")
	for check := testkit.HangGuard(t); !strings.Contains(balance(), `"amount_minor":"1"`); check() {
		time.Sleep(10 * time.Millisecond)
	}
}

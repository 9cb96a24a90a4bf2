package settings

import (
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestSlowInstanceQuotaShortensTurns: a turn of the fair queue fits into queue.max_wait.
func TestSlowInstanceQuotaShortensTurns(t *testing.T) {
	for quota, want := range map[string]uint64{
		`quotas=[{"scope":"instance","requests_per_second":50,"burst":10}]`: least,
		`quotas=[{"scope":"peer","requests_per_second":50,"burst":10}]`:     64 << 10,
		"quotas=[]": 64 << 10,
	} {
		c := testkit.Config(t, quota)
		if got := firstPolicy(c).Quantum; got != want {
			t.Errorf("%s: a turn of %d bytes, want %d", quota, got, want)
		}
	}
}

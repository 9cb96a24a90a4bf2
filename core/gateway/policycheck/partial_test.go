package policycheck_test

import (
	"testing"
	"time"

	"macronode/core/gateway/policycheck"
)

// TestPartialIsReported ends a check at several limits. While histories are left out, the result
// is partial; with enough steps it is not.
func TestPartialIsReported(t *testing.T) {
	c, to := config(), gate()
	to.MaxWait, to.Version = 10*time.Millisecond, 2
	whole, err := policycheck.ChangeWithin(c, &to, 1<<40)
	if err != nil || whole.Partial || whole.Steps == 0 {
		t.Fatalf("without a limit: %+v, %v", whole, err)
	}
	for limit := 1; limit < whole.Steps/2; limit += 1 + whole.Steps/50 {
		if got, err := policycheck.ChangeWithin(c, &to, limit); err != nil || !got.Partial || got.Steps >= whole.Steps {
			t.Errorf("limit %d of %d steps: %+v, %v", limit, whole.Steps, got, err)
		}
	}
}

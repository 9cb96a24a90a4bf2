package receipt_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/wallet/receipt"
)

// TestAnswersNeverShowOtherTenants: an answer of a batch shows nothing of another tenant's
// record, wherever in the frame that is.
func TestAnswersNeverShowOtherTenants(t *testing.T) {
	saw := [2]int{}
	rapid.Check(t, func(t *rapid.T) {
		secret, foreign := []byte("theirs"), 0
		var items []record.Record
		for range rapid.IntRange(1, 6).Draw(t, "items") {
			r := money(event.Issue, func(*record.Record) {})
			items = append(items, r)
		}
		all := batch(rapid.Bool().Draw(t, "atomic"), items...)
		for i := 1; i < len(all); i++ {
			if rapid.IntRange(0, 3).Draw(t, "owner") == 0 {
				all[i].Tenant++
				all[i].To, all[i].Memo = name(string(secret)), secret
				foreign++
			}
		}
		s := scene{lsn: 3, records: all}
		answer, _, owner, err := receipt.Render(nil, sealing(&s), 0)
		if foreign > 0 && (!errors.Is(err, record.ErrFrame) || bytes.Contains(answer, secret)) {
			t.Fatalf("tenant %d is shown %q, %v", owner, answer, err)
		}
		if foreign == 0 && (err != nil || owner != all[0].Tenant) {
			t.Fatalf("tenant %d of %d: %v", owner, all[0].Tenant, err)
		}
		saw[min(foreign, 1)]++
	})
	if saw[0] == 0 || saw[1] == 0 {
		t.Errorf("batches of one tenant %d, of two %d", saw[0], saw[1])
	}
}

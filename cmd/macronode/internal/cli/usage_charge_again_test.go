package cli

import (
	"fmt"
	"strings"
	"testing"

	"macronode/adapters/client"
	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

// TestSliceChargedByAnotherRun: a slice that another run charges meanwhile is not counted as charged by this one.
func TestSliceChargedByAnotherRun(t *testing.T) {
	t.Parallel()
	p := newPeer(t, `404 {"code":"not_found"}`, `200 {"assets":[],"as_of":"2026-01-03T00:00:00.000Z"}`, has, `409 {"code":"ref_used","detail":"Used."}`, moved,
		fmt.Sprintf(`200 {"account":"ann","entries":[{"seq":9,"op":"transfer","direction":"debit","amount_minor":"5","balance_minor":"2","held_minor":"0","memo":"usage requests 1 %s prices %s"}],"as_of":"2026-01-03T00:00:00.000Z"}`,
			accounting.Digest{}, pricing.List(nil).Digest()))
	node, err := client.New(p.URL, "secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := newTestConsole()
	d.tree = &tree{}
	g := &charger{period: invoice.ChargePeriod{To: 1}, billing: &billing{Console: d.Console, node: node, tenant: types.DefaultTenant, maxAmount: types.MinorUnits(5)}, from: "ann", to: "bob", nonces: map[payer]int64{}}
	of := invoice.Invoice{Charges: []invoice.Charge{{Dimension: "requests", Asset: "EUR/2", Seq: 1, Amount: types.MinorUnits(5)}}}
	if err := g.charge(t.Context(), &of, false); err != nil {
		t.Fatal(err)
	}
	if got := d.out.String(); !strings.Contains(got, "charged_before, tx_1\n") || !strings.HasSuffix(got, "charges made: 0, made before: 1\n") {
		t.Error(got)
	}
}

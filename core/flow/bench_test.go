package flow_test

import (
	"testing"

	"macronode/core/accounting"
	"macronode/core/flow"
	"macronode/core/pricing"
	"macronode/core/wallet"
	"macronode/core/wallet/ledger"
)

// BenchmarkReserve is what a request of a prepaid tenant costs more, under the lock of the meter: with prices of its three dimensions.
func BenchmarkReserve(b *testing.B) {
	var prices pricing.List
	for _, dimension := range [...]string{"requests", "bytes_in", "bytes_out"} {
		prices = append(prices, pricing.Price{Name: dimension, Dimension: dimension, Asset: "EUR", Model: pricing.Graduated, Per: 1, Tiers: []pricing.Tier{{UpTo: 1 << 50}, {Price: 1_000_000}}})
	}
	terms, err := flow.NewTerms(prices, usagePayer, usageRevenue)
	if err != nil {
		b.Fatal(err)
	}
	books := flow.Books{Usage: accounting.New(accounting.Limits{Lines: 3}, 1), Wallet: wallet.New(ledger.Limits{}, 1)}
	credit := flow.NewCredit()
	r := &accounting.Request{Tenant: 1, At: begin, Labels: accounting.NewRequestLabels("gateway", "get", "shop"), In: 100}
	key, _ := accounting.NewMeter(window, 1, 1).Add(r)
	b.ReportAllocs()
	for b.Loop() {
		of, problem, _ := credit.Reserve(r, terms, books)
		if problem != 0 {
			b.Fatal(problem)
		}
		ended := *r
		ended.Out = 2000
		credit.End(of, key, &ended)
	}
}

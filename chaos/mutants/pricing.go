package mutants

// pricing are faults of prices, invoices and bundles.
func pricing() []Mutant {
	const (
		price    = "core/pricing/price.go"
		invoice  = "core/invoice/invoice.go"
		model    = "./core/pricing TestAmountAgreesWithModel$"
		sums     = "./core/invoice TestChargesAddUp$"
		example  = "./core/invoice TestInvoice$"
		problems = "./cmd/internal/usagefile TestBundleProblems$"
	)
	return []Mutant{
		one("the last unit of a tier is in the next", "a tier goes up to and with its last unit", price, "up == 0 || !types.MinorUnits(up).Less(units) {", "up == 0 || units.Less(types.MinorUnits(up)) {", model, "./core/pricing TestTierBoundaries$"),
		one("an amount is rounded down", "half a minor unit is rounded up", "core/pricing/wide.go", "if rest >= d-rest {", "if rest >= d {", model, "./core/pricing TestRounding$"),
		one("a charge has the amount of its slice alone", "charges add up to the invoice", invoice, "before := l.Amount\n", "before, _ := l.Price.Amount(pricing.Quantity{})\n", sums, example),
		one("charges are in the order of windows", "a later slice changes no charge", invoice, "slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.seq, b.seq) })", "slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.window.From, b.window.From), cmp.Compare(a.seq, b.seq)) })", "./core/invoice TestLaterSlicesChangeNoCharge$", example),
		one("a bundle may have any digest", "each byte of a bundle is verified", "cmd/internal/usagefile/bundle.go", "if r.end = true; l.Digest != r.sum.sum.String() {", "if r.end = true; len(l.Digest) < 2 {", problems, "./cmd/internal/usagefile TestEveryByteIsVerified$"),
		one("a transfer of a charge has no ref", "a slice is charged once, for ever", "cmd/macronode/internal/cli/usage_charge.go", "Memo: l.memo(), Ref: l.Ref}", "Memo: l.memo()}", "./cmd/macronode TestScripts/charge$", "./cmd/macronode/internal/cli TestChargeIsMadeOnce$"),
		alone("one test charges by other prices", one("a charge by other prices counts", "a period is charged by one price list", "cmd/macronode/internal/cli/usage_charge.go", "case memo != l.memo():", "case false:", "./cmd/macronode/internal/cli TestChargeReportsOutcome$")),
		alone("one test makes a charged slice free", one("a charged slice that is free now is overlooked", "a period is charged by one price list", "cmd/macronode/internal/cli/usage_charge.go", "for _, s := range of.Postpaid {", "for _, s := range of.Postpaid[len(of.Postpaid)-len(of.Charges):] {", "./cmd/macronode/internal/cli TestChargeReportsOutcome$")),
	}
}

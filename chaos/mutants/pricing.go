package mutants

// pricing are faults of prices, invoices and bundles.
func pricing() []Mutant {
	const (
		price    = "core/pricing/price.go"
		invoice  = "core/invoice/invoice.go"
		period   = "core/invoice/period.go"
		model    = "./core/pricing TestAmountAgreesWithModel$"
		sums     = "./core/invoice TestChargesAddUp$"
		example  = "./core/invoice TestInvoice$"
		charged  = "./chaos/sim TestSlicesAreChargedOnce$"
		named    = "./cmd/verify-usage TestWrongSliceIsNamed$"
		verify   = "./cmd/macronode/internal/cli TestVerifyNamesWrongSlice$"
		problems = "./cmd/internal/usagefile TestBundleProblems$"
	)
	return []Mutant{
		one("the last unit of a tier is in the next", "a tier goes up to and with its last unit", price, "up == 0 || !types.MinorUnits(up).Less(units) {", "up == 0 || units.Less(types.MinorUnits(up)) {", model, "./core/pricing TestTierBoundaries$"),
		one("an amount is rounded down", "half a minor unit is rounded up", "core/pricing/wide.go", "if rest >= d-rest {", "if rest >= d {", model, "./core/pricing TestRounding$"),
		one("a charge has the amount of its slice alone", "charges add up to the invoice", invoice, "before := l.Amount\n", "before, _ := l.Price.Amount(pricing.Quantity{})\n", sums, example, charged),
		one("charges are in the order of windows", "a later slice changes no charge", invoice, "slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.seq, b.seq) })", "slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.window.From, b.window.From), cmp.Compare(a.seq, b.seq)) })", "./core/invoice TestLaterSlicesChangeNoCharge$", example),
		one("slices of two dimensions have one ref", "each slice is charged", "core/invoice/ref.go", "b = append(append(b, byte(len(s.Dimension))), s.Dimension...)", "b = append(b, 0)", "./core/invoice TestRefsDiffer$", charged),
		one("a slice that makes usage cheaper is no refund", "charges add up to the invoice", invoice, "if c.Refund = up.Less(down); c.Refund {\n\t\t\tup, down = down, up", "if up.Less(down) {\n\t\t\tup, down = down, up", sums, charged),
		one("charges may begin within a month", "a period of charges begins with a month", period, "p.From != month.From || ", "", "./core/invoice TestChargePeriod$", "./cmd/macronode/internal/cli TestPeriodsThatCannotBeCharged$"),
		one("charges are of the invoice of their period", "a charge is the same in each period", period, "return ChargePeriod{month, p.To}, nil", "return ChargePeriod{p, p.To}, nil", "./core/invoice TestChargesOfShorterPeriod$", "./cmd/macronode/internal/cli TestChargeIsMadeOnce$"),
		one("slices after the end of the period are charged", "a run charges what it was asked for", period, "return c.Window.From < p.To", "return c.Window.From < p.Month.To", "./core/invoice TestChargesOfShorterPeriod$", "./cmd/macronode/internal/cli TestChargeReportsOutcome$"),
		one("a bundle may have any digest", "each byte of a bundle is verified", "cmd/internal/usagefile/bundle.go", "if r.end = true; l.Digest != r.sum.sum.String() {", "if r.end = true; len(l.Digest) < 2 {", problems, "./cmd/internal/usagefile TestEveryByteIsVerified$"),
		one("a slice may have any digest", "each field of a slice is verified", "core/accounting/verify.go", "is != s.Digest {\n\t\treturn &FieldError{\"digest\", \"is not that of the content", "is != s.Digest && s.Seq == 0 {\n\t\treturn &FieldError{\"digest\", \"is not that of the content", named, verify),
		one("a slice may be replaced in its chain", "a slice that is made anew contradicts the next one", "core/accounting/verify.go", "case precedes && v.runs[at].previous != s.Digest:", "case precedes && v.runs[at].previous != s.Digest && at > 0:", named, verify),
		one("a transfer of a charge has no ref", "a slice is charged once, for ever", "cmd/macronode/internal/cli/usage_charge.go", "Memo: l.memo(), Ref: l.Ref}", "Memo: l.memo()}", "./cmd/macronode TestScripts/charge$", "./cmd/macronode/internal/cli TestChargeIsMadeOnce$"),
		alone("one test charges by other prices", one("a charge by other prices counts", "a period is charged by one price list", "cmd/macronode/internal/cli/usage_charge.go", "case isMade && l.has(memo):", "case isMade:", "./cmd/macronode/internal/cli TestChargeReportsOutcome$")),
		alone("one test changes the order of a price list", one("a charge counts the order of the prices", "the same prices are the same price list", "cmd/macronode/internal/cli/usage_charge.go", "prices.Sorted().Digest()", "prices.Digest()", "./cmd/macronode/internal/cli TestChargeReportsOutcome$")),
		alone("one test makes a charged slice free", one("a charged slice that is free now is overlooked", "a period is charged by one price list", "cmd/macronode/internal/cli/usage_charge.go", "for _, s := range of.Postpaid {", "for _, s := range of.Postpaid[len(of.Postpaid)-len(of.Charges):] {", "./cmd/macronode/internal/cli TestChargeReportsOutcome$")),
	}
}

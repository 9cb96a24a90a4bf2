package mutants

// charges are bugs of the certificate of charges. Each is detected by a journal that breaks the rule.
func charges() []Mutant {
	const (
		file, postpaid = "chaos/charges/charges.go", "chaos/charges/postpaid.go"

		spoilt = "./chaos/sim TestChargesAreCertified$"
		agrees = "./chaos/charges TestChargesAgreeWithInvoice$"
		bounds = "./chaos/charges TestRequestsAreBounded$"
		why    = "one test spoils journals by this rule"
	)
	return []Mutant{
		alone(why, one("an event may be recorded again", "C1", file, "if j.names[n] {", "if j.names[n] && n.tenant == 0 {", spoilt)),
		alone(why, one("a line may have any units", "C3", file, "w == nil && n.Sign() != 0 || w != nil && w.Cmp(n) != 0", "w == nil && n.Sign() != 0", spoilt)),
		alone(why, one("any account may be paid", "C4", file, "case p.from != j.Payer || p.to != j.Beneficiary:", "case p.from != j.Payer:", spoilt)),
		alone(why, one("a line may pay more than its price", "C5", file, "paid.Sign() < 0 || paid.Sign() > 0 && c.paid.Cmp(costs) > 0", "paid.Sign() < 0", spoilt)),
		alone(why, one("a slice may have any usage", "C6", file, "!is || sum != r {", "!is {", spoilt)),
		alone(why, one("usage needs no request", "C7", file, "\t\tif n > 0 {\n\t\t\treturn fmt.Errorf(\"C7: frame", "\t\tif n > 1<<60 {\n\t\t\treturn fmt.Errorf(\"C7: frame", spoilt)),
		alone(why, one("a kill may record any number of requests", "C7", "chaos/charges/bounds.go", "got[i] < b.Least || got[i] > b.Most", "got[i] < b.Least", bounds)),
		alone(why, one("a kill may cost any number of requests", "C7", "chaos/charges/bounds.go", "got[i] < b.Least || got[i] > b.Most", "got[i] > b.Most", bounds)),
		alone(why, one("arrears are settled", "C8", file, "l.paid.Cmp(l.cost) < 0 {\n\t\t\t\treturn fmt.Errorf(\"C8", "l.paid.Sign() < 0 {\n\t\t\t\treturn fmt.Errorf(\"C8", spoilt)),
		alone(why, one("a slice may be charged with any amount", "C9", postpaid, " || c.amount.Cmp(new(big.Int).Abs(due)) != 0", "", agrees)),
		alone(why, one("more than the slices may be charged", "C9", postpaid, "for ref, c := range left {", "for ref, c := range map[string]payment{} {", agrees)),
	}
}

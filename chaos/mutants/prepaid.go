package mutants

// prepaid are faults of usage that a tenant pays for: of lines, payments and the credit of requests.
func prepaid() []Mutant {
	const (
		prepaid  = "core/flow/prepaid.go"
		bill     = "core/flow/bill.go"
		credit   = "core/flow/credit.go"
		requests = "core/flow/requests.go"
		recorder = "adapters/metering/metering.go"
		later    = "./core/flow TestPrepaidRequestsAgreeWithModel$"
		owes     = "./chaos/explore TestSiteScopes/requests_that_are_paid_later"
		script   = "./cmd/macronode TestScripts/^prepaid_requests$"
		reserved = "./adapters/metering TestRequestsOfPrepaidTenants$"
		paid     = "./core/flow TestPrepaidUsageAgreesWithModel$"
	)
	return []Mutant{
		one("a batch pays the whole line again", "the sum of all charges is the price of the line", bill, "sum.Add(c.Due())", "sum.Add(c.Cost)", paid, "./chaos/explore TestSiteScopes/events_that_are_paid"),
		one("held money pays for usage", "a batch that costs more than the available balance is rejected", bill, "available, _ := has.Sub(held)", "available, _ := has.Sub(types.Amount{})\n\t_ = held", paid, sim),
		alone("one test makes the second of two transfers fail", one("a rejected transfer leaves the other one", "usage and its payment are recorded together, or not at all", prepaid, "\t\t\tf.Undo()\n\t\t\treturn", "\t\t\tf.Commit()\n\t\t\treturn", "./core/flow TestRejectedTransferCountsNothing$")),
		one("the API gets no prepaid tenants", "the usage of a prepaid tenant is paid as it is recorded", "cmd/macronode/internal/settings/reload.go", "\ts.Face.Prepaid, s.Arrears =", "\t_, s.Arrears =", "./cmd/macronode/internal/settings TestSettingsOfEachKey$", "./cmd/macronode TestScripts/^prepaid$"),
		one("arrears are no part of the credit", "who owes is not served", credit, "\tc.bill.addArrears(at)\n\tif problem := c.bill.price()", "\tif problem := c.bill.price()", later, script),
		one("a request in progress reserves nothing", "requests at the same time cannot use more than there is", credit, "\tprices.each(1, r.In, 0, u.inProgress.add)", "\tprices.each(0, 0, 0, u.inProgress.add)", later, reserved),
		one("the size of a response reserves nothing", "downloads at the same time cannot use more than there is", credit, "r.prices.each(0, 0, size, r.of.inProgress.add)", "r.prices.each(0, 0, 0, r.of.inProgress.add)", later, sim),
		one("an object is sent before its size is reserved", "a download is refused before its first byte", "adapters/httpapi/object_read.go", "o.reserveResponse(part.Length)", "error(nil)", "./adapters/httpapi TestPrepaidDownloads$", script),
		alone("the tutorial, which ci/minutes runs, is no Go test", one("S3 sends an object before its size is reserved", "a download is refused before its first byte", "adapters/s3/get.go", "c.ReserveResponse(part.Length)", "error(nil)", "./adapters/s3 TestResponseIsReservedBeforeItBegins$")),
		one("a replay is counted again", "a replay is no usage", "adapters/httpapi/metered.go", "k.isReplay && !r.InFrame || ", "", "./adapters/httpapi TestReplaysAreNotCounted$", "./cmd/macronode TestScripts/^meter_requests$"),
		one("requests that are being recorded are free", "requests at the same time cannot use more than there is", credit, "isLost := !taken[k]\n", "isLost := taken[k]\n", later, reserved),
		one("requests are recorded only if they can be paid", "what was served is recorded", requests, "\treply.Unpaid = p.payAvailable(at, in, f)\n", "\tif reply.Shortfall = b.shortfall(at, p.wallet); reply.Shortfall.Asset > 0 {\n\t\treply.Problem = event.PrepaidExceeded\n\t\treturn\n\t}\n\treply.Unpaid = p.payAvailable(at, in, f)\n", later, owes),
		one("a payment in part settles a line", "what a line has paid was transferred", bill, "\t\tif amount.Less(part) {\n\t\t\tpart = amount\n\t\t}\n", "", later, owes),
		one("a request in the frame of its effect owes nothing", "each request is paid", requests, "\tusage.RecordLines(t, u.terms.list, p.bill.changes(), f)\n", "", later, sim),
		one("arrears wait for the next request", "what is due is paid when there is money", recorder, "\tm.payArrears(ctx)\n", "", "./adapters/metering TestArrearsArePaidWithoutRequests$", sim),
		one("other prices change what was paid for", "a price list charges no usage of before", bill, "\t\tif c.changed {\n\t\t\tcosts", "\t\tif true {\n\t\t\tcosts", later, sim),
		one("a reload frees requests in progress", "requests at the same time cannot use more than there is", credit, "if o.tenant == u.tenant && o != u {", "if false {", "./adapters/metering TestReloadKeepsReservations$", later, sim),
		one("arrears that nothing collects are not reported", "what is due is collected or reported", "adapters/metering/arrears.go", "\tm.watchArrears(collected)\n", "", "./adapters/metering TestUncollectedArrears$", "./cmd/macronode/internal/cli TestArrearsOfPostpaidTenant$"),
		one("arrears end with prepaid usage", "what is due is collected or reported", "cmd/macronode/internal/settings/prepaid.go", "\t\ta.Collected[tenant] = termsOf(c, p.Payer, p.Beneficiary)\n\t\tif !p.ArrearsOnly {\n\t\t\tprepaid[tenant] = a.Collected[tenant]\n", "\t\tif !p.ArrearsOnly {\n\t\t\ta.Collected[tenant] = termsOf(c, p.Payer, p.Beneficiary)\n\t\t\tprepaid[tenant] = a.Collected[tenant]\n", "./cmd/macronode/internal/cli TestArrearsOfPostpaidTenant$", "./cmd/macronode/internal/settings TestArrearsOnly$"),
		one("usage that is recorded later is free until then", "who owes is not served", credit, "u.counted.add(k, n)\n\t\t\treturn true", "u.forget(n)\n\t\t\tu.counted.add(k, used{prices: n.prices})\n\t\t\treturn true", reserved, sim),
		one("a request is served for which there is no line", "what is served can be paid", credit, "\tif b.Usage.LineShortage(c.bill.newLines()).Limit != event.NoLimit {\n\t\treturn event.UsageCapacity, event.Shortfall{}\n\t}\n", "", later, sim),
		one("a rejected payment has no reason", "the log says why usage is not paid", requests, "rejected = cmp.Or(rejected, reply.Problem)", "_ = cmp.Or(rejected, reply.Problem)", later, sim),
		one("the lines of two months do not fit", "what is recorded can be read", "core/accounting/line.go", "len(b) < len(entries) && last.Compare(k) >= 0", "len(b) < len(entries) && (last.Price == k.Price || last.Compare(k) >= 0)", "./core/accounting TestLinesOfTwoMonthsFit$", sim),
		one("arrears above a limit are never paid", "what is due is paid when there is money", requests, "limit.Less(amount) {", "limit.Less(amount) && limit.IsZero() {", "./core/flow TestArrearsAboveLimitsArePaid$", sim),
		one("what is recorded stays reserved", "a tenant with money is served", credit, "c.taken(m, func(u *unpaid, n used) { u.forget(n) })", "c.taken(m, func(u *unpaid, n used) { _ = n })", later, sim),
		alone("in few runs of the simulator a request comes in between", one("requests with an unknown outcome are free", "requests at the same time cannot use more than there is", credit, "u.unknown = append(u.unknown, unknownUse{n, upto})", "u.forget(n)", "./adapters/metering TestUnknownUsageStaysReserved$")),
		one("the first payment of a line is forgotten", "nothing is paid twice", bill, "\t\tc.Paid, _ = c.Paid.Add(part)\n", "\t\tif !c.isNew {\n\t\t\tc.Paid, _ = c.Paid.Add(part)\n\t\t}\n", later, sim),
		one("a wallet is served only with credit", "a tenant without money can see that, and pay", "adapters/httpapi/httpapi.go", "\t\treturn serve(k)\n\t}\n\ta.echo.Add", "\t\tif err := k.reserveUsage(); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn serve(k)\n\t}\n\ta.echo.Add", "./adapters/httpapi TestPrepaidRequests$", script),
	}
}

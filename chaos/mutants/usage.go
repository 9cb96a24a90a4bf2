package mutants

// usage are faults of the accounting plane.
func usage() []Mutant {
	const (
		plane    = "core/accounting/"
		decision = plane + "decide.go"
		windows  = plane + "window.go"
		model    = "./core/accounting TestUsageAgreesWithModel$"
		node     = "./core/accounting TestNodeCountsEachEventOnce$"
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
		slices   = "./core/accounting TestFitsRejectsOtherContent$"
	)
	return []Mutant{
		one("events are decided with an old read of the index", "an event is counted once, for ever", "core/node/request.go", "if _, refs := c.(command.WithRefs); refs && !", "if _, refs := c.(command.WithRefs); refs && in.IndexedTo > 1<<40 && !", node, sim),
		one("a command without refs asks the index", "a command without a key needs no index", "core/node/request.go", "if _, refs := c.(command.WithRefs); refs && !", "if cost.Rows > 0 && !", sim, "./core/flow TestPaidPutNeedsNoIndex$"),
		one("a record of usage uses no refs", "an event is counted once, for ever", "core/state/state.go", "for i := range p.Refs(r) {", "for i := range min(p.Refs(r), 0) {", node, sim),
		one("usage events take the whole window of keys", "usage events leave a quarter of the keys to payments", plane+"plane.go", "cost.Rows, cost.LowPriority = len(in.Events), true", "cost.Rows = len(in.Events)", node, sim),
		one("usage events leave less of the window", "usage events leave a quarter of the keys to payments", "core/idempotency/window.go", "func quarter(n int) int { return (n + 3) / 4 }", "func quarter(n int) int { return n / 5 }", node, "./core/idempotency TestMatchesModel$", "./core/idempotency TestLowPriority$"),
		one("an event with other content is a duplicate", "the same ID with other content is a conflict", decision, "if prior.Hash != e.content {", "if prior.Hash != e.content && at < 0 {", model, node, sim),
		one("the time of an undated event is part of its content", "a retry of an undated event is a duplicate", plane+"command.go", "if e.Undated {", "if false {", model, node, sim),
		one("a window takes usage when it is due", "a window is sealed once", windows, "k.due <= at {", "k.due < at {", model, node),
		one("a window is sealed without its grace", "a window is sealed after its grace", windows, "if k.due = k.window.To.Add(p.limits.Grace); k.due", "if k.due = k.window.To; k.due", model, node, sim),
		one("usage is sealed after it is due", "what is due is sealed", plane+"seal.go", "if k.due > at {", "if k.due >= at {", model, node),
		one("usage is sealed while the clock is untrusted", "nothing is sealed while the clock is untrusted", "core/node/node.go", "if n.clock.Untrusted() || !n.readiness.AcceptsWrites() ||", "if !n.readiness.AcceptsWrites() ||", node, sim),
		one("late usage is in no correction", "a sealed slice is never rewritten", windows, "k.late, k.due = true,", "k.late, k.due = false,", model, node, sim),
		one("a slice does not name the one before", "slices form a chain", plane+"seal.go", "Previous: head.Head}", "Previous: Digest{}}", model, node, sim),
		one("a seq is used twice", "the seq of a stream has no gap", plane+"apply.go", "p.streams.Set(at, Stream{s.Seq, s.Digest})", "p.streams.Set(at, Stream{s.Seq - s.Seq/2, s.Digest})", model, node, sim),
		one("a sealed row stays open", "usage is counted once", plane+"apply.go", "\t\tp.dropRow(place)\n", "\t\tp.rows.Set(place, Count{})\n", model, sim),
		one("the sum of a row wraps", "a sum that does not fit is refused", decision, "return carry == 0", "return carry <= 1", model, node, sim),
		alone("one test gives a recorder unknown outcomes", one("metered usage is recorded again after an unknown outcome", "no request is counted twice", "adapters/metering/metering.go", "case ok && r.Problem == event.OutcomeUnknown:\n\t\tm.end(", "case ok && r.Problem == event.OutcomeUnknown && u == nil:\n\t\tm.end(", "./adapters/metering TestEachRequestIsCountedOnce$")),
		one("a rejected write is counted", "a request counts if it has an effect", "core/node/request.go", "return !isWallet || n.rec.Problem == event.None || in.Op == event.Batch && n.rec.Kind != record.Batched", "_ = in\n\treturn isWallet || !isWallet", "./core/flow TestEffectsAreCountedInTheirFrame$", "./cmd/macronode TestScripts/meter_requests$"),
		alone("one test counts commands of the step", one("usage without room is counted as recorded", "what has no room in the frame is counted by the meter", "core/accounting/request_usage.go", "if problem, _ := p.CheckMetered(at, t, u.Rows(), false); problem != event.None {\n\t\treturn false", "if problem, _ := p.CheckMetered(at, t, u.Rows(), false); problem != event.None {\n\t\treturn true", "./core/flow TestEffectsAreCountedInTheirFrame$")),
		one("a drain rejects the node's own commands", "a drain records the last requests", "core/node/request.go", "own.ByNode() && n.drain.Phase() == types.Draining", "own.ByNode() && n.drain.Phase() == types.Starting", "./core/accounting TestDrainTakesMeteredUsage$", "./cmd/macronode TestScripts/^meter_requests$"),
		one("a tenant has one row more", "a tenant's rows have a limit", decision, "p.limits.TenantRow - int(t.rows)}", "p.limits.TenantRow + 1 - int(t.rows)}", model, node, sim),
		one("rows have no limit of all tenants", "no table grows beyond its limit", decision, "{event.UsageRows, n.rows, p.rows.Room()}", "{event.UsageRows, n.rows, p.rows.Room() + n.rows}", model, node, sim),
		one("dimensions of a tenant keep out what the node meters", "metered requests are recorded whatever dimensions a tenant makes", "core/accounting/metered.go", "\tneed.tenantStreams = 0\n", "", model, "./core/accounting TestMeteredUsageNeedsNoDimension$"),
		one("streams have no limit of a tenant", "a tenant's streams have a limit", decision, "p.limits.TenantDim - int(t.streams)}", "p.limits.TenantDim + n.streams}", model, node, sim),
		one("events at the age limit are too old", "events are accepted for 35 days", decision, "case of < at.Add(-MaxAge):", "case of <= at.Add(-MaxAge):", model, node),
		one("a batch leaves a part of its events", "all events of a request are recorded, or none", decision, "if report := p.check(at, in, f, reply); reply.Problem == event.None {", "if report := p.check(at, in, f, reply); reply.Problem == event.None || len(in.Events) > 1 {", model, node, sim),
		one("a snapshot loses the head of a stream", "recovery makes the same state", plane+"dump.go", "\tp.streams.Set(at, s)\n", "\t_ = at\n", model, node, sim),
		one("a batch pays the whole line again", "the sum of all charges is the price of the line", bill, "c.due, _ = costs.Sub(c.Paid)", "c.due = costs", paid, "./chaos/explore TestSiteScopes/events_that_are_paid"),
		alone("one test has holds beside usage", one("held money pays for usage", "a batch that costs more than the available balance is rejected", bill, "available, _ := has.Sub(held)", "available, _ := has.Sub(types.Amount{})\n\t_ = held", paid)),
		alone("one test makes the second of two transfers fail", one("a rejected transfer leaves the other one", "usage and its payment are recorded together, or not at all", prepaid, "\t\t\tf.Undo()\n\t\t\treturn", "\t\t\tf.Commit()\n\t\t\treturn", "./core/flow TestRejectedTransferCountsNothing$")),
		one("the API gets no prepaid tenants", "the usage of a prepaid tenant is paid as it is recorded", "cmd/macronode/internal/settings/reload.go", ", Prepaid: prepaidTerms(c)}", "}", "./cmd/macronode/internal/settings TestSettingsOfEachKey$", "./cmd/macronode TestScripts/^prepaid$"),
		alone("no journal has such a slice", one("a slice of other rows fits", "a journal proves the sums of its slices", plane+"apply.go", "if _, c := p.rows.Row(place); c != s.Rows[i].Count {", "if _, c := p.rows.Row(place); c == (Count{}) {", slices)),
		one("arrears are no part of the credit", "who owes is not served", credit, "\tc.bill.addArrears(at)\n\tif problem := c.bill.price()", "\tif problem := c.bill.price()", later, script),
		one("a request in progress reserves nothing", "requests at the same time cannot use more than there is", credit, "\tprices.each(1, r.In, 0, u.inProgress.add)", "\tprices.each(0, 0, 0, u.inProgress.add)", later, reserved),
		one("requests that are being recorded are free", "requests at the same time cannot use more than there is", credit, "u.flushing, u.counted = u.counted, units{}", "u.counted = units{}", later, reserved),
		one("requests are recorded only if they can be paid", "what was served is recorded", requests, "\tp.payAvailable(at, in, f)\n", "\tif reply.Shortfall = b.shortfall(at, p.wallet); reply.Shortfall.Asset > 0 {\n\t\treply.Problem = event.PrepaidExceeded\n\t\treturn\n\t}\n\tp.payAvailable(at, in, f)\n", later, owes),
		one("a payment in part settles a line", "what a line has paid was transferred", bill, "\t\tif amount.Less(part) {\n\t\t\tpart = amount\n\t\t}\n", "", later, owes),
		alone("the other one is a script, which waits for minutes", one("a request in the frame of its effect owes nothing", "each request is paid", requests, "\tusage.RecordLines(t, u.terms.list, p.bill.changes(), f)\n", "", later)),
		alone("in the other tests a request comes", one("arrears wait for the next request", "what is due is paid when there is money", recorder, "\tm.payArrears(ctx)\n", "", "./adapters/metering TestArrearsArePaidWithoutRequests$")),
		alone("one test has a node that is busy", one("usage that is recorded later is free until then", "who owes is not served", recorder, "\tl.kept[u.Command.Tenant] = true\n", "", reserved)),
		alone("one test has clients that do not wait", one("a client that does not wait pays nothing", "what an upstream works for is used", "adapters/httpapi/metered.go", "if k.trace != nil && k.trace.EndedByClient() {", "if k.trace != nil && k.status != 0 && k.trace.EndedByClient() && k.code == \"\" {", "./adapters/httpapi TestRequestsThatClientsEndCount$")),
		alone("the other test reads to the end", one("a download of S3 that is ended early is an error", "what a client got is used", "adapters/s3/handler.go", "if !errors.Is(err, errLeft) {", "if e.Code != \"\" {", "./adapters/s3 TestClientThatLeavesIsNoError$")),
		alone("one test reads what was sent", one("a request counts as sent before it is", "what no upstream got is not used", "adapters/proxy/upstream_trace.go", "return c.sent.Load() && slices", "return slices", "./adapters/proxy TestEndedByClient$")),
		one("a wallet is served only with credit", "a tenant without money can see that, and pay", "adapters/httpapi/httpapi.go", "\t\treturn serve(k)\n\t}\n\ta.echo.Add", "\t\tif err := k.reserveUsage(); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn serve(k)\n\t}\n\ta.echo.Add", "./adapters/httpapi TestPrepaidRequests$", script),
	}
}

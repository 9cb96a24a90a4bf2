package mutants

// usage are faults of the accounting plane.
func usage() []Mutant {
	const (
		plane    = "core/accounting/"
		decision = plane + "decide.go"
		windows  = plane + "window.go"
		model    = "./core/accounting TestUsageAgreesWithModel$"
		node     = "./core/accounting TestNodeCountsEachEventOnce$"
		slices   = "./core/accounting TestFitsRejectsOtherContent$"
		asOf     = "./adapters/httpapi TestUsageAsOf$"
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
		one("an answer is given before all of it is sealed", "the same question as of a time has the same answer for ever", plane+"query.go", "return min(at, k.due-1)", "return max(at, k.due)", model, asOf, "./core/accounting TestAsOfLimit$", sim),
		one("a slice that was due later is in the answer", "the same question as of a time has the same answer for ever", plane+"query.go", "s.Due <= r.AsOf)", "s.Due <= r.AsOf+1)", model, asOf, "./adapters/index TestUsageIsListed$"),
		one("the begin of 1970 is no time", "a query begins at any time", "adapters/httpapi/balance.go", "t.UnixMilli() < 0 {", "t.UnixMilli() <= 0 {", "./adapters/httpapi TestUsageQueries$", "./cmd/macronode TestScripts/^charge$"),
		one("the begin of 1970 means now", "a time is never taken for its absence", "adapters/httpapi/usage.go", "err == nil && *to == 0 {", "err == nil && *to < 0 {", "./adapters/httpapi TestUsageQueries$", "./adapters/httpapi TestBalanceAt$"),
		one("late usage is in no correction", "a sealed slice is never rewritten", windows, "k.late, k.due = true,", "k.late, k.due = false,", model, node, sim),
		one("a slice does not name the one before", "slices form a chain", plane+"seal.go", "Previous: head.Head}", "Previous: Digest{}}", model, node, sim),
		one("a seq is used twice", "the seq of a stream has no gap", plane+"apply.go", "p.streams.Set(at, Stream{s.Seq, s.Digest})", "p.streams.Set(at, Stream{s.Seq - s.Seq/2, s.Digest})", model, node, sim),
		one("a sealed row stays open", "usage is counted once", plane+"apply.go", "\t\tp.dropRow(place)\n", "\t\tp.rows.Set(place, Count{})\n", model, sim),
		one("the sum of a row wraps", "a sum that does not fit is refused", decision, "return carry == 0", "return carry <= 1", model, node, sim),
		one("metered usage is recorded again after an unknown outcome", "no request is counted twice", "adapters/metering/metering.go", "case ok && r.Problem == event.OutcomeUnknown:\n\t\tupto", "case ok && r.Problem == event.OutcomeUnknown && u == nil:\n\t\tupto", "./adapters/metering TestEachRequestIsCountedOnce$", sim),
		one("a rejected write is counted", "a request counts if it has an effect", "core/node/request.go", "return !isWallet || n.rec.Problem == event.None || in.Op == event.Batch && n.rec.Kind != record.Batched", "_ = in\n\treturn isWallet || !isWallet", "./core/flow TestEffectsAreCountedInTheirFrame$", "./cmd/macronode TestScripts/meter_requests$"),
		alone("one test counts commands of the step", one("usage without room is counted as recorded", "what has no room in the frame is counted by the meter", "core/accounting/request_usage.go", "if problem, _ := p.CheckMetered(at, t, u.Rows(), false); problem != event.None {\n\t\treturn false", "if problem, _ := p.CheckMetered(at, t, u.Rows(), false); problem != event.None {\n\t\treturn true", "./core/flow TestEffectsAreCountedInTheirFrame$")),
		one("a drain rejects the node's own commands", "a drain records the last requests", "core/node/request.go", "isByNode(c) && n.drain.Phase() == types.Draining", "isByNode(c) && n.drain.Phase() == types.Starting", "./core/accounting TestDrainTakesMeteredUsage$", "./cmd/macronode TestScripts/^meter_requests$"),
		one("a tenant has one row more", "a tenant's rows have a limit", decision, "share.Left(ofTenant, int(t.rows), left), ofTenant", "share.Left(ofTenant, int(t.rows), left) + 1, ofTenant", model, node, sim),
		one("events take the rows of metered requests", "metered requests are recorded whatever events there are", decision, "need := needs{ofEvents: true}", "need := needs{}", model, node, sim),
		one("rows have no limit of all tenants", "no table grows beyond its limit", decision, "{event.UsageRows, n.rows, left, false}", "{event.UsageRows, n.rows, left + n.rows, false}", model, node, sim),
		one("dimensions of a tenant keep out what the node meters", "metered requests are recorded whatever dimensions a tenant makes", "core/accounting/metered.go", "\tneed.tenantStreams = 0\n", "", model, "./core/accounting TestMeteredUsageNeedsNoDimension$"),
		one("streams have no limit of a tenant", "a tenant's streams have a limit", decision, "p.limits.TenantDim - int(t.streams), false}", "p.limits.TenantDim + n.streams, false}", model, node, sim),
		one("events at the age limit are too old", "events are accepted for 35 days", decision, "case of < at.Add(-MaxAge):", "case of <= at.Add(-MaxAge):", model, node),
		one("a batch leaves a part of its events", "all events of a request are recorded, or none", decision, "if report := p.check(at, in, f, reply); reply.Problem == event.None {", "if report := p.check(at, in, f, reply); reply.Problem == event.None || len(in.Events) > 1 {", model, node, sim),
		one("a snapshot loses the head of a stream", "recovery makes the same state", plane+"dump.go", "\tp.streams.Set(at, s)\n", "\t_ = at\n", model, node, sim),
		alone("no journal has such a slice", one("a slice of other rows fits", "a journal proves the sums of its slices", plane+"apply.go", "if _, c := p.rows.Row(place); c != s.Rows[i].Count {", "if _, c := p.rows.Row(place); c == (Count{}) {", slices)),
		alone("one test has clients that do not wait", one("a client that does not wait pays nothing", "what an upstream works for is used", "adapters/httpapi/metered.go", "if k.trace != nil && k.trace.EndedByClient() {", "if k.trace != nil && k.status != 0 && k.trace.EndedByClient() && k.code == \"\" {", "./adapters/httpapi TestRequestsThatClientsEndCount$")),
		alone("one test reads what was sent", one("a request counts as sent before it is", "what no upstream got is not used", "adapters/proxy/upstream_trace.go", "return c.sent.Load() && slices", "return slices", "./adapters/proxy TestEndedByClient$")),
		alone("one test has a quota that ends a body", one("a body that a quota rejects was ended by its client", "what a quota rejects is not used", "adapters/proxy/outcome.go", "case t.body.isOverQuota.Load():", "case t.body == nil:", "./adapters/proxy TestQuotaEndsBody$")),
		alone("one test reads by both readers", one("a plain event has an attribute twice", "both readers of events agree", "adapters/httpapi/plain_event.go", "\t\t\tcase seen&(1<<i) != 0:\n\t\t\t\treturn false\n", "", "./adapters/httpapi TestUsualEventsArePlain$")),
		one("a place in a heap goes down too far", "what is due first is sealed first", "core/table/heap.go", "for i > top {", "for i > top+1 {", "./core/table TestHeap", model),
		one("a row of the meter is not kept", "each request is counted", plane+"meter.go", "\t\tm.rows[k] = sum\n", "", "./core/accounting TestMeter", "./adapters/metering TestEachRequestIsCountedOnce$"),
	}
}

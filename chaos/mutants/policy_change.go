package mutants

// renewals are bugs of a change of the admission policy.
func renewals() []Mutant {
	const (
		counts, admissionTest, turns, upstreamFile, all = "core/gateway/quota/policy.go", "core/gateway/admission/renew.go", "core/gateway/drr/renew.go", "core/gateway/upstream/policy.go", "core/node/policy.go"

		played                                          = "./core/gateway/policycheck TestAcceptsValidChanges$"
		reported                                        = "./core/node TestTranscripts/change$"
		given                                           = "./core/gateway/quota TestGiveBackSkipsRulesChangedSince$"
		quotaModel, countsTranscript                    = "./core/gateway/quota TestMatchesModel$", "./core/gateway/quota TestChangeTranscript$"
		admissionModel, drrModel, upstreamModel, bounds = "./core/gateway/admission TestMatchesModel$", "./core/gateway/drr TestMatchesModel$", "./core/gateway/upstream TestMatchesModel$", "./core/gateway/quota TestChangeKeepsTheBound$"
	)
	return []Mutant{
		alone("one test counts simulations", one("each reload simulates the policy", "a reload that leaves the policy is fast", "cmd/macronode/internal/server/reload.go", "err == nil && !samePolicy(&is.Policy, &next.Policy) {", "err == nil && len(a.Changed) > 0 {", "./cmd/macronode/internal/server TestOnlyChangedPolicyIsChecked$")),
		alone("the policy is valid before, so one test shows it", one("policy is applied without a check", "a policy that admits no caller is rejected", "cmd/macronode/internal/server/reload.go", "\n\t\ta.Partial, err = r.checkPolicy(is, next)\n\t", "\t\t_ = next\n", "./cmd/macronode/internal/server TestFailedPolicyCheckRejectsChange$")),
		one("change resets used units", "used units stay used", counts, "used = was.carry(is, was.used(end, c.last))", "_, _ = was, end", quotaModel, countsTranscript, bounds, played, reported, sim),
		one("change keeps time instead of units", "used units stay used", counts, "used = was.carry(is, was.used(end, c.last))", "used = smaller(was.used(end, c.last), is.most)", quotaModel, countsTranscript, bounds, reported, sim),
		one("change turns used units into debt", "used units are cut to the new burst", counts, "smaller(g.exchange(to, had), to.full)", "g.exchange(to, had)", quotaModel, countsTranscript, reported, sim),
		one("change drops debt", "owed units stay owed", counts, "owed := used.minus(had, g.Rate)", "owed := nanos{}", quotaModel, countsTranscript, sim),
		one("change rounds used units down", "fractions are rounded up", counts, "over(uint64(g.Every)); rest > 0 {", "over(uint64(g.Every)); rest > 0 && false {", quotaModel, countsTranscript),
		one("fresh rule keeps its counters", "a fresh rule has no counters", counts, " && fresh>>i&1 == 0", "", quotaModel, countsTranscript, "./core/gateway/quota TestChangeToSameRulesChangesNothing$", sim),
		one("change moves a counter to another rule", "kong-12003", counts, "to.set(place, c.is[rule].slot, end)", "to.set(place, 0*c.is[rule].slot, end)", quotaModel, countsTranscript),
		one("change drops the rows", "a subject with a row loses no counts", counts, "*of = c.move(*of, widths[scope], scope)", "*of = q.fresh(scope, widths[scope])", quotaModel, countsTranscript, bounds, played, sim),
		one("change resets the shared counter", "used units stay used", counts, "q.common[i] = c.carry(i, q.common[i])", "q.common[i] = nanos{}", quotaModel, countsTranscript, sim),

		one("give back to a rule that did not charge", "a charge is given back to rules that were kept", "core/gateway/quota/charge.go", "min(bytes, t.peer), t.new(bytes)", "min(bytes, t.peer), bytes", quotaModel, given),
		one("charge ignores the change", "a charge is given back to rules that were kept", counts, "t.since|others, t.had, t.paced", "t.since|others&0, t.had, t.paced", quotaModel, given),
		one("held bytes of an earlier rule block others", "held bytes block no other request", "core/gateway/quota/held.go", "&& t.new(t.held) < t.held {", "{", quotaModel, "./core/node TestTranscripts/stream-change$"),
		one("held bytes are free after a change", "a new rule did not charge earlier bytes", "core/gateway/quota/held.go", "t.since>>i&1 == 1 && t.new(t.held) < t.held {", "false {", quotaModel, "./core/node TestTranscripts/stream-change$"),
		one("charge after a change is not given back", "a later charge is given back to all rules", "core/gateway/quota/charge.go", "back = min(back, late)", "back = 0", quotaModel, "./core/gateway/quota TestGiveBackAfterChange$", "./core/node TestTranscripts/stream-change$"),
		one("charge of the instance after a change is not given back", "a later charge is given back to all rules", "core/gateway/quota/charge.go", "\t\tq.giveBackInstance(t.paced-max(bytes, t.oldest), q.bytes&q.paces&t.since)\n", "", quotaModel, "./core/gateway/quota TestGiveBackAfterChange$"),
		one("early charge is given back as a later one", "a charge is given back to rules that were kept", counts, "t.since|others, t.had, t.paced", "t.since|others, t.old, t.oldest", quotaModel, "./core/gateway/quota TestGiveBackAfterChange$"),
		alone("the order of parts is in the model of the queue, not in that of admission", one("queue of parts keeps the old quantum", "parts take turns by the new quantum", admissionTest, "a.line.Renew(lineLimits(&l))", "_ = l", "./core/gateway/admission TestRenewAppliesToStreams$")),

		one("change loses permits", "A1: a permit is returned once", "core/gateway/drr/renew.go", "	q.most.shares(q)\n", "", "./core/gateway/drr TestMatchesModel$", admissionModel, played, reported),
		one("change doubles permits", "A1: no new permit until there is room", "core/gateway/drr/renew.go", "		q.repark(c)\n", "		c.out = 0\n		q.repark(c)\n", "./core/gateway/drr TestMatchesModel$", admissionModel, played, reported),
		one("change drops the requests of a route", "A4: running requests count", admissionTest, "\t\t\ta.routes.add(l.Routes, r.route, r.flow)\n", "", admissionModel, reported),
		one("change counts the requests of a route twice", "A4", "core/gateway/admission/route.go", "\tclear(r.all)\n", "", admissionModel, sim),
		one("one caller takes all requests of a route", "max_inflight_per_flow", "core/gateway/admission/route.go", "share.Left(limits[route].PerFlow, has, room) <= 0", "false", "./core/gateway/admission TestRoutesLeaveRoom$", admissionModel, sim),

		one("change keeps the old weights", "turns follow the new weights", turns, "q.limits, q.most = l, l.bounds()", "l.Weights = q.limits.Weights\n\tq.limits, q.most = l, l.bounds()", drrModel, admissionModel, played, reported),
		one("change keeps the old limits", "F2", turns, "q.limits, q.most = l, l.bounds()", "l.Queue, l.Class, l.Flow = q.limits.Queue, q.limits.Class, q.limits.Flow\n\tq.limits, q.most = l, l.bounds()", drrModel, admissionModel, reported),
		one("change keeps a deficit above the new quanta", "F4: at most the new quanta are saved", turns, "c.deficit = min(c.deficit, turns*l.Quantum)", "_ = turns", drrModel, admissionModel),
		one("item costs more than a quantum", "an item costs at most a quantum", turns, "it.cost = min(it.cost, l.Quantum)", "_ = it", drrModel, "./core/gateway/drr"),

		alone("nothing else depends on it", one("open circuit is not reported", "an open circuit degrades the node", "core/node/node.go", "n.upstreams.OpenCircuits() != [event.NumCallers]uint64{}", "false", "./core/node TestOpenCircuitDegrades$")),
		alone("nothing else depends on it", one("failed reload is not reported", "a failed reload degrades the node", "core/node/node.go", "n.readiness.SetDegraded(types.ConfigRejected, in.Failed)", "_ = in", "./core/node TestTranscripts/disk$")),

		one("request of an unserved class waits", "F5: it is rejected at once", all, "\t\tif !ok {\n\t\t\tbreak", "\t\tif !ok || true {\n\t\t\tbreak", played, reported),
		one("evicted request gets no decision", "every arrival gets one decision", all, "n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectClassDisabled, Waited: waited}, out)", "_, _ = t, waited", played, reported),
		one("evicted request stays charged", "a rejected request costs nothing", all, "\t\tn.quota.Undo(now, t.Slot())\n", "", played, "./core/node TestEveryAdmitGetsDecision$"),
		one("change does not grant free permits", "N6: a grantable permit is granted", all, "\tn.grantPermits(now, out)\n}", "}", played, reported),
		one("invalid policy is applied", "an invalid policy changes nothing", all, "if n.config.CheckPolicy(&in.Policy) != nil {", "if false {", "./core/node TestCheckPolicy$", reported),

		one("endpoint stays unhealthy without checks", "without health checks no endpoint is unhealthy", upstreamFile, "e.unhealthy, e.contraryChecks = false, 0", "_ = e", upstreamModel, played),
		one("fresh endpoint keeps its history", "a fresh endpoint has no state", upstreamFile, "c.endpointGone = c.endpointGone || c.phase != waitingToRetry && gone[c.upstream]>>c.endpoint&1 == 1", "_ = c", upstreamModel, played, reported),
		one("retry goes to another service", "a replaced upstream retries nothing", upstreamFile, "c.noMoreAttempts = c.noMoreAttempts || gone[c.upstream] == 1<<MaxEndpoints-1", "_ = c", upstreamModel, reported),
		one("kept endpoint loses its state", "an endpoint that stays keeps its state", upstreamFile, "if stay>>n&1 == 0 {", "if true {", upstreamModel, "./core/gateway/upstream TestChangeToSameRulesChangesNothing$"),
		one("new upstream keeps the old breaker", "a replaced upstream starts anew", upstreamFile, "b.enter(event.CircuitClosed)\n\t\t\tb.timesOpened, g.budget.saved = 0, r.RetryPerSecond*retryCost", "g.budget.saved = r.RetryPerSecond * retryCost", upstreamModel, played),
		one("half-open breaker exceeds its new limit", "U4", upstreamFile, "(b.state == event.CircuitHalfOpen || b.openForOne) && (b.inFlight > r.HalfOpenInFlight || b.successes >= r.HalfOpenSuccesses)", "false", "./core/gateway/upstream TestSmallerHalfOpenLimitRestartsProbing$", played),
		one("retry budget exceeds its new limit", "U3", upstreamFile, "g.budget.saved = min(g.budget.saved, r.RetryBurst*retryCost)", "_ = retryCost", upstreamModel, "./core/gateway/upstream"),

		alone("numbers belong to the server only", one("freed number is reused at once", "a number is reused as late as possible", "cmd/macronode/internal/settings/slots.go", "numbers[place], to.next = n, (n+1)%most", "numbers[place] = n", "./cmd/macronode/internal/settings TestFreedSlotsAreReusedLast$")),
		one("kept entry gets a new number", "an entry that stays keeps its number", "cmd/macronode/internal/settings/slots.go", "ok && name != \"\" {", "ok && name == \"\" {", "./cmd/macronode/internal/settings TestSlots$", "./cmd/macronode/internal/settings TestRenumber$"),
		alone("only the number of a quota identifies its counters", one("quota takes the counters of another", "used units belong to one quota", "cmd/macronode/internal/settings/numbering.go", "return fmt.Sprint(cmp.Or(q.Name, \"-\"), q.Scope, q.Unit(), q.Route)", "return cmp.Or(q.Name, \"-\")", "./cmd/macronode/internal/settings TestRenumber$")),
		one("change that needs a restart is applied", "a change is applied completely or not at all", "cmd/macronode/internal/settings/diff.go", "if !d.Hot {", "if false {", "./cmd/macronode/internal/cli TestPraisonai5144$", "./cmd/macronode/internal/cli TestAgentgateway3035$"),
		alone("one test changes a node that starts", one("starting node is changed", "nothing changes before the node is ready", "cmd/macronode/internal/server/reload.go", "if ctx == nil || ctx.Err() != nil {", "if ctx != nil && ctx.Err() != nil {", "./cmd/macronode/internal/server TestNoReloadBeforeReady$")),
		alone("one test sends a request after a change", one("listener ignores the change", "the shown configuration is applied", "cmd/macronode/internal/server/reload.go", "r.api.Load().SetSnapshot(next.Face)", "_ = next.Face", "./cmd/macronode/internal/cli TestReload$")),
		one("applied change is not shown", "/config/effective is what is applied: agentgateway-3035", "cmd/macronode/internal/server/reload.go", "r.applied.Store(next)", "_ = &r.applied", "./cmd/macronode/internal/cli TestReload$", "./cmd/macronode/internal/cli TestAgentgateway3035$"),
	}
}

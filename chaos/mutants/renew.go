package mutants

// renewals are bugs of a change of the gate.
func renewals() []Mutant {
	const (
		counts, house, turns, beyond, all = "core/gateway/quota/policy.go", "core/gateway/admission/renew.go", "core/gateway/drr/renew.go", "core/gateway/upstream/policy.go", "core/node/policy.go"

		played                                   = "./core/gateway/policycheck TestGood$"
		told                                     = "./core/node TestTranscripts/change$"
		given                                    = "./core/gateway/quota TestGivenBackOverAChange$"
		countsTwin, countsStory                  = "./core/gateway/quota TestAgrees$", "./core/gateway/quota TestChange$"
		houseTwin, turnsTwin, beyondTwin, bounds = "./core/gateway/admission TestAgrees$", "./core/gateway/drr TestAgrees$", "./core/gateway/upstream TestAgrees$", "./core/gateway/quota TestBoundsOfAChange$"
	)
	return []Mutant{
		alone("what is read is found well before, so one test alone says otherwise", one("changed without a rehearsal", "what would let nobody in is not given to the node", "cmd/macronode/reload.go", "\t\ta.Partial, err = l.rehearsed(is, next)\n", "\t\t_ = next\n", "./cmd/macronode TestWhatIsRehearsedInVain$")),
		one("used, and forgotten at a change", "what was used stays used", counts, "used = was.carry(is, was.used(end, c.last))", "_, _ = was, end", countsTwin, countsStory, bounds, played, told, sim),
		one("kept in time, not in units", "what was used stays used, in units", counts, "used = was.carry(is, was.used(end, c.last))", "used = smaller(was.used(end, c.last), is.most)", countsTwin, countsStory, bounds, told, sim),
		one("owed for what was let have", "of what was used no more is believed than the new burst", counts, "smaller(g.exchange(to, had), to.full)", "g.exchange(to, had)", countsTwin, countsStory, told, sim),
		one("debt forgiven at a change", "what was owed stays owed", counts, "owed := used.minus(had, g.Rate)", "owed := nanos{}", countsTwin, countsStory, sim),
		one("used a part less at a change", "what does not come out even is used to the next part", counts, "over(uint64(g.Every)); rest > 0 {", "over(uint64(g.Every)); rest > 0 && false {", countsTwin, countsStory),
		one("another, and counted on", "what is fresh has counted nothing", counts, " && fresh>>i&1 == 0", "", countsTwin, countsStory, "./core/gateway/quota TestRenewOfNothing$", sim),
		one("another's counter behind a change", "kong-12003", counts, "to.set(place, c.is[rule].slot, end)", "to.set(place, 0*c.is[rule].slot, end)", countsTwin, countsStory),
		one("rows left behind", "nobody who has a row loses what it counts", counts, "*of = c.move(*of, widths[scope], scope)", "*of = q.fresh(scope, widths[scope])", countsTwin, countsStory, bounds, played, sim),
		one("what many share is forgotten at a change", "what was used stays used", counts, "q.common[i] = c.carry(i, q.common[i])", "q.common[i] = nanos{}", countsTwin, countsStory, sim),

		one("given back by who never had it", "what was charged before a change is given back to rules that were kept", "core/gateway/quota/charge.go", "min(bytes, t.peer), t.new(bytes)", "min(bytes, t.peer), bytes", countsTwin, given),
		one("tabs know of no change", "the same", counts, "t.since|others, t.had, t.paced", "t.since|others&0, t.had, t.paced", countsTwin, given),
		one("held by who came before a change, and keeps others out", "who is held keeps nobody out who comes", "core/gateway/quota/held.go", "&& t.new(t.held) < t.held {", "{", countsTwin, "./core/node TestTranscripts/stream-change$"),
		one("held before a change, and free behind it", "what was charged before a change, the new rule has not charged", "core/gateway/quota/held.go", "t.since>>i&1 == 1 && t.new(t.held) < t.held {", "false {", countsTwin, "./core/node TestTranscripts/stream-change$"),
		one("charged behind a change, and kept", "what it is charged from now on is given back to all", "core/gateway/quota/charge.go", "back = min(back, late)", "back = 0", countsTwin, "./core/gateway/quota TestGivenBackBehindAChange$", "./core/node TestTranscripts/stream-change$"),
		one("drawn behind a change, and kept", "the same, of the instance", "core/gateway/quota/charge.go", "\t\tq.slow(t.paced-max(bytes, t.oldest), q.bytes&q.paces&t.since)\n", "", countsTwin, "./core/gateway/quota TestGivenBackBehindAChange$"),
		one("old, and given back as new", "what was charged before a change is given back to rules that were kept alone", counts, "t.since|others, t.had, t.paced", "t.since|others, t.old, t.oldest", countsTwin, "./core/gateway/quota TestGivenBackBehindAChange$"),
		alone("whose turn it is in a line the house's twin leaves to that of queues", one("a line of old turns", "parts of bodies take turns by the new quantum", house, "a.line.Renew(lineLimits(&l))", "_ = l", "./core/gateway/admission TestRenewOfTheLine$")),

		one("permits lost at a change", "A1: given back exactly once", "core/gateway/drr/renew.go", "	q.most.shares(q)\n", "", "./core/gateway/drr TestAgrees$", houseTwin, played, told),
		one("permits doubled at a change", "A1: nobody new goes in until there is room", "core/gateway/drr/renew.go", "		q.repark(c)\n", "		c.out = 0\n		q.repark(c)\n", "./core/gateway/drr TestAgrees$", houseTwin, played, told),
		one("a route's guests are forgotten", "A4: those who are there count", house, "\t\t\ta.routes[r.route]++\n", "", houseTwin, told),
		one("a route's guests twice", "A4", house, "\tclear(a.routes)\n", "", houseTwin, told),

		one("old weights still used", "turns go on by the new weights", turns, "q.limits, q.most = l, l.bounds()", "l.Weights = q.limits.Weights\n\tq.limits, q.most = l, l.bounds()", turnsTwin, houseTwin, played, told),
		one("old bounds still used", "F2", turns, "q.limits, q.most = l, l.bounds()", "l.Queue, l.Class, l.Flow = q.limits.Queue, q.limits.Class, q.limits.Flow\n\tq.limits, q.most = l, l.bounds()", turnsTwin, houseTwin, told),
		one("saved by what is no more", "F4: nobody has more saved than the new quanta", turns, "c.deficit = min(c.deficit, turns*l.Quantum)", "_ = turns", turnsTwin, houseTwin),
		one("dearer than a quantum", "an item costs a quantum at most", turns, "it.cost = min(it.cost, l.Quantum)", "_ = it", turnsTwin, "./core/gateway/drr"),

		alone("nothing else follows from it", one("an open breaker is told to nobody", "degraded by an open breaker", "core/node/node.go", "n.upstreams.OpenCircuits() != 0", "false", "./core/node TestOpenCircuitDegrades$")),
		alone("nothing else follows from it", one("a failed reload is told to nobody", "degraded by a failed reload", "core/node/node.go", "n.readiness.SetDegraded(types.ConfigRejected, in.Failed)", "_ = in", "./core/node TestTranscripts/disk$")),

		one("waits, and is not served", "F5: who waits is told so, at once", all, "\t\tif !ok {\n\t\t\tbreak", "\t\tif !ok || true {\n\t\t\tbreak", played, told),
		one("taken out, and never told", "each arrival is told one thing, once", all, "n.rejectAdmission(event.Decision{Ticket: t, Reason: event.RejectClassDisabled, Waited: waited}, out)", "_, _ = t, waited", played, told),
		one("never let in, and charged", "who is refused is given back what he was charged", all, "\t\tn.quota.Undo(now, t.Slot())\n", "", played, "./core/node TestEveryAdmitGetsDecision$"),
		one("room, and nobody goes", "N6: who may go now goes", all, "\tn.grantPermits(now, out)\n}", "}", played, told),
		one("taken whatever it is", "what does not fit changes nothing", all, "if n.config.CheckPolicy(&in.Policy) != nil {", "if false {", "./core/node TestCheckPolicy$", told),

		one("sick for ever", "where nobody checks none is sick", beyond, "e.unhealthy, e.contraryChecks = false, 0", "_ = e", beyondTwin, played),
		one("another endpoint's past", "of one that is fresh nothing is known", beyond, "c.endpointGone = c.endpointGone || c.phase != waitingToRetry && gone[c.upstream]>>c.endpoint&1 == 1", "_ = c", beyondTwin, played, told),
		one("sent on to another service", "nothing that was with an upstream is tried again where none of its endpoints stays", beyond, "c.noMoreAttempts = c.noMoreAttempts || gone[c.upstream] == 1<<MaxEndpoints-1", "_ = c", beyondTwin, told),
		one("well-known, and forgotten", "an endpoint that stays keeps what is known of it", beyond, "if stay>>n&1 == 0 {", "if true {", beyondTwin, "./core/gateway/upstream TestRenewOfNothing$"),
		one("a breaker of others", "an upstream of which no endpoint stays begins anew", beyond, "b.enter(event.CircuitClosed)\n\t\tb.timesOpened, u.budget.saved = 0, r.RetryPerSecond*retryCost", "u.budget.saved = r.RetryPerSecond * retryCost", beyondTwin, played),
		one("looked at by more than may", "U4", beyond, "b.state == event.CircuitHalfOpen && (b.inFlight > r.HalfOpenInFlight || b.successes >= r.HalfOpenSuccesses)", "false", "./core/gateway/upstream TestRenewOfALook$", played),
		one("more saved than may be", "U3", beyond, "u.budget.saved = min(u.budget.saved, r.RetryBurst*retryCost)", "_ = retryCost", beyondTwin, "./core/gateway/upstream"),

		alone("numbers are the shell's alone", one("number that means another at once", "a number is given again as late as can be", "cmd/macronode/slots.go", "numbers[place], to.next = n, (n+1)%most", "numbers[place] = n", "./cmd/macronode TestSlotsAreGivenLate$")),
		one("number that is given anew", "who stays keeps his number", "cmd/macronode/slots.go", "ok && name != \"\" {", "ok && name == \"\" {", "./cmd/macronode TestSlots$", "./cmd/macronode TestRenumber$"),
		alone("what a quota counts is a number's", one("quota that is another's", "what was used of a quota stays used, of no other", "cmd/macronode/numbering.go", "return fmt.Sprint(cmp.Or(q.Name, \"-\"), q.Scope, q.Unit(), q.Route)", "return cmp.Or(q.Name, \"-\")", "./cmd/macronode TestRenumber$")),
		one("change that waits for a start, and is made", "a change is applied whole or not at all", "cmd/macronode/reload.go", "if !d.Hot {", "if false {", "./cmd/macronode TestPraisonai5144$", "./cmd/macronode TestAgentgateway3035$"),
		alone("one test asks a node that starts", one("change of a node that starts", "nothing is changed before the node is ready", "cmd/macronode/reload.go", "if ctx == nil || ctx.Err() != nil {", "if ctx != nil && ctx.Err() != nil {", "./cmd/macronode TestNoChangeBeforeItIsReady$")),
		alone("one test asks behind a change", one("change that the listener does not see", "what is applied is shown", "cmd/macronode/reload.go", "l.api.Load().Change(next.face)", "_ = next.face", "./cmd/macronode TestReload$")),
		one("change that is made, and not said", "/config/effective is what is applied: agentgateway-3035", "cmd/macronode/reload.go", "l.edition.Store(next)", "_ = &l.edition", "./cmd/macronode TestReload$", "./cmd/macronode TestAgentgateway3035$"),
	}
}

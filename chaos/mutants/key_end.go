package mutants

// endedKeys are bugs of what a key still runs when it is revoked or expires.
func endedKeys() []Mutant {
	const (
		end, law  = "core/node/key_end.go", "an ended key has no permit"
		lost      = "adapters/httpapi/lost_permit.go"
		model     = "./core/node TestEndedKeysHaveNoPermit$"
		script    = "./core/node TestTranscripts/key-end$"
		steps     = "./chaos/trace TestEveryStepIsPermitted$"
		product   = "./cmd/macronode/internal/cli TestEndedKeyEndsItsRequests$"
		delivered = "./adapters/loop TestEndedKeyReachesHolder$"
		admission = "./core/gateway/admission TestMatchesModel$"
	)
	return []Mutant{
		one("requests of a revoked key go on", law, "core/node/keys.go", "		n.endRequests(now.Mono, at, out)\n	}\n	n.reply", "	}\n	n.reply", model, script, steps, product),
		alone("the other checks permit a refusal", one("a full disk stops revocations", "a key is revoked on a full disk", "core/node/keys.go", "!n.readiness.AcceptsRevocations()", "!n.readiness.AcceptsWrites()", "./core/node TestTranscripts/disk-keys$")),
		one("a revocation uses the last of the disk", "a key is revoked on a full disk", "core/lifecycle/readiness/readiness.go", "free < reserve/reserveParts", "false", "./core/lifecycle/readiness TestMatchesModel$", "./core/node TestTranscripts/disk-keys$", steps),
		one("requests of an expired key go on", law, "core/node/node.go", "if n.nextKeyEnd > 0 && n.nextKeyEnd <= at {", "if n.nextKeyEnd < 0 {", model, script, steps, product),
		one("nothing is due when a key expires", law, "core/node/due.go", "n.nextKeyEnd > 0)", "n.nextKeyEnd < 0)", model, script),
		one("an ended key is admitted until the read model has its end", law, "core/node/admission.go", "if in.Key != 0 && n.keyHasEnded(at, in.Key) {", "if in.Key != 0 && n.nextKeyEnd < 0 {", model, script, steps),
		alone("one test replaces the key of a request", one("requests of a replaced bootstrap key go on", law, "core/node/keys.go", "= n.state.LSN\n		n.endRequests(now.Mono, at, out)\n", "= n.state.LSN\n", "./core/node TestReplacedKeyHasNoPermit$")),
		alone("no random run ends the key of a request while a part of its body waits", one("a part of an ended request is neither granted nor rejected", law, end, "if e.Bytes > 0 {", "if e.Bytes > 0 && e.Queued {", script)),
		one("an ended key keeps its place in the queue", law, "core/gateway/admission/key_end.go", "		a.queues[r.facet].Drop(slot)\n", "", admission, model, script),
		alone("one test has such a request without a caller", one("a queued request of an ended key is not rejected", "a decision reaches its caller", "adapters/loop/admission.go", "case p.isAdmitted && !p.isLost &&", "case !p.isLost &&", delivered)),
		alone("one test ends the key of what an upstream has received", one("what an upstream does for an ended key is free", "a request that an upstream has received counts", "adapters/proxy/upstream_trace.go", ", RequestBodyError, KeyEnded:", ", RequestBodyError:", "./adapters/proxy TestEndedByClient$")),
		alone("one test ends the key of a request for parts", one("the end of a key is a timeout of an endpoint", "only what an endpoint did counts against it", "adapters/proxy/parts.go", "		case lostOf(ctx) != nil:\n			in.Outcome, part.failure = event.AttemptAbandoned, lostOf(ctx).reason()\n", "", "./adapters/proxy TestEndedByClient$")),
		one("an ended key cannot release what it has reserved", "a write that fails costs nothing", "core/node/request.go", "case !isByNode(c) && !p.Authorized(", "case !p.Authorized(", "./core/flow TestPaidWritesAgreeWithSums$", "./cmd/macronode/internal/cli TestEndedKeyReservesNothing$"),
		one("a wait outlives its key", "what an ended key runs is ended", lost, "	k.OnLostPermit(wait(cancel))\n", "", "./adapters/httpapi TestEndedKeyEndsWait$", product),
		alone("one node ends the key of what it decides", one("a decided write is cancelled when its key ends", "a decided write is answered", lost, "if !w.isBodyRead {", "if !w.isOver {", "./adapters/httpapi TestDecidedRequestIsAnswered$")),
	}
}

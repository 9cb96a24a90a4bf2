package mutants

// exports are faults of the export plane and of the scheduler of its sinks.
func exports() []Mutant {
	const (
		decision = "core/export/decide.go"
		send     = "core/lanes/send.go"
		node     = "./core/export TestNodeAgreesWithModel$"
		model    = "./core/lanes TestMachineAgreesWithModel$"
		explored = "./chaos/explore TestExportScopes$"
		ready    = "./cmd/macronode/internal/cli TestSinkBeginsBeforeNodeIsReady$"
		stuck    = "./cmd/macronode/internal/cli TestStreamBehindFullQuarantineWaits$"
	)
	return []Mutant{
		one("a settlement leaves a position out", "each position is settled once, in order", decision, "case settles && in.From != t.lane.cursor+1:", "case settles && in.From <= t.lane.cursor:", node, "./core/export TestLanes$"),
		one("a quarantined position keeps the cursor", "the lane goes on after a quarantined position", "core/export/apply.go", "\t\tp.move(t.place, c.position)\n\t\tp.addRow(", "\t\tp.addRow(", node, sim, explored),
		one("the next position is sent before the answer", "a lane has one send at a time", "core/lanes/tenant.go", "m.lanes[p].stage = sent\n", "m.lanes[p].stage = sent\n\tm.lanes[p].acked += m.lanes[p].acked % 2\n", model, sim, explored),
		one("a sink that is down fills the quarantine", "a retryable failure is repeated for ever", send, "\tcase Permanent:\n", "\tcase Permanent, Retryable:\n", model, "./core/lanes TestScheduler$", explored),
		one("what is being sent is settled", "what is settled is stored", "core/lanes/command.go", "From: l.cursor + 1, To: l.acked, Row: k.row > 0}", "From: l.cursor + 1, To: l.acked + uint64(l.stage/sent)*uint64(min(1, l.acked-l.cursor)), Row: k.row > 0}", model, explored),
		one("a lane does not report that the quarantine is full", "a stream that waits is shown", "core/lanes/command.go", "l.reason, l.status, l.blocked = 0, 0, true", "l.reason, l.status, l.blocked = 0, 0, false", model, "./core/lanes TestScheduler$"),
		alone("only there has the node a full quarantine", one("a sink with a stream behind a full quarantine is ok", "a sink that does not deliver is not ok", "cmd/macronode/internal/server/exports_admin.go", "case s.Blocked > 0:", "case s.Blocked > 0 && false:", stuck)),
		alone("the same", one("an item that the quarantine has no room for has no age", "the lag is that of the oldest item", "cmd/macronode/internal/server/exporter.go", "a.Kind == lanes.Quarantine && a.Answer == lanes.Done", "a.Kind == lanes.Quarantine", stuck)),
		alone("the same", one("a skipped item has an age", "the lag is that of the oldest item", "cmd/macronode/internal/server/exporter.go", "return !e.machine.Loaded(k.lane, k.row)", "return false", stuck)),
		one("one failing tenant takes the sink down", "a failing tenant stops no other", send, "m.open || m.several && m.failures", "m.open || m.failures", model, "./core/lanes TestFailingTenantStopsNoOther$"),
		one("a tenant takes all deliveries of a sink", "a tenant that hangs stops no other", "core/lanes/tenant.go", "return share.MayGrow(int(m.weightOf(at)), has, m.limits.Inflight-m.inflight)", "return share.MayGrow(int(m.weightOf(at)), 0, m.limits.Inflight-m.inflight)", model, "./core/lanes TestHangingTenantStopsNoOther$"),
		one("a tenant that leaves room has no weight", "the deliveries of a sink follow the weights", "core/lanes/tenant.go", "share.MayGrow(int(m.weightOf(at)), has", "share.MayGrow(1, has", "./core/lanes TestScheduler$", "./core/lanes TestWeightsHoldWhileSendsRun$"),
		one("a tenant at the front of the ring keeps others from sending", "a tenant that hangs stops no other", "core/lanes/tenant.go", "next > 0; next = m.tenants[next-1].next {\n\t\tif m.mayGrow(next - 1) {", "next > 0; next = 0 {\n\t\tif m.mayGrow(next - 1) {", model, "./core/lanes TestHangingTenantStopsNoOther$"),
		alone("one test has a sink with one tenant", one("the only tenant of a sink leaves room", "the only tenant of a sink gets all deliveries", "cmd/macronode/internal/settings/exports.go", "\t\tl.Tenant = l.Inflight\n", "", "./cmd/macronode/internal/settings TestTenantLeavesRoomInSink$")),
		one("a sink with lanes begins again", "a sink that was seen before gets all items", "core/export/sinks.go", "in.Now && !p.hasLane(in.Sink)", "in.Now", node, "./core/export TestLanes$"),
		one("a command of the start is not decided", "a sink begins in the frame of the start", "core/node/node.go", "range in.Commands {", "range in.Commands[:0] {", node, ready),
		alone("only there is an item acknowledged at once", one("a sink begins after the node is ready", "a sink gets all items that are acknowledged after the node is ready", "cmd/macronode/internal/server/serve.go", "Commands: s.exports.begins()", "Commands: s.exports.begins()[:0]", ready)),
		alone("the same", one("a sink begins after the reload is answered", "a sink gets all items that are acknowledged after the reload that adds it", "cmd/macronode/internal/server/reload.go", "r.exports.record(r.nodeCtx, sinks)", "", "./cmd/macronode/internal/cli TestSinkBeginsBeforeReloadIsAnswered$")),
		one("a lane begins at the first item", "what a sink does not get is in the record of its lane", "core/export/apply.go", "p.addLane(&l, after)", "p.addLane(&l, min(after, 0))", node, "./core/export TestLanes$"),
		alone("only there are there more streams than lanes", one("a stream that waits for a lane is not shown", "a sink that does not deliver is not ok", "cmd/macronode/internal/server/exporter.go", "\te.waitForRoom(reason)\n", "\t_ = reason\n", "./cmd/macronode/internal/cli TestFullTenantStopsNoOther$")),
		alone("one test has seen as many sinks as may be", one("a reload adds sinks without room", "a sink gets all items that are acknowledged after the reload that adds it", "cmd/macronode/internal/server/exports_change.go", "added > room {", "false {", "./cmd/macronode/internal/cli TestReloadWithoutRoomForSinks$")),
		one("a sink without known items is ok", "nothing is said about a sink before its streams are read", "cmd/macronode/internal/server/exports_admin.go", "isRead := e.streams.known.Load() != nil", "isRead := true", "./cmd/macronode/internal/server TestNothingIsKnownBeforeStreamsAreRead$", "./cmd/macronode/internal/cli TestExports$"),
		alone("in the simulator, a situation is missing that more runs are made for", one("a command of the node is rejected in a drain", "what was delivered is settled while the node drains", "core/node/request.go", "n.refuses(in.Permit) && !n.takesWhileDraining(c)", "n.drain.Refusing()", "./core/export TestDrainTakesCommandsOfNode$")),
	}
}

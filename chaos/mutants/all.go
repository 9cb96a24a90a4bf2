package mutants

import "slices"

// The checks that must detect mutants.
const (
	sim         = "./chaos/sim TestSeeds"
	files       = "./chaos/sim TestFiles$"
	inShards    = "./chaos/sim TestShards$"
	transcripts = "./core/node TestTranscripts"
	ledger      = "./core/wallet/ledger"
	idem        = "./core/idempotency"
	record      = "./core/record"
	rendered    = "./core/wallet/receipt"
	state       = "./core/state"
	table       = "./core/table"
	clock       = "./core/clock"
	journal     = "./adapters/journalfile"

	ledgerModel = "./core/wallet/ledger TestMatchesModel$"
	steps       = "./chaos/trace TestEveryStepIsPermitted"
)

// All returns every mutant, including bugs of other systems.
func All() []Mutant {
	return slices.Concat(money(), held(), keys(), grants(), audit(), promises(), answers(), disk(), years(), certificate(), charges(), byHand(), byAnother(), schedules(), views(), edges(), wire(), gateway(), forwarded(), drained(), pages(), starts(), bombs(), quotas(), upstreams(), malformed(), trunks(), interim(), renewals(), operator(), operations(), reloads(), shell(), wiring(), shares(), endedKeys(), rooms(), objects(), smallObjects(), copies(), hangingDisks(), fullDisks(), moves(), shards(), entries(), usage(), prepaid(), pricing(), exports(), sinks(), planes(), counters(), metersInPrograms(), attacked(), rejected(), openedFiles())
}

// one returns a mutant with one edit.
func one(name, holds, file, was, now string, kills ...string) Mutant {
	return Mutant{Name: name, Holds: holds, Edits: []Edit{{file, was, now}}, Kills: kills}
}

func money() []Mutant {
	const decide, apply = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go"
	return []Mutant{
		one("gap in nonces is accepted", "M2", decide, "case asked > next:", "case false:", ledger, sim, "./chaos/explore TestScopes/same"),
		one("used nonce accepted", "M2: ron-wallet nonce rollback", decide, "case asked < next:", "case false:", ledger, sim, "./chaos/explore TestScopes/a_kill"),
		one("debit does not advance the nonce", "M2", apply, "a.nonce = nonce", "a.nonce = nonce - 1", ledger, sim, "./chaos/explore TestScopes/same"),
		one("balance is not checked", "M1: a balance below 0", decide, "if s.from.available().Less(r.Amount) {", "if false {", ledger, sim, "./chaos/explore TestScopes/same"),
		one("supply limit is not checked", "M1", decide, "if !fits || types.MaxSupply().Less(issued) {", "if !fits {", ledgerModel, "./core/wallet/ledger TestDailyLimits$"),
		one("daily total is never reset", "daily limit", decide, "if day != at.Day() {", "if day == 0 {", ledgerModel, "./core/wallet/ledger TestDailyLimits$"),
		one("credit to an empty holding is lost", "M1", apply, "v.balance = r.ToBalance\n", "if !v.balance.IsZero() {\n\t\tv.balance = r.ToBalance\n\t}\n", ledger, sim, "./chaos/explore TestScopes/same"),
		one("burned total is not updated", "M1", apply, "kind.burned = r.ToBalance", "", ledger, sim, "./chaos/explore TestScopes/a_kill"),
		one("tenant account limit is not checked", "M4", decide, "checkRow(l.limits.TenantAccounts, t.accounts,", "checkRow(l.limits.Accounts, t.accounts,", ledgerModel, "./core/wallet/ledger TestTenantsAreSeparate$"),
		one("daily total is not hashed", "state hash", "core/wallet/ledger/rows.go", "h = v.debitedToday.HashInto(v.balance.HashInto(h)).Mix(uint64(v.day))", "h = v.balance.HashInto(h).Mix(uint64(v.day))", "./core/wallet/ledger TestHashCoversEveryField$", "./core/wallet/ledger TestHashTellsHistoriesApart$"),
	}
}

func held() []Mutant {
	const decide, apply, rows, holds = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go", "core/wallet/ledger/rows.go", "core/wallet/ledger/holds.go"
	return []Mutant{
		one("held amount is available", "M6: litellm-40002", rows, "rest, _ := v.balance.Sub(v.held)", "rest := v.balance", ledger, transcripts, sim, "./chaos/explore TestScopes/what_is_held"),
		one("hold is captured at its expiry", "an expired hold is never captured", decide, "s.hold.expiresAt <= at", "s.hold.expiresAt < at", "./core/wallet/ledger TestModelCoversEveryProblem$", "./core/wallet/ledger TestHoldsExpire$"),
		one("wrong beneficiary is reported as an ended hold", "a rejected capture names its cause", decide, "return event.NotBeneficiary", "return event.HoldNotActive", ledger, sim),
		one("beneficiary of a hold is not checked", "a named beneficiary is the only payee", decide, "return v.to == types.NameHash{} || v.to == to", "return true", ledger, sim),
		one("holder of a hold is not checked", "a hold belongs to its holder and asset", decide, "s.holdActive = s.knownFrom && s.knownAsset && s.hold.holding == of", "s.holdActive = s.knownFrom && s.knownAsset", "./core/wallet/ledger TestModelCoversEveryProblem$", "./core/wallet/ledger TestHoldsTranscript$", steps),
		one("capture from a frozen account is accepted", "debits of a frozen account are rejected", decide, "event.Transfer, event.Burn, event.Hold, event.Capture:\n", "event.Transfer, event.Burn, event.Hold:\n", ledger, sim),
		one("captured hold stays active", "blnk-315: all legs or none", apply, "l.closeHold(r, &t)\n\t\tfrom := holdingKey", "from := holdingKey", ledger, transcripts, sim, "./chaos/explore TestScopes/what_is_held"),
		one("capture releases only the captured part", "the remainder is available at once", decide, "r.HeldBalance, whole = s.from.held.Sub(s.hold.amount)", "r.HeldBalance, whole = s.from.held.Sub(r.Amount)", ledger, transcripts, sim, "./chaos/explore TestScopes/what_is_held"),
		one("captures outgrow the undo log", "a batch of captures ends the node", "core/wallet/ledger/ledger.go", "holdingsChanged = 3", "holdingsChanged = 2", "./core/wallet/ledger TestUndoLogsFitEachOperation$", "./chaos/explore TestSiteScopes/objects"),
		one("hold of any expiry is released in a balance", "an expired hold is not counted", "core/wallet/ledger/ledger.go", "if over.expiresAt > now {", "if true {", ledgerModel, "./core/wallet/ledger TestHoldsExpire$"),
		one("expiry heap is not sifted", "M8", holds, "\t\th.siftDown(at)\n", "", ledger, sim),
		one("ring of holds is not ordered by expiry", "M7", holds, "h.before(place, before)", "false", ledger, sim),
		one("undo does not relink the neighbours", "M7: undo is complete", holds, "h.link(place, c.link.before, c.link.after)", "h.links[place].before, h.links[place].after = c.link.before, c.link.after", "./core/wallet/ledger TestModelCoversEveryProblem$", "./core/wallet/ledger TestBatchesTranscript$"),
		one("undo of a batch keeps the holdings", "a batch is atomic", "core/wallet/ledger/ledger.go", "l.holdings.Undo()", "l.holdings.Commit()", ledger, transcripts, sim),
		one("undo reverts changes in the wrong order", "a batch is atomic", "core/table/table.go", "for i := len(t.undoLog) - 1; i >= 0; i-- {", "for i := range t.undoLog {", table, ledger),
		one("free place is given twice", "T3", "core/table/pool.go", "place, p.free = p.free[n-1], p.free[:n-1]", "place = p.free[n-1]", table, ledger),
		one("hold is not limited by the day", "what left today and what is held are at most the limit", decide, "left, isLeft := l.limits.MaxDailyDebit.Sub(held)", "left, isLeft := l.limits.MaxDailyDebit, true", ledgerModel, "./core/wallet/ledger TestHoldsTranscript$", steps),
		one("capture is limited by the day", "a capture is never above the daily limit", decide, "s.from.day, noLimit())", "s.from.day, l.limits.MaxDailyDebit)", "./core/wallet/ledger TestLoweredLimitRejectsNoCapture$", "./core/wallet/ledger TestReplayIgnoresDailyLimit$"),
		one("expired hold limits what may be debited", "arrears are paid up to the daily limit", "core/wallet/ledger/ledger.go", "_, held, _ := l.Balance(at, t, account, asset)", "held := v.held", "./core/wallet/ledger TestLoweredLimitRejectsNoCapture$", "./core/wallet/ledger TestMatchesModel$"),
		one("loaded accounts are not frozen", "a loaded state equals the dumped one", "core/wallet/ledger/dump.go", "a.frozen = frozen == 1", "", ledger, sim),
	}
}

func keys() []Mutant {
	const file = "core/idempotency/window.go"
	return []Mutant{
		one("tenant is not part of an idempotency key", "one key, one outcome, within its tenant", file, "return k.Name.HashInto(k.Tenant.HashInto(h))", "return k.Name.HashInto(h)", "./core/idempotency TestHashCoversEveryField$", "./core/idempotency TestHashTellsWindowsApart$"),
		one("request hash of a key is not checked", "422", file, "if found && s.Hash != asked {", "if false {", idem, transcripts, sim, "./chaos/explore TestScopes/same"),
		one("key is evicted before its retention ends", "MinRetention", file, "if lsn > indexed || s.At.Add(w.limits.MinRetention) > at || !needless {", "if lsn > indexed || !needless {", idem, sim, "./chaos/explore TestScopes/an_index"),
		one("expired key is never evicted", "the window is bounded", file, "if lsn > indexed || s.At.Add(w.limits.MinRetention) > at || !needless {", "if needless = true; needless {", idem, transcripts, sim, "./chaos/explore TestScopes/an_index"),
		one("key is evicted before it is indexed", "derived data never decides alone", file, "if lsn > indexed || s.At.Add", "if s.At.Add", idem, sim, "./chaos/explore TestScopes/an_index"),
		one("stale index read is accepted", "one comparison gives one effect per key", file, "return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)", "return true", idem, transcripts, sim, "./chaos/explore TestScopes/an_index"),
		one("index read one frame behind is accepted", "one comparison gives one effect per key", file, "return upto >= w.forgottenTo ||", "return upto+1 >= w.forgottenTo ||", idem, transcripts, "./chaos/explore TestScopes/keys_that_leave"),
		one("ref is not looked up in the index", "a ref is permanent", file, "|| !refs && !w.MayHaveForgotten(at)", "|| !w.MayHaveForgotten(at)", idem, sim),
		one("expired key of the index is found", "ron-wallet phantom receipt", file, "was.ID.Position().LSN > 0 && w.isLive(was.At, at)", "was.ID.Position().LSN > 0", idem, "./chaos/explore TestScopes/keys_that_are_over"),
		one("used ref is not rejected", "ref_used", "core/wallet/wallet.go", "if len(item.Ref.Text) > 0 {\n\t\tvar by", "if false {\n\t\tvar by", transcripts, sim),
		one("rejected request uses its ref", "a rejection uses no ref", "core/wallet/wallet.go", "r.Kind, r.Problem, r.Ref = record.Rejected, why, types.Name{}", "r.Kind, r.Problem = record.Rejected, why", sim, transcripts),
		one("rejected batch is not undone", "a batch is atomic", "core/wallet/wallet.go", "f.Undo()", "f.Commit()", transcripts, sim),
		one("batch does not store its outcome", "a batch keeps its answer", "core/state/state.go", "s.batch = r.Kind == record.Batched", "s.batch = false", transcripts, "./core/state"),
		one("expired holds are not ended before a debit", "an expired hold is not counted", "core/wallet/wallet.go", "for len(item.From.Text) > 0 && w.Has", "for false && w.Has", transcripts, sim, "./chaos/explore TestScopes/what_is_held"),
		one("eviction removes one frame too many", "I1", file, "if s.ID.Position().LSN > upto {", "if s.ID.Position().LSN > upto+1 {", idem, transcripts, "./chaos/explore TestScopes/an_index"),
		one("nonce is checked before the idempotency key", "ron-wallet refused retry", "core/node/request.go", "case found:\n\t\treply.Position, reply.Replayed = place, true", "case found && place.LSN <= n.applied:\n\t\treply.Position, reply.Replayed = place, true\n\tcase found:\n\t\treply.Problem = event.NonceUsed", transcripts, sim, "./chaos/explore TestScopes/a_drain$"),
		one("rejection is not stored under its key", "stored rejections", "core/wallet/wallet.go", "f); why.Stored() {", "f); why == event.None {", transcripts, "./chaos/explore TestScopes/same"),
		one("gap in nonces is stored under the key", "a request that arrives too early can be retried", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retryable},`, `NonceAhead:          {"nonce_conflict", 409, retryable | stored},`, transcripts, "./core/event", "./chaos/explore TestScopes/same"),
		one("eviction is not recorded", "the live and the recovered state are equal", "core/node/node.go", "n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}\n\t\tn.beginFrame(now, at, out)\n\t\tn.addRecord(out)\n", "n.state.Idempotency.Forget(upto)\n", transcripts, sim, "./chaos/explore TestScopes/keys_that_are_over"),
	}
}

func promises() []Mutant {
	const node, reply = "core/node/node.go", "core/node/reply.go"
	return []Mutant{
		one("ack before durable", "nats-7564: After", reply, "if r.After <= n.applied {", "if true {", transcripts, sim, "./chaos/explore TestScopes/same"),
		one("ack one frame early", "After", reply, "n.held.At(0).reply.After <= n.applied {", "n.held.At(0).reply.After <= n.applied+1 {", transcripts, sim, "./chaos/explore TestScopes/same"),
		one("ack when durable but not applied", "a read after an ack sees the effect", reply, "n.held.At(0).reply.After <= n.applied {", "n.held.At(0).reply.After <= n.durable {", sim, "./chaos/explore TestScopes/same"),
		one("failed flush does not stop writes", "nothing after a failed flush is acknowledged", node, "n.readiness.SetDegraded(types.JournalFailed, true)\n\tn.giveUp", "n.readiness.SetDegraded(types.JournalFailed, false)\n\tn.giveUp", transcripts, sim, "./chaos/explore TestScopes/keys_that_are_over"),
		one("expected nonce is returned before it is durable", "a rejection shows only durable state", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retryable},`, `NonceAhead:          {"nonce_conflict", 409, retryable | needsNoDurability},`, sim, "./core/event", "./chaos/explore TestScopes/same"),
		one("replay does not wait for durability", "After", reply, "case r.Position.LSN > 0 && r.Position.LSN <= n.applied:", "case r.Replayed:", sim, transcripts, "./chaos/explore TestScopes/clients"),
		one("heartbeat is never written", "the last acknowledged batch has a successor", "core/node/due.go", "return n.recovered && (!n.lastFrameEmpty || n.clock.Ahead())", "return n.recovered && (false && !n.lastFrameEmpty || n.clock.Ahead())", sim, transcripts, "./chaos/explore TestScopes/first"),
		one("held reply has no deadline", "a held reply has a deadline", reply, "n.held.At(0).deadline <= now {", "false {", transcripts, sim, "./chaos/explore TestScopes/a_drain$"),
		one("heartbeat is not in the due time", "Due", "core/node/due.go", "earlier(n.lastFrameAt.Add(n.config.HeartbeatInterval), n.heartbeatDue())", "", sim, "./chaos/explore TestScopes/first"),
		one("stalled flush is not noticed", "a flush that takes too long stops writes", node, "n.flushStarted.Add(n.config.StallThreshold) <= now.Mono)", "false)", transcripts, sim, "./chaos/explore TestScopes/what_is_held"),
		one("flush time starts at the first flush", "a flush is timed from its own start", node, "\tn.flushStarted = now.Mono\n\tn.readiness.SetDegraded", "\tn.readiness.SetDegraded", transcripts, "./chaos/explore TestScopes/what_is_held"),
		one("unsynced bytes have no limit", "unsynced bytes are bounded", "core/node/request.go", "case n.backlog+uint64(cost.Bytes) > n.config.MaxUnsyncedBytes:", "case false:", transcripts, "./core/node TestBacklogIsBounded$"),
		one("untrusted clock expires keys and holds", "an untrusted clock expires nothing", node, "if n.clock.Untrusted() || !n.readiness.AcceptsWrites()", "if !n.readiness.AcceptsWrites()", transcripts, "./core/node TestUntrustedClockExpiresNothing$"),
		one("abort does not give up pending replies", "an abort gives up pending replies, and counts them", node, "phase >= types.Aborting && !quiet {", "phase == types.Aborting {", transcripts, "./chaos/explore TestScopes/a_drain"),
		one("drain accepts new work", "D2", "core/lifecycle/drain/drain.go", "return d.phase >= types.Draining }", "return d.phase >= types.Aborting }", transcripts, "./core/lifecycle/drain", "./chaos/explore TestScopes/a_drain$"),
		one("drain rejects what was admitted", "a drain finishes admitted requests", "core/node/request.go", "(n.drain.Phase() == types.Draining && n.admission.Admitted(permit))", "(n == nil)", transcripts, "./chaos/trace TestEveryStepIsPermitted$", "./cmd/macronode/internal/cli TestDrainFinishesUploads$"),
		one("drain accepts what was not admitted", "D2", "core/node/request.go", " && n.admission.Admitted(permit))", ")", transcripts, "./chaos/trace TestEveryStepIsPermitted$", sim),
		one("abort accepts what was admitted", "an abort gives up pending replies, and counts them", "core/node/request.go", "(n.drain.Phase() == types.Draining && n.admission", "(n.drain.Phase() >= types.Draining && n.admission", transcripts, "./chaos/trace TestEveryStepIsPermitted$"),
		alone("no request gives commands while it waits", one("waiting request counts as admitted", "a drain finishes admitted requests", "core/gateway/admission/stream.go", " && a.rows[t.Slot()].state != queued", "", "./core/gateway/admission TestMatchesModel$")),
		one("command names no permit", "a drain finishes admitted requests", "adapters/httpapi/call.go", "Permit: k.permit, ", "", "./adapters/httpapi TestObjectLife$", "./cmd/macronode/internal/cli TestDrainFinishesUploads$"),
		one("admitted writes end with the drain's begin", "a drain finishes admitted requests", "core/node/status.go", "s.Phase < types.Aborting", "s.Phase < types.Draining", "./chaos/trace TestEveryStepIsPermitted$", sim),
		one("drain has no deadline", "D1", "core/lifecycle/drain/drain.go", "(quiet || d.deadline <= now) {", "quiet {", transcripts, "./core/lifecycle/drain", "./chaos/explore TestScopes/a_drain$"),
		one("node without its HTTP service is ready", "ron-node dead child", "core/lifecycle/readiness/readiness.go", "r.satisfied.Has(types.DependencyHTTP), r.AcceptsWrites()", "true, r.AcceptsWrites()", transcripts, "./core/lifecycle/readiness"),
		one("clock goes backwards", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("clock trusts any jump", "a large offset is not trusted", "core/clock/clock.go", "if behind > MaxTrustedOffset || c.untrusted && behind > MaxStep {", "if false {", clock, transcripts),
		one("clock restarts from the wall clock", "the time never decreases", node, "clock: clock.From(s.At)", "clock: clock.From(0)", sim, "./core/node TestTimeContinuesAfterRestart$"),
		one("batch refers to the arena of its turn", "effects do not outlive their turn", "adapters/loop/loop.go", "b.Arena = append(b.Arena, out.Body(f)...)", "b.Arena = out.Arena", sim, "./adapters/loop TestReplyFollowsSyncAndFold$"),
		one("read model folds frames before they are durable", "reads show durable state", "adapters/loop/loop.go", "\tvar upto types.LSN\n\tif err == nil {\n", "\tvar upto types.LSN\n\tif err == nil {\n\t\tl.folds <- sealed\n", "./adapters/loop TestReplyFollowsSyncAndFold$", "./adapters/loop TestRandomDelaysAndFailures$"),
		one("copy of a queue loses its head", "CopyTo", "core/table/fifo.go", "dst.seed, dst.sum, dst.head, dst.count, dst.rows = f.seed, f.sum, f.head, f.count, rows", "dst.seed, dst.sum, dst.count, dst.rows = f.seed, f.sum, f.count, rows", table, sim, "./chaos/explore TestScopes/an_index"),
		one("copy of admission shares its permits", "CopyTo", "core/gateway/admission/check.go", "\tdst.plain = a.plain\n", "", "./core/gateway/admission TestMatchesModel$", sim),
		alone("no scope of the explorer sends upstream calls, and no transcript copies a node", one("copy of a node shares its upstreams", "CopyTo", "core/node/status.go", "\tn.upstreams.CopyTo(&dst.upstreams)\n", "", sim)),
		one("copy of a node shares its held replies", "CopyTo", "core/node/status.go", "\tn.held.CopyTo(&dst.held)\n", "", sim, "./chaos/explore TestScopes/same"),
		one("hash slot is freed with a gap", "T1", "core/table/index.go", "if (n-home)&mask >= (n-s)&mask {", "if home > len(x.slots) {", table, transcripts, sim),
		one("codec drops a field", "a record is what was decided", "core/record/codec.go", "\tc.amount(&r.ToBalance)\n\tc.amount(&r.DebitedToday)\n", "\tc.amount(&r.ToBalance)\n\tvar none types.Amount\n\tc.amount(&none)\n", record, sim, "./chaos/explore TestScopes/same"),
		one("step changes state without a record", "the recovered state equals the live one", "core/node/frame.go", "n.state.Apply(index, &n.rec)\n", "n.state.Apply(index, &n.rec)\n\tn.state.Starts += uint64(n.rec.Nonce & 1)\n", sim, "./chaos/explore TestScopes/same"),
		one("roots swapped in the receipt", "golden vectors", "core/wallet/receipt/field.go", "p.in.Prev[:])", "p.in.Root[:])", "./core/wallet/receipt TestAnswersAreFrozen$", "./core/wallet/receipt TestReceiptMatchesRecord$"),
	}
}

func disk() []Mutant {
	const dir = "adapters/journalfile/"
	return []Mutant{
		one("batch header claims its own frames durable", "a header claims only durable frames", dir+"journal.go", "h := batch{first - 1, j.epoch,", "h := batch{sealed[len(sealed)-1].LSN, j.epoch,", journal, sim),
		one("recovered tail is not rewritten", "a frame that was read may not be on disk", dir+"recover.go", "j.begin(s.tail)", "j.begin(nil)", journal, sim),
		one("recovered tail is not synced", "a frame that was read may not be on disk", dir+"journal.go", "if err := f.Sync(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("new segment name is not synced", "a name is durable after SyncDir", dir+"journal.go", "if err := j.fs.SyncDir(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync the directory for \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("frame checksum is not checked", "CRC32C", dir+"format.go", "if crc32.Checksum(buf[:end], castagnoli()) != u32(buf[end:]) {", "if false {", "./adapters/journalfile TestBitFlips$", "./adapters/journalfile TestDamagedByteLosesOneFrame$"),
		one("frame root is not checked", "J1", dir+"scan.go", "f.Root != types.Root(it.root) {", "false {", "./adapters/journalfile TestForgedItemsAreRejected$", "./adapters/journalfile TestForeignFrameIsNotDelivered$"),
		one("damage before the durable end is cut as a tail", "damage before the durable end is reported", dir+"scan.go", "if upto > last {", "if false {", journal, sim),
		one("segment read past its end", "a segment ends where its successor begins", dir+"scan.go", "for s.found.Last+1 < end && !s.over() {", "for !s.over() {", journal, sim),
		one("journal accepts writes after a failed sync", "fsyncgate: a failed journal rejects writes", dir+"journal.go", "\tj.failed = err\n\treturn err\n", "\treturn err\n", journal, sim),
	}
}

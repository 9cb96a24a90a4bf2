package mutants

import "slices"

// The checks that mutants are held against.
const (
	sim      = "./chaos/sim TestSeeds"
	stories  = "./core/node TestTranscripts"
	ledger   = "./core/wallet/ledger"
	idem     = "./core/idempotency"
	record   = "./core/record"
	rendered = "./core/wallet/receipt"
	state    = "./core/state"
	table    = "./core/table"
	clock    = "./core/clock"
	journal  = "./adapters/journalfile"

	ledgerTwin = "./core/wallet/ledger TestAgrees$"
	steps      = "./chaos/trace TestLegal"
)

// All is every mutant, other people's bugs among them.
func All() []Mutant {
	return slices.Concat(money(), held(), keys(), grants(), audit(), promises(), answers(), disk(), years(), certificate(), byHand(), byAnother(), schedules(), views(), edges(), wire(), gateway(), drained(), pages(), starts(), bombs(), quotas(), upstreams(), malformed(), trunks(), renewals(), operator(), operations(), reloads(), shell(), wiring(), shares(), objects())
}

// one is a mutant of one edit.
func one(name, holds, file, was, now string, kills ...string) Mutant {
	return Mutant{Name: name, Holds: holds, Edits: []Edit{{file, was, now}}, Kills: kills}
}

func money() []Mutant {
	const decide, apply = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go"
	return []Mutant{
		one("nonce at least for exactly", "M2", decide, "case asked > next:", "case false:", ledger, sim, "./chaos/explore TestScopes/same"),
		one("used nonce accepted", "M2: ron-wallet nonce rollback", decide, "case asked < next:", "case false:", ledger, sim, "./chaos/explore TestScopes/a_kill"),
		one("nonce not used by a debit", "M2", apply, "a.nonce = nonce", "a.nonce = nonce - 1", ledger, sim, "./chaos/explore TestScopes/same"),
		one("no look at the funds", "M1: a balance below nothing", decide, "if s.from.available().Less(r.Amount) {", "if false {", ledger, sim, "./chaos/explore TestScopes/same"),
		one("issue beyond the supply", "M1", decide, "if !fits || types.MaxSupply().Less(issued) {", "if !fits {", ledgerTwin, "./core/wallet/ledger TestCeilings$"),
		one("day that never ends", "day ceiling", decide, "if day != at.Day() {", "if day == 0 {", ledgerTwin, "./core/wallet/ledger TestCeilings$"),
		one("credit lost where the account is new", "M1", apply, "v.balance = r.ToBalance\n", "if !v.balance.IsZero() {\n\t\tv.balance = r.ToBalance\n\t}\n", ledger, sim, "./chaos/explore TestScopes/same"),
		one("burn that leaves no trace", "M1", apply, "kind.burned = r.ToBalance", "", ledger, sim, "./chaos/explore TestScopes/a_kill"),
		one("tenant over its accounts", "M4", decide, "credits(r.Op) && !s.knownTo && (l.accounts.Room() == 0 || int(t.accounts) >= l.limits.TenantAccounts)", "credits(r.Op) && !s.knownTo && l.accounts.Room() == 0", ledgerTwin, "./core/wallet/ledger TestTenants$"),
		one("hash without the day's spending", "state hash", "core/wallet/ledger/rows.go", "h = v.debitedToday.HashInto(v.balance.HashInto(h)).Mix(uint64(v.day))", "h = v.balance.HashInto(h).Mix(uint64(v.day))", "./core/wallet/ledger TestHashForgetsNothing$", "./core/wallet/ledger TestHistoriesAreApart$"),
	}
}

func held() []Mutant {
	const decide, apply, rows, holds = "core/wallet/ledger/decide.go", "core/wallet/ledger/apply.go", "core/wallet/ledger/rows.go", "core/wallet/ledger/holds.go"
	return []Mutant{
		one("what is held is paid all the same", "M6: litellm-40002", rows, "rest, _ := v.balance.Sub(v.held)", "rest := v.balance", ledger, stories, sim, "./chaos/explore TestScopes/what_is_held"),
		one("captured a millisecond too late", "a hold that is due is never captured", decide, "s.hold.expiresAt <= at", "s.hold.expiresAt < at", "./core/wallet/ledger TestAgreesOnAll$", "./core/wallet/ledger TestLapses$"),
		one("a wrong beneficiary is reported as a hold that has ended", "a refused capture names its cause", decide, "return event.NotBeneficiary", "return event.HoldNotActive", ledger, sim),
		one("captured for anybody", "to is the beneficiary where one was named", decide, "return v.to == types.NameHash{} || v.to == to", "return true", ledger, sim),
		one("captured of anybody", "a hold is its holder's, of its asset", decide, "s.holdActive = s.knownFrom && s.knownAsset && s.hold.holding == of", "s.holdActive = s.knownFrom && s.knownAsset", "./core/wallet/ledger TestAgreesOnAll$", "./core/wallet/ledger TestHolds$", steps),
		one("captured of a frozen account", "nothing leaves a frozen account", decide, "event.Transfer, event.Burn, event.Hold, event.Capture:\n", "event.Transfer, event.Burn, event.Hold:\n", ledger, sim),
		one("paid and still held", "blnk-315: all legs or none", apply, "l.closeHold(r, &t)\n\t\tfrom := holdingKey", "from := holdingKey", ledger, stories, sim, "./chaos/explore TestScopes/what_is_held"),
		one("let go of what is paid alone", "the rest is available at once", decide, "r.HeldBalance, whole = s.from.held.Sub(s.hold.amount)", "r.HeldBalance, whole = s.from.held.Sub(r.Amount)", ledger, stories, sim, "./chaos/explore TestScopes/what_is_held"),
		one("due and still held", "a hold that is due is never counted", "core/wallet/ledger/ledger.go", "if over.expiresAt > now {", "if true {", ledgerTwin, "./core/wallet/ledger TestLapses$"),
		one("the last hold lapses first", "M8", holds, "\t\th.siftDown(at)\n", "", ledger, sim),
		one("account's holds as they came", "M7", holds, "h.before(place, before)", "false", ledger, sim),
		one("taken back, and nobody's neighbour", "M7: all or nothing", holds, "h.link(place, c.link.before, c.link.after)", "h.links[place].before, h.links[place].after = c.link.before, c.link.after", "./core/wallet/ledger TestAgreesOnAll$", "./core/wallet/ledger TestBatches$"),
		one("batch that keeps what it moved", "all or nothing", "core/wallet/ledger/ledger.go", "l.holdings.Undo()", "l.holdings.Commit()", ledger, stories, sim),
		one("changes taken back from the first on", "all or nothing", "core/table/table.go", "for i := len(t.undoLog) - 1; i >= 0; i-- {", "for i := range t.undoLog {", table, ledger),
		one("place given twice", "T3", "core/table/pool.go", "place, p.free = p.free[n-1], p.free[:n-1]", "place = p.free[n-1]", table, ledger),
		one("loaded and no longer frozen", "what is restored is the same", "core/wallet/ledger/dump.go", "a.frozen = frozen == 1", "", ledger, sim),
	}
}

func keys() []Mutant {
	const file = "core/idempotency/idem.go"
	return []Mutant{
		one("key of another tenant", "one key, one outcome, within its tenant", file, "return k.Name.HashInto(k.Tenant.HashInto(h))", "return k.Name.HashInto(h)", "./core/idempotency TestHashForgetsNothing$", "./core/idempotency TestWindowsAreApart$"),
		one("key that asks for something else", "422", file, "if found && s.Hash != asked {", "if false {", idem, stories, sim, "./chaos/explore TestScopes/same"),
		one("key that leaves early", "never before its time", file, "if lsn > indexed || s.At.Add(w.limits.MinRetention) > at || !needless {", "if lsn > indexed || !needless {", idem, sim, "./chaos/explore TestScopes/an_index"),
		one("key that never leaves", "the window ends at its time", file, "if lsn > indexed || s.At.Add(w.limits.MinRetention) > at || !needless {", "if needless = true; needless {", idem, stories, sim, "./chaos/explore TestScopes/an_index"),
		one("key that leaves before the index has it", "derived state never decides alone", file, "if lsn > indexed || s.At.Add", "if s.At.Add", idem, sim, "./chaos/explore TestScopes/an_index"),
		one("index that was asked too early", "F: one compare keeps a key to one effect", file, "return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)", "return true", idem, stories, sim, "./chaos/explore TestScopes/an_index"),
		one("index one frame behind", "F", file, "return upto >= w.forgottenTo ||", "return upto+1 >= w.forgottenTo ||", idem, stories, "./chaos/explore TestScopes/keys_that_leave"),
		one("ref that nobody looked up", "a ref is for ever", file, "|| !refs && !w.MayHaveForgotten(at)", "|| !w.MayHaveForgotten(at)", idem, sim),
		one("old key that is over its time", "ron-wallet phantom receipt", file, "was.ID.Position().LSN > 0 && w.isLive(was.At, at)", "was.ID.Position().LSN > 0", idem, "./chaos/explore TestScopes/keys_that_are_over"),
		one("ref that nobody asks for", "ref_used", "core/wallet/wallet.go", "if len(item.Ref.Text) > 0 {\n\t\tr.PriorRef", "if false {\n\t\tr.PriorRef", stories, sim),
		one("ref of what was refused", "a refusal uses no ref", "core/wallet/wallet.go", "r.Kind, r.Problem, r.Ref = record.Rejected, why, types.Name{}", "r.Kind, r.Problem = record.Rejected, why", sim, stories),
		one("batch that is not taken back", "all or nothing", "core/wallet/wallet.go", "f.Undo()", "f.Commit()", stories, sim),
		one("batch that its key forgets", "a batch keeps its answer", "core/state/state.go", "s.batch = r.Kind == record.Batched", "s.batch = false", stories, "./core/state"),
		one("hold that is over and counts", "a hold that is due is never counted", "core/wallet/wallet.go", "for len(item.From.Text) > 0 && w.Has", "for false && w.Has", stories, sim, "./chaos/explore TestScopes/what_is_held"),
		one("forgets one frame too many", "I1", file, "if s.ID.Position().LSN > upto {", "if s.ID.Position().LSN > upto+1 {", idem, stories, "./chaos/explore TestScopes/an_index"),
		one("looked up after the nonce", "ron-wallet refused retry", "core/node/request.go", "case found:\n\t\treply.Position, reply.Replayed = place, true", "case found && place.LSN <= n.applied:\n\t\treply.Position, reply.Replayed = place, true\n\tcase found:\n\t\treply.Problem = event.NonceUsed", stories, sim, "./chaos/explore TestScopes/a_drain$"),
		one("refusal that its key forgets", "stored refusals", "core/wallet/wallet.go", "f); why.Stored() {", "f); why == event.None {", stories, "./chaos/explore TestScopes/same"),
		one("nonce ahead is kept", "a request that overtook its predecessor is not poisoned", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retryable},`, `NonceAhead:          {"nonce_conflict", 409, retryable | stored},`, stories, "./core/event", "./chaos/explore TestScopes/same"),
		one("forgets without a record", "live and recovered state are equal", "core/node/node.go", "n.rec = record.Record{Kind: record.KeysForgotten, Upto: upto}\n\t\tn.beginFrame(now, at, out)\n\t\tn.addRecord(out)\n", "n.state.Idempotency.Forget(upto)\n", stories, sim, "./chaos/explore TestScopes/keys_that_are_over"),
	}
}

func promises() []Mutant {
	const node, reply = "core/node/node.go", "core/node/reply.go"
	return []Mutant{
		one("ack before durable", "nats-7564: After", reply, "if r.After <= n.applied {", "if true {", stories, sim, "./chaos/explore TestScopes/same"),
		one("ack one frame early", "After", reply, "n.held.At(0).reply.After <= n.applied {", "n.held.At(0).reply.After <= n.applied+1 {", stories, sim, "./chaos/explore TestScopes/same"),
		one("ack when durable and not folded", "nobody reads less than they were told", reply, "n.held.At(0).reply.After <= n.applied {", "n.held.At(0).reply.After <= n.durable {", sim, "./chaos/explore TestScopes/same"),
		one("failed flush believed", "nothing from there on is acknowledged", node, "n.readiness.SetDegraded(types.JournalFailed, true)\n\tn.giveUp", "n.readiness.SetDegraded(types.JournalFailed, false)\n\tn.giveUp", stories, sim, "./chaos/explore TestScopes/keys_that_are_over"),
		one("expected nonce told too early", "a refusal tells of state too", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retryable},`, `NonceAhead:          {"nonce_conflict", 409, retryable | needsNoDurability},`, sim, "./core/event", "./chaos/explore TestScopes/same"),
		one("replay does not wait", "After", reply, "case r.Position.LSN > 0 && r.Position.LSN <= n.applied:", "case r.Replayed:", sim, stories, "./chaos/explore TestScopes/clients"),
		one("nobody vouches for the last frame", "the last acknowledged batch has a successor", "core/node/due.go", "return n.recovered && (!n.lastFrameEmpty || n.clock.Ahead())", "return n.recovered && (false && !n.lastFrameEmpty || n.clock.Ahead())", sim, stories, "./chaos/explore TestScopes/first"),
		one("patience without end", "a held reply has a deadline", reply, "n.held.At(0).deadline <= now {", "false {", stories, sim, "./chaos/explore TestScopes/a_drain$"),
		one("due forgets the vouching frame", "Due", "core/node/due.go", "earlier(n.lastFrameAt.Add(n.config.HeartbeatInterval), n.heartbeatDue())", "", sim, "./chaos/explore TestScopes/first"),
		one("stall that nobody notices", "a flush that takes too long stops writes", node, "n.flushStarted.Add(n.config.StallThreshold) <= now.Mono)", "false)", stories, sim, "./chaos/explore TestScopes/what_is_held"),
		one("flushes timed from the first of them", "a flush is timed from its own beginning", node, "\tn.flushStarted = now.Mono\n\tn.readiness.SetDegraded", "\tn.readiness.SetDegraded", stories, "./chaos/explore TestScopes/what_is_held"),
		one("backlog without a bound", "bytes that are not durable are bounded", "core/node/request.go", "case n.backlog+uint64(cost.Bytes) > n.config.MaxUnsyncedBytes:", "case false:", stories, "./core/node TestTheBacklogIsBounded$"),
		one("expires by a doubted clock", "nothing expires by it", node, "if n.clock.Untrusted() || !n.readiness.AcceptsWrites()", "if !n.readiness.AcceptsWrites()", stories, "./core/node TestUntrustedClockExpiresNothing$"),
		one("abort that skips the giving up", "what is given up is told so, and counted", node, "phase >= types.Aborting && !quiet {", "phase == types.Aborting {", stories, "./chaos/explore TestScopes/a_drain"),
		one("drain takes new work", "D2", "core/lifecycle/drain/drain.go", "return d.phase >= types.Draining }", "return d.phase >= types.Aborting }", stories, "./core/lifecycle/drain", "./chaos/explore TestScopes/a_drain$"),
		one("drain without end", "D1", "core/lifecycle/drain/drain.go", "(quiet || d.deadline <= now) {", "quiet {", stories, "./core/lifecycle/drain", "./chaos/explore TestScopes/a_drain$"),
		one("dead child is ready", "ron-node dead child", "core/lifecycle/readiness/readiness.go", "r.satisfied.Has(types.DependencyHTTP), r.AcceptsWrites()", "true, r.AcceptsWrites()", stories, "./core/lifecycle/readiness"),
		one("clock goes back", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("clock believes any leap", "doubt", "core/clock/clock.go", "if behind > MaxTrustedOffset || c.untrusted && behind > MaxStep {", "if false {", clock, stories),
		one("clock restarts from the wall", "At is monotone for ever", node, "clock: clock.From(s.At)", "clock: clock.From(0)", sim, "./core/node TestTimeContinuesAfterRestart$"),
		one("batch is a view of the turn's arena", "effects do not outlive their turn", "adapters/loop/loop.go", "b.Arena = append(b.Arena, out.Body(f)...)", "b.Arena = out.Arena", sim, "./adapters/loop TestOrder$"),
		one("follower folds what is not durable", "reads show what is durable", "adapters/loop/loop.go", "\tvar upto types.LSN\n\tif err == nil {\n", "\tvar upto types.LSN\n\tif err == nil {\n\t\tl.folds <- sealed\n", "./adapters/loop TestOrder$", "./adapters/loop TestAnyOrder$"),
		one("copy forgets the ring's head", "CopyTo", "core/table/fifo.go", "dst.seed, dst.sum, dst.head, dst.count, dst.rows = f.seed, f.sum, f.head, f.count, rows", "dst.seed, dst.sum, dst.count, dst.rows = f.seed, f.sum, f.count, rows", table, sim, "./chaos/explore TestScopes/an_index"),
		one("a copy with the permits of another", "CopyTo", "core/gateway/admission/check.go", "\tdst.plain = a.plain\n", "", "./core/gateway/admission TestAgrees$", sim),
		alone("no hall calls anybody, and no story copies a node", one("a copy that calls as before", "CopyTo", "core/node/status.go", "\tn.upstreams.CopyTo(&dst.upstreams)\n", "", sim)),
		one("a copy with the answers of another", "CopyTo", "core/node/status.go", "\tn.held.CopyTo(&dst.held)\n", "", sim, "./chaos/explore TestScopes/same"),
		one("slot freed with a hole", "T1", "core/table/index.go", "if (n-home)&mask >= (n-s)&mask {", "if home > len(x.slots) {", table, stories, sim),
		one("codec drops a field", "a record is what was decided", "core/record/codec.go", "\tc.amount(&r.ToBalance)\n\tc.amount(&r.DebitedToday)\n", "\tc.amount(&r.ToBalance)\n\tvar none types.Amount\n\tc.amount(&none)\n", record, sim, "./chaos/explore TestScopes/same"),
		one("step changes what it does not record", "recovered state equals the live one", "core/node/frame.go", "n.state.Apply(index, &n.rec)\n", "n.state.Apply(index, &n.rec)\n\tn.state.Starts += uint64(n.rec.Nonce & 1)\n", sim, "./chaos/explore TestScopes/same"),
		one("roots swapped in the receipt", "golden vectors", "core/wallet/receipt/field.go", "p.in.Prev[:])", "p.in.Root[:])", "./core/wallet/receipt TestGolden$", "./core/wallet/receipt TestReceiptSaysItsRecord$"),
	}
}

func disk() []Mutant {
	const dir = "adapters/journalfile/"
	return []Mutant{
		one("header claims its own batch", "a mark never claims what is not durable", dir+"journal.go", "h := batch{first - 1, j.epoch,", "h := batch{sealed[len(sealed)-1].LSN, j.epoch,", journal, sim),
		one("recovered tail is not written anew", "what was read back may not be on the disk", dir+"recover.go", "j.begin(s.tail)", "j.begin(nil)", journal, sim),
		one("recovered tail is not synced", "what was read back may not be on the disk", dir+"journal.go", "if err := f.Sync(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("rename without a directory sync", "a name is there after SyncDir", dir+"journal.go", "if err := j.fs.SyncDir(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync the directory for \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("torn frame kept", "CRC32C", dir+"format.go", "if crc32.Checksum(buf[:end], castagnoli()) != u32(buf[end:]) {", "if false {", "./adapters/journalfile TestDamage$", "./adapters/journalfile TestEveryByte$"),
		one("chain is not looked at", "J1", dir+"scan.go", "f.Root != types.Root(it.root) {", "false {", "./adapters/journalfile TestBelievesNothing$", "./adapters/journalfile TestAnothersFrame$"),
		one("tail cut although something vouches for it", "damage before the durable end is said", dir+"scan.go", "if upto > last {", "if false {", journal, sim),
		one("segment read past its end", "a segment ends where its successor begins", dir+"scan.go", "for s.found.Last+1 < end && !s.over() {", "for !s.over() {", journal, sim),
		one("failed sync forgotten", "fsyncgate: a journal that failed takes nothing", dir+"journal.go", "\tj.failed = err\n\treturn err\n", "\treturn err\n", journal, sim),
	}
}

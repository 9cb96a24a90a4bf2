package mutants

// The checks that mutants are held against.
const (
	sim      = "./chaos/sim TestSeeds"
	stories  = "./core/node TestStories"
	ledger   = "./core/ledger"
	idem     = "./core/idem"
	record   = "./core/record"
	rendered = "./core/receipt"
	state    = "./core/state"
	table    = "./core/table"
	clock    = "./core/clock"
	nodeRoom = "./core/node"
	journal  = "./adapters/journalfile"
	shell    = "./adapters/loop"
)

// All is every mutant, other people's bugs among them.
func All() []Mutant {
	return append(append(money(), keys()...), append(promises(), disk()...)...)
}

// one is a mutant of one edit.
func one(name, holds, file, was, now string, kills ...string) Mutant {
	return Mutant{Name: name, Holds: holds, Edits: []Edit{{file, was, now}}, Kills: kills}
}

func money() []Mutant {
	const file = "core/ledger/ledger.go"
	return []Mutant{
		one("nonce at least for exactly", "M2", file, "case asked > next:", "case false:", ledger, sim),
		one("used nonce accepted", "M2: ron-wallet nonce rollback", file, "case asked < next:", "case false:", ledger, sim),
		one("nonce not used by a debit", "M2", file, "l.accounts.Set(from, account{r.Nonce})", "l.accounts.Set(from, account{r.Nonce - 1})", ledger, sim),
		one("no look at the funds", "M1: a balance below nothing", file, "if !enough {", "if !enough && r.Amount.Zero() {", ledger, sim),
		one("issue beyond the supply", "M1", file, "if !fits || words.MaxSupply().Less(issued) {", "if !fits {", ledger),
		one("day that never ends", "day ceiling", file, "if day != at.Day() {", "if day == 0 {", ledger),
		one("credit lost where the account is new", "M1", file, "v.balance = r.ToNow\n\t\tl.holding(k, v, &t)", "if _, ok := l.holdings.Get(k); ok {\n\t\t\tv.balance = r.ToNow\n\t\t}\n\t\tl.holding(k, v, &t)", ledger, sim),
		one("burn that leaves no trace", "M1", file, "kind.burned = r.ToNow", "", ledger, sim),
		one("tenant over its accounts", "M4", file, "int(t.accounts) >= l.limits.TenantAccounts)", "false)", ledger),
		one("hash without the day's spending", "state hash", "core/ledger/rows.go", "return v.spent.Mix(v.balance.Mix(h)).Mix(uint64(v.day))", "return v.balance.Mix(h).Mix(uint64(v.day))", ledger),
	}
}

func keys() []Mutant {
	const file = "core/idem/idem.go"
	return []Mutant{
		one("key of another tenant", "one key, one outcome, within its tenant", file, "return k.Name.Mix(k.Tenant.Mix(h))", "return k.Name.Mix(h)", idem),
		one("key that asks for something else", "422", file, "if found && s.Asked != asked {", "if false {", idem, stories, sim),
		one("key that leaves early", "never before its time", file, "if s.At.Plus(w.limits.TTL) > at {", "if s.At > at {", idem, stories, sim),
		one("key that never leaves", "the window ends at its time", file, "if s.At.Plus(w.limits.TTL) > at {", "if true {", idem, stories, sim),
		one("forgets one frame too many", "I1", file, "if s.Place.LSN > upto {", "if s.Place.LSN > upto+1 {", idem, sim),
		one("looked up after the nonce", "ron-wallet refused retry", "core/node/request.go", "case found:\n\t\treply.Place, reply.Replayed = place, true", "case found && place.LSN <= n.folded:\n\t\treply.Place, reply.Replayed = place, true\n\tcase found:\n\t\treply.Problem = event.NonceUsed", stories, sim),
		one("refusal that its key forgets", "stored refusals", "core/node/request.go", "if !why.Stored() {", "if why != event.None {", stories),
		one("nonce ahead is kept", "a request that overtook its predecessor is not poisoned", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retry},`, `NonceAhead:          {"nonce_conflict", 409, retry | stored},`, stories, "./core/event"),
		one("forgets without a record", "live and recovered state are equal", "core/node/node.go", "n.rec = record.Record{Kind: record.Forgot, Upto: upto}\n\tn.open(now, at, out)\n\tn.record(out)\n\treturn true", "n.state.Idem.Forget(upto)\n\treturn true", stories, sim),
	}
}

func promises() []Mutant {
	const node, reply = "core/node/node.go", "core/node/reply.go"
	return []Mutant{
		one("ack before durable", "nats-7564: After", reply, "if r.After <= n.folded {", "if true {", stories, sim),
		one("ack one frame early", "After", reply, "n.held.At(0).reply.After <= n.folded {", "n.held.At(0).reply.After <= n.folded+1 {", stories, sim),
		one("ack when durable and not folded", "nobody reads less than they were told", reply, "n.held.At(0).reply.After <= n.folded {", "n.held.At(0).reply.After <= n.durable {", sim),
		one("failed flush believed", "nothing from there on is acknowledged", node, "n.ready.Ail(words.JournalFailed, true)\n\tn.giveUp", "n.ready.Ail(words.JournalFailed, false)\n\tn.giveUp", stories, sim),
		one("expected nonce told too early", "a refusal tells of state too", "core/event/problem.go", `NonceAhead:          {"nonce_conflict", 409, retry},`, `NonceAhead:          {"nonce_conflict", 409, retry | blank},`, sim, "./core/event"),
		one("replay does not wait", "After", reply, "case r.Replayed && r.Place.LSN <= n.folded:", "case r.Replayed:", sim),
		one("nobody vouches for the last frame", "the last acknowledged batch has a successor", "core/node/due.go", "return n.booted && (!n.idle || n.clock.Leads())", "return n.booted && (false && !n.idle || n.clock.Leads())", sim),
		one("patience without end", "a held reply has a deadline", reply, "n.held.At(0).until <= now {", "false {", stories),
		one("due forgets the vouching frame", "Due", "core/node/due.go", "earlier(n.quiet.Plus(n.config.Vouch), n.vouches())", "", sim),
		one("stall that nobody notices", "a flush that takes too long stops writes", node, "n.flushing.Plus(n.config.Stall) <= now.Mono)", "false)", stories),
		one("flushes timed from the first of them", "a flush is timed from its own beginning", node, "	n.flushing = now.Mono\n	n.ready.Ail", "	n.ready.Ail", stories),
		one("backlog without a bound", "bytes that are not durable are bounded", "core/node/request.go", "case n.backlog+2*words.MaxRecord > n.config.Backlog:", "case false:", stories),
		one("expires by a doubted clock", "nothing expires by it", node, "if !any || n.clock.Doubted() ||", "if !any ||", stories),
		one("abort that skips the giving up", "what is given up is told so, and counted", node, "phase >= words.Aborting && !quiet {", "phase == words.Aborting {", stories),
		one("drain takes new work", "D2", "core/drain/drain.go", "return d.phase >= words.Draining }", "return d.phase >= words.Aborting }", stories, "./core/drain"),
		one("drain without end", "D1", "core/drain/drain.go", "(quiet || d.until <= now) {", "quiet {", stories, "./core/drain"),
		one("dead child is ready", "ron-node dead child", "core/ready/ready.go", "r.met.Has(words.NeedHTTP), r.Writes()", "true, r.Writes()", stories, "./core/ready"),
		one("clock goes back", "C1", "core/clock/clock.go", "c.at = max(even-slew, c.wall)", "c.at = c.wall", clock, sim),
		one("clock believes any leap", "doubt", "core/clock/clock.go", "if behind > Trust || c.doubted && behind > Step {", "if false {", clock),
		one("clock restarts from the wall", "At is monotone for ever", node, "clock: clock.From(s.At)", "clock: clock.From(0)", sim),
		one("batch is a view of the turn's arena", "effects do not outlive their turn", "adapters/loop/loop.go", "b.Arena = append(b.Arena, out.Body(f)...)", "b.Arena = out.Arena", sim),
		one("follower folds what is not durable", "reads show what is durable", "adapters/loop/loop.go", "	var upto words.LSN\n	if err == nil {\n", "	var upto words.LSN\n	if err == nil {\n		l.folds <- sealed\n", shell),
		one("copy forgets the ring's head", "CopyTo", "core/table/fifo.go", "dst.seed, dst.sum, dst.head, dst.count, dst.rows = f.seed, f.sum, f.head, f.count, rows", "dst.seed, dst.sum, dst.count, dst.rows = f.seed, f.sum, f.count, rows", table, sim),
		one("slot freed with a hole", "T1", "core/table/index.go", "if (n-home)&mask >= (n-s)&mask {", "if home > len(x.slots) {", table),
		one("codec drops a field", "a record is what was decided", "core/record/codec.go", "	c.amount(&r.Spent)\n", "	var none words.Amount\n	c.amount(&none)\n", record, sim),
		one("step changes what it does not record", "recovered state equals the live one", node, "n.state.Apply(index, &n.rec)\n", "n.state.Apply(index, &n.rec)\n\tn.state.Boots += uint64(n.rec.Nonce & 1)\n", sim),
		one("roots swapped in the receipt", "golden vectors", "core/receipt/receipt.go", "`\"prev_root\":\"`...), s.Prev[:])", "`\"prev_root\":\"`...), s.Root[:])", rendered),
	}
}

func disk() []Mutant {
	const dir = "adapters/journalfile/"
	return []Mutant{
		one("header claims its own batch", "a mark never claims what is not durable", dir+"journal.go", "h := batch{first - 1, j.epoch,", "h := batch{sealed[len(sealed)-1].LSN, j.epoch,", journal, sim),
		one("recovered tail is not written anew", "what was read back may not be on the disk", dir+"recover.go", "j.begin(s.tail)", "j.begin(nil)", journal, sim),
		one("recovered tail is not synced", "what was read back may not be on the disk", dir+"journal.go", "if err := f.Sync(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("rename without a directory sync", "a name is there after SyncDir", dir+"journal.go", "if err := j.fs.SyncDir(); err != nil {\n\t\treturn errors.Join(failing(event.SyncFailed, \"sync the directory for \"+name, err), f.Close())\n\t}\n", "", journal, sim),
		one("torn frame kept", "CRC32C", dir+"format.go", "if crc32.Checksum(buf[:end], castagnoli()) != u32(buf[end:]) {", "if false {", journal),
		one("chain is not looked at", "J1", dir+"scan.go", "f.Root != words.Root(it.root) {", "false {", journal),
		one("tail cut although something vouches for it", "damage before the durable end is said", dir+"scan.go", "if upto > last {", "if false {", journal, sim),
		one("segment read past its end", "a segment ends where its successor begins", dir+"scan.go", "for s.found.Last+1 < end {", "for {", journal, sim),
		one("failed sync forgotten", "fsyncgate: a journal that failed takes nothing", dir+"journal.go", "\tj.failed = err\n\treturn err\n", "\treturn err\n", journal, sim),
	}
}

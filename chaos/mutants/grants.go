package mutants

// grants are bugs of what an API key covers, and of when it ends.
func grants() []Mutant {
	const (
		file, dump = "core/keyring/keyring.go", "core/keyring/dump.go"
		story      = "./core/keyring TestKeys$"
		twin       = "./core/keyring TestAgreesOnAll"
		matrix     = "./core/keyring TestMatrix$"
		batches    = "./core/keyring TestMatrixOfBatches"
		inside     = "./core/keyring TestCheckSees|TestCopies|TestHashForgetsNothing"
		load       = "./core/keyring TestDamageIsNotLoaded|TestLayout|TestDumpsAreLoaded"
	)
	return []Mutant{
		one("revoked key still allows", "a revoked key may nothing", file, "return !g.has(revoked) &&", "return true &&", story, twin, matrix),
		one("key that ends a moment late", "from its expiry on it is nobody's", file, "at < g.expires)", "at <= g.expires)", story, twin, matrix),
		one("key that never ends", "from its expiry on it is nobody's", file, "(g.expires == 0 || at < g.expires)", "true", story, twin, matrix),
		one("patterns not asked for batch items", "each item of a batch is covered", file, "g.has(bounded) && !r.covers[place].permits(item)", "in.Op != event.Batch && g.has(bounded) && !r.covers[place].permits(item)", story, twin, batches),
		one("only the first item of a batch is asked", "each item of a batch is covered", file, "for _, item := range in.Each {", "for i, item := range in.Each {\n\t\tif i > 0 {\n\t\t\tbreak\n\t\t}", story, twin, batches),
		one("credit side asked instead of debit", "whoever pays must be covered", file, "item.Mine().Text", "item.To.Text", story, twin, matrix),
		one("debit side asked of what comes in", "whose it becomes must be covered", "core/event/request.go", "if r.Op == Issue || r.Op == Capture {", "if r.Op == Issue {", story, twin, matrix),
		one("asset not asked", "assets by pattern", file, "words.Covers(&c.assets, item.Asset.Text))", "true)", story, twin, matrix),
		one("one pattern where there are both", "accounts and assets", file, "return words.Covers(&c.accounts, item.Mine().Text) &&", "return words.Covers(&c.accounts, item.Mine().Text) ||", story, twin, matrix),
		one("patterns of assets alone are not seen", "K3", file, "return !c.accounts.Any() || !c.assets.Any()", "return !c.accounts.Any()", twin, matrix),
		one("exact name covers all that begin so", "patterns", "core/words/patterns.go", "} else if string(name) == string(one) {", "} else if len(name) >= len(one) && string(name[:len(one)]) == string(one) {", story, twin, matrix),
		one("any scope for all", "every scope that is asked for", file, "return ok && g.lives(at, t) && g.scopes&scope == scope", "return ok && g.lives(at, t) && g.scopes&scope != 0", story, twin),
		one("key of another tenant is permitted", "nothing crosses tenants", file, "if !g.lives(at, in.Tenant) {", "if !g.lives(at, g.tenant) {", story, twin, matrix),
		one("one key lives through a restore", "Disowned: no key of before is anybody's", file, "	for place := range r.keys.Len() {\n\t\tr.revoke(uint32(place))", "	for place := range r.keys.Len() - 1 {\n\t\tr.revoke(uint32(place))", story, twin),
		one("revoked first key is still the first", "K1", file, "if r.first == place+1 {", "if false {", story, twin),
		one("copy forgets who is first", "CopyTo", file, "dst.covers, dst.first = append(dst.covers[:0], r.covers...), r.first", "dst.covers = append(dst.covers[:0], r.covers...)", twin, inside),
		one("hash without what a key covers", "state hash", file, ".Mix(uint64(g.expires)).Mix(uint64(g.cover))", ".Mix(uint64(g.expires))", inside, "./core/keyring TestKeysAreApart$"),
		one("digest without the label", "state hash", file, "c.accounts.Mix(c.label.Mix(0))", "c.accounts.Mix(0)", inside, "./core/keyring TestKeysAreApart$"),
		one("dump forgets who is revoked", "a snapshot is the state", dump, "	if k.Revoked {\n\t\tbits |= bitRevoked\n\t}\n", "", story, twin, load),
		one("load takes a second first key", "damaged input is an error", dump, "k.Boot && !k.Revoked && r.first > 0:", "false:", load, "./core/keyring TestLoadsWhatCouldBe$"),
	}
}

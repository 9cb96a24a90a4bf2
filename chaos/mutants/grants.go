package mutants

// grants are bugs of what an API key covers, and of when it ends.
func grants() []Mutant {
	const (
		file, dump = "core/access/access.go", "core/access/dump.go"
		story      = "./core/access TestKeys$"
		twin       = "./core/access TestAgreesOnAll"
		matrix     = "./core/access TestMatrix$"
		batches    = "./core/access TestMatrixOfBatches"
		inside     = "./core/access TestCheckSees|TestCopies|TestHashForgetsNothing"
		load       = "./core/access TestDamageIsNotLoaded|TestLayout|TestDumpsAreLoaded"
	)
	return []Mutant{
		one("revoked key still allows", "a revoked key may nothing", file, "return !g.has(revoked) &&", "return true &&", story, twin, matrix),
		one("key that ends a moment late", "from its expiry on it is nobody's", file, "at < g.expires)", "at <= g.expires)", story, twin, matrix),
		one("key that never ends", "from its expiry on it is nobody's", file, "(g.expires == 0 || at < g.expires)", "true", story, twin, matrix),
		one("patterns not asked for batch items", "each item of a batch is covered", file, "g.has(restricted) && !r.covers[place].permits(item)", "in.Op != event.Batch && g.has(restricted) && !r.covers[place].permits(item)", story, twin, batches),
		one("only the first item of a batch is asked", "each item of a batch is covered", file, "for _, item := range in.Each {", "for i, item := range in.Each {\n\t\tif i > 0 {\n\t\t\tbreak\n\t\t}", story, twin, batches),
		one("credit side asked instead of debit", "whoever pays must be covered", file, "item.AuthorizedAccount().Text", "item.To.Text", story, twin, matrix),
		one("debit side asked of what comes in", "whose it becomes must be covered", "core/event/request.go", "if r.Op == Issue || r.Op == Capture {", "if r.Op == Issue {", story, twin, matrix),
		one("asset not asked", "assets by pattern", file, "types.Covers(&c.assets, item.Asset.Text))", "true)", story, twin, matrix),
		one("one pattern where there are both", "accounts and assets", file, "return types.Covers(&c.accounts, item.AuthorizedAccount().Text) &&", "return types.Covers(&c.accounts, item.AuthorizedAccount().Text) ||", story, twin, matrix),
		one("patterns of assets alone are not seen", "K3", file, "return !c.accounts.CoversAll() || !c.assets.CoversAll()", "return !c.accounts.CoversAll()", twin, matrix),
		one("exact name covers all that begin so", "patterns", "core/types/patterns.go", "} else if string(name) == string(one) {", "} else if len(name) >= len(one) && string(name[:len(one)]) == string(one) {", story, twin, matrix),
		one("any scope for all", "every scope that is asked for", file, "return ok && g.isActive(at, t) && g.scopes&scope == scope", "return ok && g.isActive(at, t) && g.scopes&scope != 0", story, twin),
		one("key of another tenant is permitted", "nothing crosses tenants", file, "if !g.isActive(at, in.Tenant) {", "if !g.isActive(at, g.tenant) {", story, twin, matrix),
		one("one key lives through a restore", "Disowned: no key of before is anybody's", file, "	for place := range r.keys.Len() {\n\t\tr.revoke(uint32(place))", "	for place := range r.keys.Len() - 1 {\n\t\tr.revoke(uint32(place))", story, twin),
		one("revoked first key is still the first", "K1", file, "if r.bootstrapAt == place+1 {", "if false {", story, twin),
		one("copy forgets who is first", "CopyTo", file, "dst.covers, dst.bootstrapAt = append(dst.covers[:0], r.covers...), r.bootstrapAt", "dst.covers = append(dst.covers[:0], r.covers...)", twin, inside),
		one("hash without what a key covers", "state hash", file, ".Mix(uint64(g.expires)).Mix(uint64(g.restriction))", ".Mix(uint64(g.expires))", inside, "./core/access TestKeysAreApart$"),
		one("digest without the label", "state hash", file, "c.accounts.HashInto(c.label.HashInto(0))", "c.accounts.HashInto(0)", inside, "./core/access TestKeysAreApart$"),
		one("dump forgets who is revoked", "a snapshot is the state", dump, "	if k.Revoked {\n\t\tbits |= bitRevoked\n\t}\n", "", story, twin, load),
		one("load takes a second first key", "damaged input is an error", dump, "k.Bootstrap && !k.Revoked && r.bootstrapAt > 0:", "false:", load, "./core/access TestLoadsWhatCouldBe$"),
	}
}

package mutants

// grants are bugs of the scopes, patterns and expiry of API keys.
func grants() []Mutant {
	const (
		file, dump = "core/access/access.go", "core/access/dump.go"
		transcript = "./core/access TestKeys$"
		model      = "./core/access TestModelCoversAllAnswers"
		matrix     = "./core/access TestMatrix$"
		batches    = "./core/access TestMatrixOfBatches"
		inside     = "./core/access TestCheckFinds|TestCopies|TestHashForgetsNothing"
		load       = "./core/access TestDamagedDumpIsNotLoaded|TestLayout|TestDumpsAreLoaded"
	)
	return []Mutant{
		one("revoked key is still allowed", "a revoked key is invalid", file, "return !g.has(revoked) &&", "return true &&", transcript, model, matrix),
		one("key is valid at its expiry", "a key is invalid from its expiry on", file, "at < g.expires)", "at <= g.expires)", transcript, model, matrix),
		one("key never expires", "a key is invalid from its expiry on", file, "(g.expires == 0 || at < g.expires)", "true", transcript, model, matrix),
		one("patterns are not checked for a batch", "each item of a batch is covered", file, "g.has(restricted) && !r.covers[place].permits(item)", "in.Op != event.Batch && g.has(restricted) && !r.covers[place].permits(item)", transcript, model, batches),
		one("patterns are checked for the first item only", "each item of a batch is covered", file, "for _, item := range in.Each {", "for i, item := range in.Each {\n\t\tif i > 0 {\n\t\t\tbreak\n\t\t}", transcript, model, batches),
		one("credited account is checked for a debit", "the debited account must be covered", file, "item.AuthorizedAccount().Text", "item.To.Text", transcript, model, matrix),
		one("debited account is checked for a capture", "the credited account must be covered", "core/event/request.go", "if r.Op == Issue || r.Op == Capture {", "if r.Op == Issue {", transcript, model, matrix),
		one("ref of a charge is not reserved", "no key of an account can use up the ref of a charge", file, "return c.accounts.CoversAll() || !types.IsChargeRef(item.Ref.Text)", "return true", transcript, model, matrix, transcripts),
		alone("both problems have one code", one("reserved ref is reported as a missing grant", "a rejection names its cause", "core/node/request.go", "why == event.Forbidden && n.state.Keys.RejectsRef(in)", "why == event.Unauthorized && n.state.Keys.RejectsRef(in)", transcripts)),
		one("asset patterns are not checked", "assets by pattern", file, "types.Covers(&c.assets, item.Asset.Text))", "true)", transcript, model, matrix),
		one("account or asset pattern is enough", "accounts and assets", file, "return types.Covers(&c.accounts, item.AuthorizedAccount().Text) &&", "return types.Covers(&c.accounts, item.AuthorizedAccount().Text) ||", transcript, model, matrix),
		one("asset patterns without account patterns are ignored", "K3", file, "return !c.accounts.CoversAll() || !c.assets.CoversAll()", "return !c.accounts.CoversAll()", model, matrix),
		one("exact pattern matches as a prefix", "patterns", "core/types/patterns.go", "} else if string(name) == string(one) {", "} else if len(name) >= len(one) && string(name[:len(one)]) == string(one) {", transcript, model, matrix),
		one("one scope is enough", "every requested scope is needed", file, "return ok && g.isActive(at, t) && g.scopes&scope == scope", "return ok && g.isActive(at, t) && g.scopes&scope != 0", transcript, model),
		one("tenant of a key is not checked", "no operation crosses tenants", file, "if !g.isActive(at, in.Tenant) {", "if !g.isActive(at, g.tenant) {", transcript, model, matrix),
		one("one key survives a restore", "a restore revokes all keys", file, "	for place := range r.keys.Len() {\n\t\tr.revoke(uint32(place))", "	for place := range r.keys.Len() - 1 {\n\t\tr.revoke(uint32(place))", transcript, model),
		one("revoked bootstrap key stays the bootstrap key", "K1", file, "if r.bootstrapAt == place+1 {", "if false {", transcript, model),
		one("copy loses the bootstrap key", "CopyTo", file, "dst.covers, dst.bootstrapAt = append(dst.covers[:0], r.covers...), r.bootstrapAt", "dst.covers = append(dst.covers[:0], r.covers...)", model, inside),
		one("restriction of a key is not hashed", "state hash", file, ".Mix(uint64(g.expires)).Mix(uint64(g.restriction))", ".Mix(uint64(g.expires))", inside, "./core/access TestKeysAreApart$"),
		one("label of a key is not hashed", "state hash", file, "c.accounts.HashInto(c.label.HashInto(0))", "c.accounts.HashInto(0)", inside, "./core/access TestKeysAreApart$"),
		one("dump loses revocations", "a snapshot is the state", dump, "	if k.Revoked {\n\t\tbits |= bitRevoked\n\t}\n", "", transcript, model, load),
		one("second bootstrap key is loaded", "invalid input is an error", dump, "k.Bootstrap && !k.Revoked && r.bootstrapAt > 0:", "false:", load, "./core/access TestLoadRejectsImpossibleKeyrings$"),
	}
}

package mutants

const (
	spoken  = "./core/types"
	batches = "./fuzz FuzzBatch"
)

// answers are what is asked, how it is written down, and what is shown of it.
func answers() []Mutant {
	const shown, fields, codec, request, patterns = "core/wallet/receipt/receipt.go", "core/wallet/receipt/field.go", "core/record/codec.go",
		"core/event/request.go", "core/types/patterns.go"
	return []Mutant{
		one("what the index alone has is not found", "a key is found in all its time", "core/node/request.go", "in.Prior, at)\n\tswitch {\n\tcase !n.recovered, n.drain.Refusing():\n\t\treply.Problem = event.Unavailable", "command.PriorOutcome{}, at)\n\tswitch {\n\tcase !n.recovered, n.drain.Refusing():\n\t\treply.Problem = event.Unavailable", "./core/node TestTranscripts/look-again$", sim),
		one("item under its batch's id", "an item is shown as it is shown alone", shown, "if item.index++; i > 0 {", "if i > 0 {", rendered, batches),
		one("batch shows a neighbour's record", "nothing crosses tenants", shown, " || r.Tenant != p.r.Tenant", "", "./core/wallet/receipt TestBatchWithoutItems$", "./core/wallet/receipt TestNothingCrossesTenants$"),
		one("all or nothing, and something of it", "an atomic batch has no refusals", shown, " || p.r.Atomic && r.Kind == record.Rejected", "", rendered, batches),
		one("batch that hides whose problem it is", "golden vectors", "core/wallet/receipt/problem.go", "f.Index, f.Item = r.Items, true", "f.Index = r.Items", "./core/wallet/receipt TestGoldenScenes$", "./core/wallet/receipt TestLaterReceiptsSayTheirRecords$"),
		one("ref used, and nobody has it", "ref_used says the txid", "core/wallet/receipt/problem.go", "Used: r.PriorRef}", "}", "./core/wallet/receipt TestGoldenScenes$", "./core/wallet/receipt TestLaterReceiptsSayTheirRecords$"),
		one("hash without the hold", "anybody can hash a receipt", fields, "from, heldMinor, holdID, idem, indexOf", "from, heldMinor, idem, indexOf", rendered, batches),
		one("hold that does not say its end", "golden vectors", fields, "return k == record.HoldOpened\n", "return false\n", "./core/wallet/receipt TestGoldenScenes$", "./core/wallet/receipt TestLaterReceiptsSayTheirRecords$"),
		one("expiry that nobody counts", "M3: an expiry is a movement", "core/record/record.go", "HoldReleased, HoldExpired, FreezeChanged:\n\t\treturn true", "HoldReleased, FreezeChanged:\n\t\treturn true", record, rendered),
		one("ref that is not written down", "a record is what was decided", codec, "has |= ref", "has |= 0", record, rendered),
		one("movement that says it is a hold", "a record tells of its own operation", codec, "!r.Kind.mayRecord(r.Op)", "!r.Op.Known()", "./core/record TestRefuses$", "./core/record TestWritesNothingUnreadable$"),
		one("key of no good name", "a journal is not poisoned by what it was given", codec, "len(label) > 0 && types.CheckLabel(label) != nil", "false", "./core/record TestRefuses$", "./core/record TestWritesNothingUnreadable$"),
		one("same key, another ref", "422", request, "r.Op > Burn || len(r.Ref.Text) > 0)", "r.Op > Burn)", "./core/event TestAskedIsFrozen$", "./core/event TestEveryPartIsAsked$"),
		one("first digests made anew", "a key asks for the same after years", request, "r.Item.seal(b, r.Op > Burn || len(r.Ref.Text) > 0)", "r.Item.seal(b, true)", "./core/event TestAskedIsFrozen$", "./core/event TestAskedAgrees$"),
		one("freeze within a batch", "a batch is of money", request, "r.Items[i].Op > Release", "r.Items[i].Op >= Batch", "./core/event TestBatches$", "./core/event TestEveryShape$"),
		one("batch that says more than its items", "what is let in is what is sealed", request, " || !r.Item.isEmpty()", "", "./core/event TestBatches$", "./core/event TestABatchSaysNothingItself$"),
		one("pattern that covers whatever is long enough", "patterns", patterns, "string(name[:n]) == string(one[:n])", "true", spoken, "./fuzz FuzzPatterns"),
		one("list that covers nobody", "a key without patterns covers all", patterns, "\treturn p.size == 0\n}", "\treturn false\n}", spoken, "./fuzz FuzzPatterns"),
	}
}

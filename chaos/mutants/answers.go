package mutants

const (
	spoken  = "./core/types"
	batches = "./fuzz FuzzBatch"
)

// answers are bugs of requests, their records and their answers.
func answers() []Mutant {
	const shown, fields, codec, request, patterns = "core/wallet/receipt/receipt.go", "core/wallet/receipt/field.go", "core/record/codec.go",
		"core/event/request.go", "core/types/patterns.go"
	return []Mutant{
		one("key of the index is ignored", "a key is found until its TTL ends", "core/node/request.go", "in.Prior, at)\n\tswitch {\n\tcase !n.recovered, n.refuses(in.Permit):\n\t\treply.Problem = event.Unavailable", "command.PriorOutcome{}, at)\n\tswitch {\n\tcase !n.recovered, n.refuses(in.Permit):\n\t\treply.Problem = event.Unavailable", "./core/node TestTranscripts/look-again$", sim),
		one("item has the ID of its batch", "an item is rendered as a single answer", shown, "if item.index++; i > 0 {", "if i > 0 {", rendered, batches),
		one("batch renders records of another tenant", "no operation crosses tenants", shown, " || r.Tenant != p.r.Tenant", "", "./core/wallet/receipt TestBatchWithoutItemsHasNoAnswer$", "./core/wallet/receipt TestAnswersNeverShowOtherTenants$"),
		one("atomic batch with a rejected item is rendered", "an atomic batch has no rejected items", shown, " || p.r.Atomic && r.Kind == record.Rejected", "", rendered, batches),
		one("batch problem does not name its item", "golden vectors", "core/wallet/receipt/problem.go", "f.Index, f.Item = r.Items, true", "f.Index = r.Items", "./core/wallet/receipt TestGoldenMatchesScenes$", "./core/wallet/receipt TestLaterReceiptsMatchRecords$"),
		one("ref_used does not name the record", "ref_used has the txid", "core/wallet/receipt/problem.go", "Used: r.PriorRef}", "}", "./core/wallet/receipt TestGoldenMatchesScenes$", "./core/wallet/receipt TestLaterReceiptsMatchRecords$"),
		one("receipt hash does not cover the hold", "the receipt hash covers every field", fields, "from, heldMinor, holdID, idem, indexOf", "from, heldMinor, idem, indexOf", rendered, batches),
		one("receipt of a hold lacks its expiry", "golden vectors", fields, "return k == record.HoldOpened\n", "return false\n", "./core/wallet/receipt TestGoldenMatchesScenes$", "./core/wallet/receipt TestLaterReceiptsMatchRecords$"),
		one("expiry has no seq", "M3: an expiry is a movement", "core/record/record.go", "HoldReleased, HoldExpired, FreezeChanged:\n\t\treturn true", "HoldReleased, FreezeChanged:\n\t\treturn true", record, rendered),
		one("ref is not encoded", "a record is complete", codec, "has |= ref", "has |= 0", record, rendered),
		one("operation of a record kind is not checked", "a record has an operation of its kind", codec, "!r.Kind.mayRecord(r.Op)", "!r.Op.Known()", "./core/record TestReadRejectsInvalidRecords$", "./core/record TestAddPanicsOnUnreadableRecord$"),
		one("label of an API key is not checked", "a journal contains valid records only", codec, "len(label) > 0 && types.CheckLabel(label) != nil", "false", "./core/record TestReadRejectsInvalidRecords$", "./core/record TestAddPanicsOnUnreadableRecord$"),
		one("ref is not part of the request hash", "422", request, "r.Op > Burn || len(r.Ref.Text) > 0)", "r.Op > Burn)", "./core/event TestRequestHashIsFrozen$", "./core/event TestEveryFieldIsHashed$"),
		one("request hash of old operations changes", "request hashes are permanent", request, "r.Item.seal(b, r.Op > Burn || len(r.Ref.Text) > 0)", "r.Item.seal(b, true)", "./core/event TestRequestHashIsFrozen$", "./core/event TestRequestHashMatchesContract$"),
		one("freeze in a batch is accepted", "a batch has movements only", request, "r.Items[i].Op > Release", "r.Items[i].Op >= Batch", "./core/event TestBatches$", "./core/event TestOperationFields$"),
		one("batch with fields of an item is accepted", "the hash covers the whole request", request, " || !r.Item.isEmpty()", "", "./core/event TestBatches$", "./core/event TestBatchDigestIgnoresItem$"),
		one("pattern matches any name of its length", "patterns", patterns, "string(name[:n]) == string(one[:n])", "true", spoken, "./fuzz FuzzPatterns"),
		one("empty pattern list covers no name", "a key without patterns covers all", patterns, "\treturn p.size == 0\n}", "\treturn false\n}", spoken, "./fuzz FuzzPatterns"),
	}
}

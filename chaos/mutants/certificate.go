package mutants

// certificate are the ways in which a certificate would say yes too often, or no. Each is
// killed by the rule that it breaks, and most by the search as well.
func certificate() []Mutant {
	const (
		file, slots = "models/history/certify.go", "models/history/slot.go"

		rules, agrees, sizes = "./models/history TestRules", "./models/history TestAgrees", "./models/history TestPlacesOfAllSizes"
	)
	return []Mutant{
		one("certificate without real time", "order in time", file, "if op.Return < w.latest {", "if false {", rules, agrees),
		one("certificate that looks back one op", "order in time", file, "if op.Call > w.latest {", "if true {", rules, agrees),
		one("certificate that takes one instant for two", "order in time", file, "if op.Return < w.latest {", "if op.Return <= w.latest && op.Call < w.latest {", rules, agrees),
		one("unknown effects before their call", "order in time", file, "if op.Call > w.latest {", "if op.Call > w.latest && op.Return < Never {", rules, agrees),
		one("reads of any time", "order in time", file, "if f := w.time(int(i)); f != nil {", "if f := w.time(int(i)); f != nil && false {", rules, agrees),
		one("reads older than a change", "order in time", file, "if !all && w.ops[i].Return >= call {", "if w.ops[i].Return >= call {", rules, agrees),
		one("reads that must have seen a refusal", "a read saw what it says", file, "w.settle(op.Call, changed)", "w.settle(op.Call, changed || true)", rules, agrees),
		one("reads as they were opened", "order in time", file, "return cmp.Compare(w.ops[a].Call, w.ops[b].Call)", "return cmp.Compare(w.ops[b].Call, w.ops[a].Call)", rules, agrees),
		one("reads before the write that they saw", "a read saw what it says", file, "slot{pack(op.Place), int32(i)}", "slot{pack(op.Place) - uint64(kind-Write), int32(i)}", rules, agrees),
		one("unknown, in the journal and dropped", "an unknown outcome is the journal's", file,
			"\top := &w.ops[i]\n\tanswer, changed :=", "\top := &w.ops[i]\n\tif op.Return == Never {\n\t\treturn nil\n\t}\n\tanswer, changed :=", rules, agrees),
		one("unknown, and held to an answer", "nobody was answered", file, "op.Return == Never || op.Answer == want", "op.Answer == want", rules, agrees),
		one("unknown, and done as often as it is there", "one effect a key", file, "\t\tdelete(w.doubts, e.Key)\n", "", rules, agrees),
		one("balances that nobody compares", "answers are the twin's", file, "return w.compare(int(i), answer)", "_ = answer\n\treturn nil", rules, agrees),
		one("receipts that nobody compares", "answers are the twin's", file, "return w.compare(i, answer)", "_ = answer\n\treturn nil", rules, agrees),
		one("acknowledged, lost and certified", "what was answered is in the journal", file, "return w.fault(Lost, int(i))", "return nil", rules, agrees),
		one("the last ones lost and certified", "what was answered is in the journal", file, "\tfor len(w.slots) > 0 {", "\tfor false {", rules, agrees),
		one("another's record for one's own", "what was answered is in the journal", file, "if w.ops[op].Key != e.Key {", "if false {", rules, agrees),
		one("records that nobody asked for", "the journal has what was asked", file, "\tif f != nil {\n\t\treturn f\n\t}\n\top := &w.ops[i]",
			"\tif f != nil && i < 0 {\n\t\treturn nil\n\t}\n\tif f != nil {\n\t\treturn f\n\t}\n\top := &w.ops[i]", rules, agrees),
		one("a journal in any order", "places ascend", file, "if at <= pack(w.last) {", "if false {", rules, agrees),
		one("answers from before the call", "a return is behind its call", file, "case op.Return < op.Call:", "case false:", rules, "./models/history TestMovedIsTheSame$"),
		one("places without their index", "places ascend", slots, "uint64(p.LSN)<<16 | uint64(p.Index)", "uint64(p.LSN) << 16", agrees, sizes),
		one("places of three bytes", "places ascend", slots, "shift < 64", "shift < 40", sizes, "./models/history TestMovedIsTheSame$"),
	}
}

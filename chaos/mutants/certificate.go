package mutants

// certificate are bugs of the certificate of histories. Each is detected by the rule that it
// breaks, and most by the search as well.
func certificate() []Mutant {
	const (
		file, slots = "models/history/certify.go", "models/history/slot.go"

		rules, agrees, sizes = "./models/history TestCertificateRules", "./models/history TestMatchesSearch", "./models/history TestSlotsSortAnyPosition"
	)
	return []Mutant{
		one("real time is not checked", "order in time", file, "if op.Return < w.latest {", "if false {", rules, agrees),
		one("real time is compared with the last call only", "order in time", file, "if op.Call > w.latest {", "if true {", rules, agrees),
		one("equal instants count as overlapping", "order in time", file, "if op.Return < w.latest {", "if op.Return <= w.latest && op.Call < w.latest {", rules, agrees),
		one("unanswered write may precede its call", "order in time", file, "if op.Call > w.latest {", "if op.Call > w.latest && op.Return < Never {", rules, agrees),
		one("time of reads is not checked", "order in time", file, "if f := w.time(int(i)); f != nil {", "if f := w.time(int(i)); f != nil && false {", rules, agrees),
		one("read may precede an earlier change", "order in time", file, "if !all && w.ops[i].Return >= call {", "if w.ops[i].Return >= call {", rules, agrees),
		one("read must have seen a rejection", "a read saw what it claims", file, "w.settle(op.Call, changed)", "w.settle(op.Call, changed || true)", rules, agrees),
		one("open reads are in the wrong order", "order in time", file, "return cmp.Compare(w.ops[a].Call, w.ops[b].Call)", "return cmp.Compare(w.ops[b].Call, w.ops[a].Call)", rules, agrees),
		one("read precedes the write that it saw", "a read saw what it claims", file, "slot{pack(op.Place), int32(i)}", "slot{pack(op.Place) - uint64(kind-Write), int32(i)}", rules, agrees),
		one("unanswered write in the journal is ignored", "the journal decides about unanswered writes", file,
			"\top := &w.ops[i]\n\tanswer, changed :=", "\top := &w.ops[i]\n\tif op.Return == Never {\n\t\treturn nil\n\t}\n\tanswer, changed :=", rules, agrees),
		one("unanswered write is compared", "an unanswered call has no answer", file, "op.Return == Never || op.Answer == want", "op.Answer == want", rules, agrees),
		one("unanswered write may occur twice", "one effect per key", file, "\t\tdelete(w.doubts, e.Key)\n", "", rules, agrees),
		one("answers of reads are not compared", "answers equal those of the model", file, "return w.compare(int(i), answer)", "_ = answer\n\treturn nil", rules, agrees),
		one("answers of writes are not compared", "answers equal those of the model", file, "return w.compare(i, answer)", "_ = answer\n\treturn nil", rules, agrees),
		one("lost write is certified", "an answered write is in the journal", file, "return w.fault(Lost, int(i))", "return nil", rules, agrees),
		one("lost last writes are certified", "an answered write is in the journal", file, "\tfor len(w.slots) > 0 {", "\tfor false {", rules, agrees),
		one("record of another operation is accepted", "an answered write is in the journal", file, "if w.ops[op].Key != e.Key {", "if false {", rules, agrees),
		one("record without an operation is accepted", "a record belongs to an operation", file, "\tif f != nil {\n\t\treturn f\n\t}\n\top := &w.ops[i]",
			"\tif f != nil && i < 0 {\n\t\treturn nil\n\t}\n\tif f != nil {\n\t\treturn f\n\t}\n\top := &w.ops[i]", rules, agrees),
		one("order of the journal is not checked", "positions ascend", file, "if at <= pack(w.last) {", "if false {", rules, agrees),
		one("answer before its call is accepted", "a return is after its call", file, "case op.Return < op.Call:", "case false:", rules, "./models/history TestVerdictIgnoresAbsolutePositions$"),
		one("position ignores its index", "positions ascend", slots, "uint64(p.LSN)<<16 | uint64(p.Index)", "uint64(p.LSN) << 16", agrees, sizes),
		one("position has three bytes", "positions ascend", slots, "shift < 64", "shift < 40", sizes, "./models/history TestVerdictIgnoresAbsolutePositions$"),
	}
}

package history_test

import (
	"slices"

	"macronode/core/types"
	"macronode/models/history"
)

// A lie is one way to spoil a history. It reports whether it changed anything.
type lie struct {
	name string
	tell func(s *execution, dice *types.Rand) bool
}

var lies = []lie{
	{"answer changed", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, answered)
		if op == nil {
			return false
		}
		switch {
		case op.Answer.why != "" && dice.Uint64n(2) == 0:
			op.Answer = answer{nonce: op.Answer.nonce}
		case dice.Uint64n(2) == 0:
			op.Answer.nonce++
		default:
			op.Answer.from++
		}
		return true
	}},
	{"answered positions swapped", func(s *execution, dice *types.Rand) bool {
		a, b := some(s, dice, writes), some(s, dice, writes)
		if a == nil || a == b {
			return false
		}
		a.Place, b.Place = b.Place, a.Place
		return true
	}},
	{"order of the journal and of the answers swapped", func(s *execution, dice *types.Rand) bool {
		if len(s.journal) < 2 {
			return false
		}
		i := int(dice.Uint64n(uint64(len(s.journal) - 1)))
		j := min(i+1+int(dice.Uint64n(2)), len(s.journal)-1)
		a, b := &s.journal[i], &s.journal[j]
		a.Key, b.Key = b.Key, a.Key
		s.tellPlaces()
		return true
	}},
	{"done otherwise than in the journal's order", func(s *execution, dice *types.Rand) bool {
		if len(s.journal) < 2 {
			return false
		}
		i := int(dice.Uint64n(uint64(len(s.journal) - 1)))
		order := slices.Clone(s.journal)
		order[i].Key, order[i+1].Key = order[i+1].Key, order[i].Key
		s.answerAgain(order)
		return true
	}},
	{"earlier or later than it was", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, answered)
		if op == nil {
			return false
		}
		by := types.Instant(2 + dice.Uint64n(12))
		if dice.Uint64n(2) == 0 {
			by = -by
		}
		op.Call, op.Return = op.Call+by, op.Return+by
		return true
	}},
	{"called later than it had its effect", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, func(op *op) bool { return op.Kind == history.Write && op.Return == history.Never })
		if op == nil {
			return false
		}
		op.Call += types.Instant(3 + dice.Uint64n(20))
		return true
	}},
	{"acknowledged and lost", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, writes)
		if op == nil {
			return false
		}
		s.journal = slices.DeleteFunc(s.journal, func(e record) bool { return e.Key == op.Key })
		return true
	}},
	{"acknowledged and lost without a trace", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, writes)
		if op == nil {
			return false
		}
		s.journal = slices.DeleteFunc(s.journal, func(e record) bool { return e.Key == op.Key })
		s.answerAgain(s.journal)
		return true
	}},
	{"done twice, in the journal once", func(s *execution, dice *types.Rand) bool {
		if len(s.journal) == 0 {
			return false
		}
		i := int(dice.Uint64n(uint64(len(s.journal))))
		s.answerAgain(slices.Insert(slices.Clone(s.journal), i, s.journal[i]))
		return true
	}},
	{"in the journal twice", func(s *execution, dice *types.Rand) bool {
		if len(s.journal) == 0 {
			return false
		}
		again := s.journal[dice.Uint64n(uint64(len(s.journal)))]
		again.Place = types.Position{LSN: s.journal[len(s.journal)-1].Place.LSN + 1}
		s.journal = append(s.journal, again)
		return true
	}},
	{"unknown, had effect, not in the journal", func(s *execution, dice *types.Rand) bool {
		i := slices.IndexFunc(s.journal, func(e record) bool { return s.op(e.Key).Return == history.Never })
		if i < 0 {
			return false
		}
		s.journal = slices.Delete(s.journal, i, i+1)
		return true
	}},
	{"unknown, had no effect, in the journal", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, func(op *op) bool {
			return op.Kind == history.Write && op.Return == history.Never && !slices.ContainsFunc(s.journal, func(e record) bool { return e.Key == op.Key })
		})
		if op == nil {
			return false
		}
		at := types.Position{LSN: 1 + types.LSN(dice.Uint64n(40)), Index: 999}
		s.journal = slices.Insert(s.journal, sees(s.journal, at), record{Place: at, Key: op.Key})
		return true
	}},
	{"read back in another order than its places'", func(s *execution, dice *types.Rand) bool {
		if len(s.journal) < 2 {
			return false
		}
		i := int(dice.Uint64n(uint64(len(s.journal) - 1)))
		s.journal[i], s.journal[i+1] = s.journal[i+1], s.journal[i]
		return true
	}},
	{"an entry without an operation", func(s *execution, dice *types.Rand) bool {
		s.journal = append(s.journal, record{Place: types.Position{LSN: 99}, Key: history.Key{Client: 99, Number: 1}})
		return true
	}},
	{"stale read, honest of its place", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, reads)
		if op == nil || len(s.journal) == 0 {
			return false
		}
		op.Place = s.journal[dice.Uint64n(uint64(len(s.journal)))].Place
		s.answerAgain(s.journal)
		return true
	}},
	{"stale read, of the newest place", func(s *execution, dice *types.Rand) bool {
		op := some(s, dice, reads)
		if op == nil || len(s.journal) == 0 {
			return false
		}
		replied := op.Place
		op.Place = s.journal[dice.Uint64n(uint64(len(s.journal)))].Place
		s.answerAgain(s.journal)
		op.Place = replied
		return true
	}},
}

func answered(op *op) bool { return op.Return < history.Never }
func writes(op *op) bool   { return answered(op) && op.Kind == history.Write }
func reads(op *op) bool    { return answered(op) && op.Kind == history.Read }

// some returns one of the operations that fit; nil if none does.
func some(s *execution, dice *types.Rand, fits func(*op) bool) *op {
	var all []*op
	for i := range s.ops {
		if fits(&s.ops[i]) {
			all = append(all, &s.ops[i])
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[dice.Uint64n(uint64(len(all)))]
}

func (s *execution) op(k history.Key) *op {
	return &s.ops[slices.IndexFunc(s.ops, func(o op) bool { return o.Key == k })]
}

// tellPlaces sets the position of every answer from the journal.
func (s *execution) tellPlaces() {
	for _, e := range s.journal {
		if op := s.op(e.Key); answered(op) {
			op.Place = e.Place
		}
	}
}

// answerAgain sets every answer to the result of an order; of repeated operations, the last
// result counts.
func (s *execution) answerAgain(order []record) {
	var truth bank
	looks := func(from, to int) {
		for i := range s.ops {
			if op := &s.ops[i]; op.Kind == history.Read && from <= sees(order, op.Place) && sees(order, op.Place) < to {
				op.Answer, _ = truth.Step(op.Place, &op.Ask)
			}
		}
	}
	looks(0, 1)
	for n, e := range order {
		op := s.op(e.Key)
		op.Answer, _ = truth.Step(e.Place, &op.Ask)
		looks(n+1, n+2)
	}
}

// sees counts the entries up to a position.
func sees(journal []record, at types.Position) int {
	n := 0
	for _, e := range journal {
		if !behind(e.Place, at) {
			n++
		}
	}
	return n
}

// behind reports whether a is after b.
func behind(a, b types.Position) bool { return a.LSN > b.LSN || a.LSN == b.LSN && a.Index > b.Index }

package history_test

import (
	"testing"

	"macronode/core/types"
	"macronode/models/history"
)

// moved returns s with other positions in the same order; missing ones stay missing.
func moved(s execution, base types.LSN, bits int) execution {
	at := func(p types.Position) types.Position {
		if p.LSN > 0 && p.LSN <= types.MaxLSN {
			p.LSN = base + p.LSN<<bits
		}
		return p
	}
	to := execution{ops: append([]op(nil), s.ops...), journal: append([]record(nil), s.journal...)}
	for i := range to.ops {
		to.ops[i].Place = at(to.ops[i].Place)
	}
	for i := range to.journal {
		to.journal[i].Place = at(to.journal[i].Place)
	}
	return to
}

// verdict returns the verdict on s without its text.
func verdict(s execution) (why history.Why, op, other int) {
	if f := s.certify(); f != nil {
		return f.Why, f.Op, f.Other
	}
	return 0, -1, -1
}

// TestVerdictIgnoresAbsolutePositions: the verdict does not depend on where in the journal a
// history is. If an operation returned before its call, that is reported first.
func TestVerdictIgnoresAbsolutePositions(t *testing.T) {
	refused, turned := 0, 0
	for n := range 600 {
		dice := types.NewRand(uint64(n))
		s := draw(&dice)
		if n%2 == 1 {
			lies[dice.Uint64n(uint64(len(lies)))].tell(&s, &dice)
		}
		why, op, other := verdict(s)
		if op >= 0 {
			refused++
		}
		for _, bits := range []int{0, 7, 8, 20, 30, 36} {
			to := moved(s, types.LSN(dice.Uint64n(1<<40)), bits)
			if w, o, p := verdict(to); w != why || o != op || p != other {
				t.Fatalf("history %d: %v of %d and %d, moved by %d bits %v of %d and %d", n, why, op, other, bits, w, o, p)
			}
		}
		if i := int(dice.Uint64n(uint64(len(s.ops) + 1))); i < len(s.ops) && answered(&s.ops[i]) && why != history.Backward {
			turned++
			s.ops[i].Return = s.ops[i].Call - 1
			if w, o, _ := verdict(s); w != history.Backward || o != i {
				t.Fatalf("history %d: op %d returned before its call: %v of %d", n, i, w, o)
			}
		}
	}
	if refused < 50 || turned < 100 {
		t.Errorf("%d are refused, %d turned round: too few to tell", refused, turned)
	}
}

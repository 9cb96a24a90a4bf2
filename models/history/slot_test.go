package history_test

import (
	"slices"
	"testing"

	"macronode/core/types"
	"macronode/models/history"
)

// TestSlotsSortAnyPosition: a history in any order is certified, wherever in a journal of the
// maximum length its operations are; it is rejected if two are exchanged.
func TestSlotsSortAnyPosition(t *testing.T) {
	dice := types.NewRand(1)
	at := map[types.Position]bool{}
	for bits := range 48 {
		for range 20 {
			p := types.Position{LSN: types.LSN(1 + dice.Uint64n(1<<bits)), Index: uint16(dice.Uint64n(1 << (bits % 17)))}
			at[p] = true
		}
	}
	at[types.Position{LSN: types.MaxLSN, Index: 1<<16 - 1}] = true
	var s execution
	for p := range at { // in random order
		k := history.Key{Client: 1, Number: uint32(len(s.journal) + 1)}
		s.journal = append(s.journal, record{Place: p, Key: k})
	}
	slices.SortFunc(s.journal, func(a, b record) int {
		if behind(a.Place, b.Place) {
			return 1
		}
		return -1
	})
	var truth bank
	for n, e := range s.journal {
		q := ask{kind: issue, amount: 1}
		a, _ := truth.Step(e.Place, &q)
		i := types.Instant(n)
		s.ops = append(s.ops, op{Key: e.Key, Call: i, Return: i, Place: e.Place, Kind: history.Write, Ask: q, Answer: a},
			op{Key: e.Key, Call: i, Return: i, Place: e.Place, Kind: history.Read, Ask: ask{kind: look}, Answer: answer{from: a.from, nonce: 1}})
	}
	for i := range s.ops {
		j := i + int(dice.Uint64n(uint64(len(s.ops)-i)))
		s.ops[i], s.ops[j] = s.ops[j], s.ops[i]
	}
	if f := s.certify(); f != nil {
		t.Fatal(f)
	}
	for range 100 {
		a, b := some(&s, &dice, writes), some(&s, &dice, writes)
		a.Place, b.Place = b.Place, a.Place
		if f := s.certify(); (f == nil) != (a == b) {
			t.Fatalf("%v and %v are exchanged: %v", a.Place, b.Place, f)
		}
		a.Place, b.Place = b.Place, a.Place
	}
}

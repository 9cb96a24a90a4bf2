package state_test

import (
	"testing"

	"macronode/core/state"
)

// TestRowSum: the order of rows of one kind of a plane is not in the sum; all else is.
func TestRowSum(t *testing.T) {
	const accounts, idempotency, plane, other = "\x02\x02", "\x03\x03", "\x12\x01", "\x12\x02"
	sum := func(rows ...string) [32]byte {
		var s state.RowSum
		for _, row := range rows {
			s.Add([]byte(row))
		}
		return s.Root()
	}
	want := sum(accounts+"a", idempotency+"b", plane+"c", plane+"d", other+"e")
	if sum(accounts+"a", idempotency+"b", plane+"d", plane+"c", other+"e") != want {
		t.Error("the order of rows of a plane is in the sum")
	}
	seen := map[[32]byte]int{want: -1}
	for i, rows := range [][]string{
		{accounts + "a", idempotency + "b", plane + "c", plane + "d"},
		{accounts + "a", idempotency + "b", plane + "c", plane + "c", other + "e"},
		{accounts + "a", idempotency + "b", plane + "c", plane + "d", plane + "d", other + "e"},
		{accounts + "a", idempotency + "b", plane + "c", other + "d", other + "e"},
		{accounts + "a", idempotency + "b", other + "e", plane + "c", plane + "d"},
		{accounts + "a", plane + "c", plane + "d", idempotency + "b", other + "e"},
		{accounts + "a", accounts + "b"}, {accounts + "b", accounts + "a"}, {idempotency + "a", idempotency + "b"}, {idempotency + "b", idempotency + "a"},
		{"", plane}, {plane, ""}, {},
	} {
		s := sum(rows...)
		if was, twice := seen[s]; twice {
			t.Errorf("%q and case %d have the same sum", rows, was)
		}
		seen[s] = i
	}
}

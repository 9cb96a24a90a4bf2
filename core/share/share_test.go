package share_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/share"
)

// TestLeftIsOneAtATime: without a limit, Left is the number of entries that a tenant gets one after the other, each while it has fewer
// than are left.
func TestLeftIsOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		has, room := rapid.IntRange(0, 40).Draw(t, "has"), rapid.IntRange(0, 40).Draw(t, "room")
		n := 0
		for has+n < room-n {
			n++
		}
		if got := share.Left(0, has, room); got != n || got > room {
			t.Errorf("has %d of a table with room for %d: %d more, want %d", has, room, got, n)
		}
	})
}

// TestTenantsLeaveRoom: tenants take and give back entries in any order. A tenant that takes a further one leaves at least as many as it
// had, so one without any gets an entry while there is room; and tenants that take all they get divide the table by halves.
func TestTenantsLeaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.IntRange(1, 100).Draw(t, "table")
		var has [5]int
		room := table
		take := func(i int) bool {
			if share.Left(0, has[i], room) == 0 {
				return false
			}
			has[i]++
			room--
			return true
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(has)-1).Draw(t, "tenant")
			if rapid.Bool().Draw(t, "gives back") && has[i] > 0 {
				has[i]--
				room++
				continue
			}
			had, left := has[i], room
			took := take(i)
			if took != (had < left) || room < 0 || took && room < had {
				t.Fatalf("a tenant with %d of %d took an entry with %d left: %v", had, table, left, took)
			}
		}
		for i := range has {
			room += has[i]
			has[i] = 0
		}
		for i := range has {
			before := room
			for take(i) {
			}
			if has[i] != (before+1)/2 {
				t.Fatalf("tenant %d has %d of the %d entries that were left", i, has[i], before)
			}
		}
	})
}

// TestLimitOfTenant: a limit of the tenant replaces its share, and what exceeds a limit that was lowered stays.
func TestLimitOfTenant(t *testing.T) {
	for _, c := range []struct{ limit, has, room, want int }{{5, 3, 1, 2}, {5, 5, 9, 0}, {5, 7, 9, -2}, {9, 0, 0, 9}} {
		if got := share.Left(c.limit, c.has, c.room); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestWeightedTenantsLeaveRoom: with weight 1 a tenant gets as many entries as Left gives it. With a larger one it gets more, up to its weight
// for each that it leaves, and always leaves one for a tenant that has none.
func TestWeightedTenantsLeaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight, has, room := rapid.IntRange(1, 8).Draw(t, "weight"), rapid.IntRange(0, 70).Draw(t, "has"), rapid.IntRange(0, 70).Draw(t, "room")
		if got, want := share.MayGrow(1, has, room), share.Left(0, has, room) > 0; got != want {
			t.Errorf("has %d of a table with room for %d: gets another one %v, want %v", has, room, got, want)
		}
		if grows := share.MayGrow(weight, has, room); grows && (room == 0 || has > 0 && (room == 1 || has > weight*(room-1))) || !grows && (has == 0 && room > 0 || has < room) {
			t.Errorf("weight %d, has %d of a table with room for %d: gets another one %v", weight, has, room, grows)
		}
	})
}

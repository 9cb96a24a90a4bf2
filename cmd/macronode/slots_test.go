package main

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSlots: who is named again has its number again, no two have one, one that came free is
// not given while another is, and there is none too many.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 6
		var s slots
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}), 0, 8, rapid.ID).Draw(t, "names")
			was := s
			is, numbers, err := s.assign(names, most)
			if (err != nil) != (len(names) > most) {
				t.Fatalf("%q: %v", names, err)
			}
			if err != nil {
				if !slices.Equal(is.names, was.names) {
					t.Fatalf("a failure changed %q to %q", was.names, is.names)
				}
				continue
			}
			free, fresh := most, 0
			for _, name := range was.names {
				if name != "" {
					free--
				}
			}
			for _, name := range names {
				if !slices.Contains(was.names, name) {
					fresh++
				}
			}
			for i, name := range names {
				n := numbers[i]
				if is.names[n] != name || slices.Index(numbers, n) != i {
					t.Fatalf("%q has %d: %q, %v", name, n, is.names, numbers)
				}
				if before := slices.Index(was.names, name); before >= 0 && before != n {
					t.Fatalf("%q had %d, has %d", name, before, n)
				}
				if taken := n < len(was.names) && was.names[n] != "" && was.names[n] != name; taken && fresh <= free {
					t.Fatalf("%q was given the %d of %q, while others were free", name, n, was.names[n])
				}
			}
			if named := len(is.names) - len(slices.DeleteFunc(slices.Clone(is.names), func(n string) bool { return n != "" })); named != len(names) {
				t.Fatalf("%d are named of %q: %q", named, names, is.names)
			}
			s = is
		}
	})
}

// TestSlotsAreGivenLate: a number that came free is the last to be given.
func TestSlotsAreGivenLate(t *testing.T) {
	s, _, _ := slots{}.assign([]string{"a"}, 4)
	for i, want := range []int{1, 2, 3, 0, 1} {
		var got []int
		s, got, _ = s.assign([]string{fmt.Sprint(i)}, 4)
		if got[0] != want {
			t.Fatalf("%d: %v", i, got)
		}
	}
}

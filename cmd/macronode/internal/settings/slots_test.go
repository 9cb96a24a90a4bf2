package settings

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSlots: a name that returns gets its number again, no two names share one, a freed number is not used while
// another is free, and there is a limit.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 6
		var s Slots
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}), 0, 8, rapid.ID).Draw(t, "names")
			was := s
			is, numbers, err := s.assign(names, most)
			if (err != nil) != (len(names) > most) {
				t.Fatalf("%q: %v", names, err)
			}
			if err != nil {
				if !slices.Equal(is.Names, was.Names) {
					t.Fatalf("a failure changed %q to %q", was.Names, is.Names)
				}
				continue
			}
			free, fresh := most, 0
			for _, name := range was.Names {
				if name != "" {
					free--
				}
			}
			for _, name := range names {
				if !slices.Contains(was.Names, name) {
					fresh++
				}
			}
			for i, name := range names {
				n := numbers[i]
				if is.Names[n] != name || slices.Index(numbers, n) != i {
					t.Fatalf("%q has %d: %q, %v", name, n, is.Names, numbers)
				}
				if before := slices.Index(was.Names, name); before >= 0 && before != n {
					t.Fatalf("%q had %d, has %d", name, before, n)
				}
				if taken := n < len(was.Names) && was.Names[n] != "" && was.Names[n] != name; taken && fresh <= free {
					t.Fatalf("%q was given the %d of %q, while others were free", name, n, was.Names[n])
				}
			}
			if named := len(is.Names) - len(slices.DeleteFunc(slices.Clone(is.Names), func(n string) bool { return n != "" })); named != len(names) {
				t.Fatalf("%d are named of %q: %q", named, names, is.Names)
			}
			s = is
		}
	})
}

// TestFreedSlotsAreReusedLast: a freed number is the last to be used.
func TestFreedSlotsAreReusedLast(t *testing.T) {
	s, _, _ := Slots{}.assign([]string{"a"}, 4)
	for i, want := range []int{1, 2, 3, 0, 1} {
		var got []int
		s, got, _ = s.assign([]string{fmt.Sprint(i)}, 4)
		if got[0] != want {
			t.Fatalf("%d: %v", i, got)
		}
	}
}

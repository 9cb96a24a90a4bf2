package testkit

import (
	"testing"
)

func TestApart(t *testing.T) {
	for _, c := range []struct {
		shown, declared []string
		want            int
	}{
		{[]string{"a", "b"}, []string{"b", "a"}, 0}, {[]string{"a", "b"}, []string{"b", "c"}, 2}, {[]string{"a", "a"}, []string{"a"}, 1}, {nil, []string{"a"}, 1},
	} {
		if got := Differences(c.shown, c.declared); len(got) != c.want {
			t.Errorf("%q against %q: %q", c.shown, c.declared, got)
		}
	}
}

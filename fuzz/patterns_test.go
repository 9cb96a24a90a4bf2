package fuzz

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"macronode/core/types"
)

// FuzzPatterns: a text is patterns if and only if the grammar says so, it is written
// back to the same bytes, and it covers what a dumb matcher says.
func FuzzPatterns(f *testing.F) {
	for _, seed := range [][2]string{{"", "a"}, {"*", ""}, {"a", "a"}, {"a*,b", "ab"}, {"bob*,ann", "anne"}, {"bob*,ann*", "anne"}, {"a,,b", ""}, {"a*b", "ab"}, {",", ""},
		{"user:17,user:18:*", "user:18:cash"}, {strings.Repeat("x", types.MaxPatterns), "x"}, {strings.Repeat("x,", 128), "x"}} {
		f.Add(seed[0], seed[1])
	}
	grammar := regexp.MustCompile(`\A(?:(?:[A-Za-z0-9:/_-]+\*?|\*)(?:,(?:[A-Za-z0-9:/_-]+\*?|\*))*)?\z`)
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := types.ParsePatterns(text)
		if want := len(text) <= types.MaxPatterns && grammar.MatchString(text); want != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		if p.String() != text {
			t.Fatalf("%q is written as %q", text, p.String())
		}
		want := text == "" || slices.ContainsFunc(strings.Split(text, ","), func(one string) bool {
			start, open := strings.CutSuffix(one, "*")
			return one == name || open && strings.HasPrefix(name, start)
		})
		if types.Covers(&p, name) != want || types.Covers(&p, []byte(name)) != want {
			t.Fatalf("%q covers %q: not %v", text, name, want)
		}
	})
}

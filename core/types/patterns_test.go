package types_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// isPatterns is ParsePatterns as a regular expression.
func isPatterns(s string) bool {
	grammar := regexp.MustCompile(`\A(?:(?:[A-Za-z0-9:/_-]{1,256}\*?|\*)(?:,(?:[A-Za-z0-9:/_-]{1,256}\*?|\*))*)?\z`)
	return len(s) <= types.MaxPatterns && grammar.MatchString(s)
}

// covers is Covers without optimisation.
func covers(patterns, name string) bool {
	if patterns == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(patterns, ","), func(one string) bool {
		start, open := strings.CutSuffix(one, "*")
		return name == one || open && strings.HasPrefix(name, start)
	})
}

func TestParsePatterns(t *testing.T) {
	long := strings.Repeat("a", types.MaxPatterns)
	for text, good := range map[string]bool{
		"":                   true,
		"*":                  true,
		"a":                  true,
		"user:17,user:18:*":  true,
		"issuance:EUR/2,a*":  true,
		"*,*":                true,
		long:                 true,
		long[1:] + "*":       true,
		long + "a":           false,
		long + "*":           false,
		",":                  false,
		"a,":                 false,
		",a":                 false,
		"a,,b":               false,
		"a, b":               false,
		"**":                 false,
		"a**":                false,
		"*a":                 false,
		"a*b":                false,
		"a.b":                false,
		"ä":                  false,
		"a\x00":              false,
		"a*,":                false,
		"user:17, user:18:*": false,
	} {
		p, err := types.ParsePatterns(text)
		if good != isPatterns(text) {
			t.Fatalf("%q: the grammar has %v", text, !good)
		}
		if (err == nil) != good || err != nil && !errors.Is(err, types.ErrPatterns) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && p != (types.Patterns{}) {
			t.Errorf("%q is refused, and read as %v", text, p.String())
		}
		if err == nil && (p.String() != text || p.CoversAll() != (text == "")) {
			t.Errorf("%q is read as %q, any %v", text, p.String(), p.CoversAll())
		}
	}
}

// TestCovers tries exact names, prefixes and an empty list, which covers every name.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		patterns, name string
		want           bool
	}{
		{"", "ann", true},
		{"", "", true},
		{"ann", "ann", true},
		{"ann", "anne", false},
		{"ann", "an", false},
		{"ann", "", false},
		{"ann", "ANN", false},
		{"ann*", "ann", true},
		{"ann*", "anne", true},
		{"ann*", "an", false},
		{"*", "any-name", true},
		{"bob,ann", "ann", true},
		{"bob,ann", "bob", true},
		{"bob,ann", "bob,ann", false},
		{"bob,ann", "", false},
		{"bob*,ann", "bobby", true},
		{"bob*,ann", "anne", false},
		{"user:17,user:18:*", "user:18:cash", true},
		{"user:17,user:18:*", "user:18", false},
		{"user:17,user:18:*", "user:170", false},
	} {
		p, err := types.ParsePatterns(c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		if got := types.Covers(&p, c.name); got != c.want || got != covers(c.patterns, c.name) || got != types.Covers(&p, []byte(c.name)) {
			t.Errorf("%q covers %q: %v", c.patterns, c.name, got)
		}
	}
}

// TestPatternsMatchModel compares Covers with the simple version.
func TestPatternsMatchModel(t *testing.T) {
	hit, missed, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab:]{0,3}\*?(,[ab:]{0,3}\*?){0,4}`).Draw(t, "patterns")
		name := rapid.StringMatching(`[ab:]{0,4}`).Draw(t, "name")
		p, err := types.ParsePatterns([]byte(text))
		if (err == nil) != isPatterns(text) {
			t.Fatalf("%q: %v", text, err)
		}
		switch {
		case err != nil:
			refused++
			return
		case types.Covers(&p, name):
			hit++
		default:
			missed++
		}
		if types.Covers(&p, name) != covers(text, name) {
			t.Fatalf("%q covers %q: %v", text, name, types.Covers(&p, name))
		}
		if q, err := types.ParsePatterns(p.String()); err != nil || q != p {
			t.Fatalf("%q is written as %q", text, p.String())
		}
	})
	if hit == 0 || missed == 0 || refused == 0 {
		t.Errorf("%d were covered, %d not, %d refused", hit, missed, refused)
	}
}

// TestLabelsCompareEqual shows that a label keeps its text, and that equal texts are equal
// values.
func TestLabelsCompareEqual(t *testing.T) {
	long := strings.Repeat("z", types.MaxLabel)
	for _, s := range []string{"", "a", "till-1", long[1:], long} {
		l := types.NewLabel(s)
		if l.String() != s || l != types.NewLabel([]byte(s)) {
			t.Errorf("%q is %q", s, l.String())
		}
	}
	if types.NewLabel("a") == types.NewLabel("b") || types.NewLabel("") == types.NewLabel("\x00") {
		t.Error("two labels are one")
	}
}

// TestTextHashesCoverEveryByte shows that every byte and the length are hashed.
func TestTextHashesCoverEveryByte(t *testing.T) {
	l, p := types.NewLabel(strings.Repeat("z", types.MaxLabel)), types.Patterns{}
	hashcoverage.Every(t, &l, func() types.Hash64 { return l.HashInto(1) }, "size: a larger one is not a valid label; lengths are tested below")
	if p, err := types.ParsePatterns(strings.Repeat("z", types.MaxPatterns)); err == nil {
		hashcoverage.Every(t, &p, func() types.Hash64 { return p.HashInto(1) })
	} else {
		t.Fatal(err)
	}
	var err error
	reported := map[types.Hash64]string{}
	for n := range types.MaxLabel + 1 {
		text := strings.Repeat("a", n)
		l = types.NewLabel(text)
		if p, err = types.ParsePatterns(text); err != nil {
			t.Fatal(err)
		}
		if was, twice := reported[l.HashInto(1)]; twice || l.HashInto(1) == l.HashInto(2) || p.HashInto(1) != l.HashInto(1) {
			t.Errorf("%q and %q have one hash", text, was)
		}
		reported[l.HashInto(1)] = text
	}
	short, zero := types.NewLabel("a"), types.NewLabel("a\x00")
	if short.HashInto(1) == zero.HashInto(1) {
		t.Error("a trailing zero does not change the hash")
	}
}

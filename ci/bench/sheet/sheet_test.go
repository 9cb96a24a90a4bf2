package sheet_test

import (
	"strings"
	"testing"

	"macronode/ci/bench/sheet"
)

// TestGoal: a bound is met at the bound, and missed on its other side.
func TestGoal(t *testing.T) {
	for _, c := range []struct {
		want sheet.Bound
		got  float64
		met  bool
	}{
		{sheet.Least(5), 5, true}, {sheet.Least(5), 4.99, false}, {sheet.Least(5), 6, true},
		{sheet.Most(0.25), 0.25, true}, {sheet.Most(0.25), 0.26, false}, {sheet.Most(0.25), 0.1, true},
	} {
		if got := (sheet.Goal{Want: c.want, Got: c.got}).Met(); got != c.met {
			t.Errorf("%v of %+v: %v", c.got, c.want, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0123: "0.012", 0.5: "0.50", 9.876: "9.88", 12.34: "12.3", 123.4: "123",
		1234: "1,234", 123456: "123,456", -1234.5: "-1,234", -0.5: "-0.50", 1234567: "1,234,567"} {
		if got := sheet.Number(n); got != want {
			t.Errorf("%v is %q, want %q", n, got, want)
		}
	}
}

// TestPageShowsMissedGoals: a missed goal and missing measurements are prominent.
func TestPageShowsMissedGoals(t *testing.T) {
	page := (&sheet.Sheet{
		Facts:    []sheet.Fact{{"machine", "2 cores"}},
		Goals:    []sheet.Goal{{"fast", sheet.Least(5), 4, "×", 6}, {"short", sheet.Most(2), 1, " s", 0}},
		Missing:  []string{"memory: no\nbinary"},
		Sections: []sheet.Section{{"Transfers", "One each.", []string{"server", "rate"}, [][]string{{"ours", "1"}}}},
	}).String()
	at := 0
	for _, want := range []string{"# Performance", "| machine | 2 cores |", "## Goals", "| fast | ≥ 5.00× | 4.00× | **missed** | 6.00× |",
		"| short | ≤ 2.00 s | 1.00 s | met |  |", "* memory: no binary\n", "## Transfers", "| server | rate |\n|---|---|\n| ours | 1 |"} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("%q is not behind\n%s\nin\n%s", want, page[:at], page[at:])
		}
		at += i
	}
}

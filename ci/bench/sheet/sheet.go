// Package sheet writes the measurements as a page.
package sheet

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Sheet is the page.
type Sheet struct {
	Head     string // begin of the page; empty: that of the wallet and the gateway
	Facts    []Fact
	Sections []Section
	Goals    []Goal
	Missing  []string // what was not measured, and why
}

// A Fact is something that affects the numbers.
type Fact struct{ What, Is string }

// A Section is one measurement.
type Section struct {
	Title string
	Text  string // what was done
	Head  []string
	Rows  [][]string
}

// A Goal is a number to be reached.
type Goal struct {
	What string
	Want Bound
	Got  float64
	Unit string  // after the numbers: "×", " s", " B"
	CPU  float64 // the same by CPU per request, if that is meaningful; otherwise 0
}

// A Bound is a lower or upper limit.
type Bound struct {
	Number float64
	Most   bool
}

// Least and Most return the two kinds of bounds.
func Least(n float64) Bound { return Bound{Number: n} }
func Most(n float64) Bound  { return Bound{Number: n, Most: true} }

// Met reports whether the goal was reached.
func (g Goal) Met() bool {
	if g.Want.Most {
		return g.Got <= g.Want.Number
	}
	return g.Got >= g.Want.Number
}

func (g Goal) row() []string {
	sign, verdict := "≥ ", "**missed**"
	if g.Want.Most {
		sign = "≤ "
	}
	if g.Met() {
		verdict = "met"
	}
	byCPU := ""
	if g.CPU > 0 {
		byCPU = Number(g.CPU) + g.Unit
	}
	return []string{g.What, sign + Number(g.Want.Number) + g.Unit, Number(g.Got) + g.Unit, verdict, byCPU}
}

// Number formats n with three significant digits, and without decimals above 100.
func Number(n float64) string {
	switch {
	case n < 0:
		return "-" + Number(-n)
	case n >= 100 || n == 0:
		return thousands(fmt.Sprintf("%.0f", n))
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.1:
		return fmt.Sprintf("%.2f", n)
	default:
		return fmt.Sprintf("%.3f", n)
	}
}

// Count formats n with separators.
func Count(n int) string { return thousands(strconv.Itoa(n)) }

func thousands(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// String returns the page in Markdown.
func (s *Sheet) String() string {
	var b strings.Builder
	b.WriteString(cmp.Or(s.Head, head))
	var facts [][]string
	for _, f := range s.Facts {
		facts = append(facts, []string{f.What, f.Is})
	}
	table(&b, []string{"what", "is"}, facts)
	b.WriteString("\n## Goals\n\n")
	var goals [][]string
	for _, g := range s.Goals {
		goals = append(goals, g.row())
	}
	table(&b, []string{"what", "goal", "here", "", "by CPU a request"}, goals)
	if len(s.Missing) > 0 {
		b.WriteString("\nNot measured in this run:\n\n")
		for _, m := range s.Missing {
			b.WriteString("* " + strings.ReplaceAll(m, "\n", " ") + "\n")
		}
	}
	for _, part := range s.Sections {
		b.WriteString("\n## " + part.Title + "\n\n" + part.Text + "\n\n")
		table(&b, part.Head, part.Rows)
	}
	return b.String()
}

func table(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
}

const head = `# Performance

Written by ` + "`ci/bench/run`" + `, which measures macronode and its peers in one run on one machine, by turns: A B C, A B C, … A number is the median of
the rounds, with the least and the most in parentheses. A ratio is taken within each round first, so that the influence of the machine on
both cancels out. Differences below 15 % mean nothing, and absolute numbers compare only within the run.

Load generator and servers share the machine. Requests per second therefore depend on both; CPU per request is the cost of one request. That is
user and system time of the processes of the server, divided by all responses. For PostgreSQL it is the postmaster with all its children, and
the service in front of it;
for nginx it is the master with its workers.

`

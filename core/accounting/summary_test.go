package accounting_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"macronode/core/accounting"
	"macronode/core/types"
)

// TestSummary: sums are by dimension and the groups, in order, and name what is late and what is not sealed.
func TestSummary(t *testing.T) {
	by, err := accounting.ParseGrouping("window,subject")
	if err != nil {
		t.Fatal(err)
	}
	s := accounting.NewSummary(by)
	slice := func(kind accounting.SliceKind, from types.Time, labels string, value uint64) {
		s.AddSlice(&accounting.Slice{Dimension: []byte("requests"), Kind: kind, Window: accounting.Window{From: from, To: from + 60},
			Rows: []accounting.Row{{Labels: []byte(labels), Count: accounting.Count{Value: value, Events: 2}}}})
	}
	slice(accounting.SliceUsage, 60, "service=a,subject=ann", 1)
	slice(accounting.SliceUsage, 60, "service=b,subject=ann", 2)
	slice(accounting.SliceCorrection, 60, "service=b,subject=ann", 4)
	slice(accounting.SliceUsage, 0, "subject=bob", 1<<64-1)
	slice(accounting.SliceUsage, 0, "subject=bob", 1)
	s.AddOpen(&accounting.OpenRow{Dimension: []byte("bytes_in"), Window: accounting.Window{From: 60, To: 120}, Late: true, Row: accounting.Row{Labels: []byte("region=eu"), Count: accounting.Count{Value: 8, Events: 1}}})
	sums, err := s.Sums()
	got := ""
	for _, x := range sums {
		got += fmt.Sprintf("%s %d-%d %s: %v late %v open %v of %d\n", x.Dimension, x.Window.From, x.Window.To, x.Labels, x.Total, x.Late, x.Open, x.Events)
	}
	const want = `bytes_in 60-120 : 8 late 8 open 8 of 1
requests 0-60 subject=bob: 18446744073709551616 late 0 open 0 of 4
requests 60-120 subject=ann: 7 late 4 open 0 of 6
`
	if got != want || err != nil {
		t.Errorf("%s%v\nwant\n%s", got, err, want)
	}
	for _, wrong := range []string{"host", "window,window", "route,", ","} {
		if _, err := accounting.ParseGrouping(wrong); !errors.Is(err, accounting.ErrGroup) {
			t.Errorf("%q is a grouping: %v", wrong, err)
		}
	}
}

// TestSummaryIsBounded: a summary has at most MaxSums sums.
func TestSummaryIsBounded(t *testing.T) {
	by, _ := accounting.ParseGrouping("subject")
	s := accounting.NewSummary(by)
	for i := range accounting.MaxSums + 1 {
		s.AddOpen(&accounting.OpenRow{Dimension: []byte("requests"), Row: accounting.Row{Labels: []byte("subject=" + strconv.Itoa(i))}})
		if i == accounting.MaxSums-1 {
			if _, err := s.Sums(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sums, err := s.Sums(); !errors.Is(err, accounting.ErrSums) || len(sums) != accounting.MaxSums {
		t.Errorf("%d sums, %v", len(sums), err)
	}
}

package accounting

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"macronode/core/types"
)

// MaxSums is the number of sums of one summary.
const MaxSums = 10_000

// ErrSums reports a summary with too many sums.
var ErrSums = fmt.Errorf("accounting: more than %d sums; ask for a shorter time or fewer groups", MaxSums)

// A Grouping says for what usage is summed, besides the dimension.
type Grouping struct {
	Window bool
	Labels [5]bool // in the order of LabelNames
}

// ErrGroup reports a group that does not exist.
var ErrGroup = errors.New("must be a list of window, service, region, method, route, subject, each once")

// ParseGrouping reads names that are separated by commas: window, and names of labels.
func ParseGrouping(s string) (g Grouping, err error) {
	if s == "" {
		return g, nil
	}
	names := LabelNames()
	for name := range strings.SplitSeq(s, ",") {
		place := slices.Index(names[:], name)
		at := &g.Window
		if place >= 0 {
			at = &g.Labels[place]
		} else if name != "window" {
			return g, ErrGroup
		}
		if *at {
			return g, ErrGroup
		}
		*at = true
	}
	return g, nil
}

// A Sum is the usage of a group.
type Sum struct {
	Dimension []byte
	Window    Window // zero if windows are not grouped
	Labels    []byte // those that are grouped
	Total     types.Amount
	Late      types.Amount // of Total: came after the seal of its window
	Open      types.Amount // of Total: is not sealed yet
	Prepaid   types.Amount // of Total: was paid when it was recorded
	Events    uint64
}

// A Summary adds up usage.
type Summary struct {
	by   Grouping
	sums []Sum
	at   map[string]int // by dimension, window and labels
	key  []byte
	err  error
}

// NewSummary returns an empty summary.
func NewSummary(by Grouping) *Summary { return &Summary{by: by, at: map[string]int{}} }

// AddSlice adds the rows of a slice.
func (s *Summary) AddSlice(of *Slice) {
	for _, r := range of.Rows {
		s.add(of.Dimension, of.Window, r, traits{late: of.Kind.IsLate(), prepaid: of.Kind.IsPrepaid()})
	}
}

// AddOpen adds usage that is not sealed.
func (s *Summary) AddOpen(r *OpenRow) {
	s.add(r.Dimension, r.Window, r.Row, traits{r.Late, true, r.Prepaid})
}

// traits are what is known of a row.
type traits struct{ late, open, prepaid bool }

func (s *Summary) add(dimension []byte, w Window, r Row, is traits) {
	if !s.by.Window {
		w = Window{}
	}
	labels := s.by.pick(r.Labels)
	s.key = fmt.Appendf(s.key[:0], "%s\x00%d-%d\x00%s", dimension, w.From, w.To, labels)
	place, known := s.at[string(s.key)]
	if !known {
		if len(s.sums) == MaxSums {
			s.err = ErrSums
			return
		}
		place = len(s.sums)
		s.at[string(s.key)] = place
		s.sums = append(s.sums, Sum{Dimension: bytes.Clone(dimension), Window: w, Labels: labels})
	}
	sum, value := &s.sums[place], types.Amount{Lo: r.Value}
	sum.Total, _ = sum.Total.Add(value)
	if is.late {
		sum.Late, _ = sum.Late.Add(value)
	}
	if is.open {
		sum.Open, _ = sum.Open.Add(value)
	}
	if is.prepaid {
		sum.Prepaid, _ = sum.Prepaid.Add(value)
	}
	sum.Events += r.Events
}

// pick returns the labels that are grouped.
func (g *Grouping) pick(labels []byte) []byte {
	names := LabelNames()
	var values [len(names)]string
	for _, l := range ParseLabels(labels) {
		if i := slices.Index(names[:], l.Name); g.Labels[i] {
			values[i] = l.Value
		}
	}
	return labelText(values)
}

// Sums returns the sums in the order of dimension, window and labels.
func (s *Summary) Sums() ([]Sum, error) {
	slices.SortFunc(s.sums, func(a, b Sum) int {
		return cmp.Or(bytes.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Window.From, b.Window.From), cmp.Compare(a.Window.To, b.Window.To), bytes.Compare(a.Labels, b.Labels))
	})
	return s.sums, s.err
}

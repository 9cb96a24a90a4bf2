package usagefile

import (
	"errors"
	"fmt"
	"strings"

	"macronode/core/accounting"
)

// A Slice is a slice as the API returns it: a line of an export.
type Slice struct {
	Tenant     string `json:"tenant"`
	Dimension  string `json:"dimension"`
	Seq        uint64 `json:"seq"`
	Kind       string `json:"kind"`
	WindowFrom string `json:"window_from"`
	WindowTo   string `json:"window_to"`
	Previous   string `json:"previous"`
	Digest     string `json:"digest"`
	Rows       []Row  `json:"rows"`
}

// A Row is the usage of a series.
type Row struct {
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"`
	Events uint64            `json:"events"`
}

// ParseSlice returns the slice of a text. It is not verified. Its error is a *Problem without a line.
func ParseSlice(text []byte) (s accounting.Slice, err error) {
	var l Slice
	if err := unmarshal(text, &l); err != nil {
		return s, err
	}
	s, err = l.Decode()
	return s, l.problem(err)
}

// problem returns an error about l as a *Problem.
func (l *Slice) problem(err error) error {
	at := new(accounting.FieldError)
	if err == nil || !errors.As(err, &at) {
		return err
	}
	return &Problem{Tenant: l.Tenant, Dimension: l.Dimension, Seq: l.Seq, Field: at.Field, Detail: at.Why}
}

// AddSlice adds the slice of a text to a verifier. Its error is a *Problem without a line.
func AddSlice(v *accounting.Verifier, text []byte) (s accounting.Slice, err error) {
	if s, err = ParseSlice(text); err != nil {
		return s, err
	}
	if at := new(accounting.FieldError); errors.As(v.Add(&s), &at) {
		return s, &Problem{Tenant: TenantName(s.Tenant), Dimension: string(s.Dimension), Seq: s.Seq, Field: at.Field, Detail: at.Why}
	}
	return s, nil
}

// Decode returns the slice of l. Its error is a *accounting.FieldError.
func (l *Slice) Decode() (s accounting.Slice, err error) {
	s = accounting.Slice{Dimension: []byte(l.Dimension), Seq: l.Seq, Rows: make([]accounting.Row, len(l.Rows))}
	var ok bool
	if s.Tenant, ok = ParseTenant(l.Tenant); !ok {
		return s, &accounting.FieldError{Field: "tenant", Why: "must be default, or a number"}
	}
	for _, kind := range accounting.SliceKinds() {
		if l.Kind == kind.String() {
			s.Kind = kind
		}
	}
	if err := readTimes(timeField{"window_from", l.WindowFrom, &s.Window.From}, timeField{"window_to", l.WindowTo, &s.Window.To}); err != nil {
		return s, err
	}
	for _, at := range [...]struct {
		field, text string
		to          *accounting.Digest
	}{{"previous", l.Previous, &s.Previous}, {"digest", l.Digest, &s.Digest}} {
		if *at.to, ok = ParseDigest(at.text); !ok {
			return s, &accounting.FieldError{Field: at.field, Why: "must be 64 of 0-9 a-f"}
		}
	}
	for i := range l.Rows {
		if s.Rows[i], err = l.Rows[i].decode(l.Dimension, fmt.Sprintf("rows[%d].", i)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// decode returns a row of a dimension.
func (r *Row) decode(dimension, field string) (row accounting.Row, err error) {
	var ok bool
	if row.Value, ok = readNumber(r.Value, 64); !ok {
		return row, &accounting.FieldError{Field: field + "value", Why: "must be a string of digits, below 2^64"}
	}
	row.Events = r.Events
	if r.Labels == nil {
		return row, &accounting.FieldError{Field: field + "labels", Why: "are missing"}
	}
	series, err := seriesOf(dimension, r.Labels)
	switch at := new(accounting.FieldError); {
	case errors.As(err, &at) && at.Field == "dimension":
		return row, at
	case errors.As(err, &at):
		return row, &accounting.FieldError{Field: field + at.Field, Why: at.Why}
	}
	row.Labels = series.Labels
	return row, nil
}

// seriesOf returns the series of labels without upper case. Its error is a *accounting.FieldError.
func seriesOf(dimension string, labels map[string]string) (s accounting.Series, err error) {
	all := make([]accounting.Label, 0, len(labels))
	for name, value := range labels {
		if value != strings.ToLower(value) {
			return s, &accounting.FieldError{Field: "labels." + name, Why: "must not have upper case"}
		}
		all = append(all, accounting.Label{Name: name, Value: value})
	}
	return accounting.NewSeries(dimension, all)
}

// MissingSlices returns a *Problem that names the first slices of a chain that are missing; nil if there is no gap.
func MissingSlices(of *accounting.VerifiedStream, hint string) error {
	gaps := of.Gaps()
	if len(gaps) == 0 {
		return nil
	}
	return &Problem{Tenant: TenantName(of.Tenant), Dimension: string(of.Dimension), Seq: gaps[0].First, Field: "seq",
		Detail: fmt.Sprintf("the slices %d to %d are missing%s", gaps[0].First, gaps[0].Last, hint)}
}

// A Chain is a chain of slices that was verified.
type Chain struct {
	Tenant     string         `json:"tenant"`
	Dimension  string         `json:"dimension"`
	Slices     uint64         `json:"slices"`
	First      uint64         `json:"first_seq"`
	Last       uint64         `json:"last_seq"`
	Head       string         `json:"head"`
	WindowFrom string         `json:"window_from"`
	WindowTo   string         `json:"window_to"`
	Value      string         `json:"value"`
	Late       string         `json:"late"`
	Events     uint64         `json:"events"`
	Gaps       []MissingRange `json:"gaps,omitzero"`
}

// A MissingRange is slices that a file does not have.
type MissingRange struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
}

// NewChain describes a chain of at least one slice.
func NewChain(s *accounting.VerifiedStream) Chain {
	seqs := s.Seqs()
	c := Chain{Tenant: TenantName(s.Tenant), Dimension: string(s.Dimension), Slices: s.Slices, First: seqs.First, Last: seqs.Last, Head: s.Head().String(),
		WindowFrom: FormatTime(s.Window.From), WindowTo: FormatTime(s.Window.To), Value: s.Total.String(), Late: s.Late.String(), Events: s.Events}
	for _, g := range s.Gaps() {
		c.Gaps = append(c.Gaps, MissingRange(g))
	}
	return c
}

// String returns a sentence, and a line for each part that is missing.
func (c *Chain) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of tenant %s: slices %d to %d, windows %s to %s, value %s of %d events, %s of it late, last digest %s",
		c.Dimension, c.Tenant, c.First, c.Last, c.WindowFrom, c.WindowTo, c.Value, c.Events, c.Late, c.Head)
	if c.First > 1 {
		fmt.Fprintf(&b, "\n  begins in the middle: the slices 1 to %d are not in the file", c.First-1)
	}
	for _, g := range c.Gaps {
		fmt.Fprintf(&b, "\n  gap: the slices %d to %d are not in the file", g.First, g.Last)
	}
	return b.String()
}

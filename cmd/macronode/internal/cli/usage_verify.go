package cli

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/cmd/macronode/internal/exit"
	"macronode/core/accounting"
	"macronode/core/types"
)

// A sliceLine is a line of an export.
type sliceLine struct {
	Tenant     string     `json:"tenant"`
	Dimension  string     `json:"dimension"`
	Seq        uint64     `json:"seq"`
	Kind       string     `json:"kind"`
	WindowFrom string     `json:"window_from"`
	WindowTo   string     `json:"window_to"`
	Previous   string     `json:"previous"`
	Digest     string     `json:"digest"`
	Rows       []usageRow `json:"rows"`
}

type usageRow struct {
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"`
	Events uint64            `json:"events"`
}

// A badSlice says which field of an export is wrong.
type badSlice struct {
	OK        bool   `json:"ok"`
	Line      int    `json:"line,omitzero"`
	Tenant    string `json:"tenant,omitzero"`
	Dimension string `json:"dimension,omitzero"`
	Seq       uint64 `json:"seq,omitzero"`
	Field     string `json:"field,omitzero"`
	Detail    string `json:"detail"`
}

func (b *badSlice) Error() string {
	var t strings.Builder
	if b.Line > 0 {
		fmt.Fprintf(&t, "line %d: ", b.Line)
	}
	if b.Dimension != "" {
		fmt.Fprintf(&t, "%s of tenant %s: ", b.Dimension, b.Tenant)
	}
	if b.Seq > 0 {
		fmt.Fprintf(&t, "slice %d: ", b.Seq)
	}
	if b.Field != "" {
		fmt.Fprintf(&t, "%s: ", b.Field)
	}
	return t.String() + b.Detail
}

// Run verifies an export.
func (v *verifyUsageCmd) Run(c *Console) error {
	from, bar, err := c.openFile("verify", v.File)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was read
	streams, err := verifyUsage(bar.reader(from), v.Partial)
	bar.End()
	switch bad := new(badSlice); {
	case errors.As(err, &bad) && c.tree.JSON:
		return errors.Join(err, c.printJSON(bad))
	case err != nil:
		return err
	}
	return c.sayVerified(streams)
}

// verifyUsage verifies lines, and that no chain has a gap unless gaps are accepted. Its error is a *badSlice, or
// that of from.
func verifyUsage(from io.Reader, partial bool) ([]accounting.VerifiedStream, error) {
	lines := bufio.NewScanner(from) // a slice has less than 64 KiB as JSON
	v := accounting.NewVerifier()
	for n := 1; lines.Scan(); n++ {
		if err := verifyLine(v, n, lines.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &badSlice{Detail: "a line is longer than that of any slice"}
	} else if err != nil {
		return nil, exit.Unable(err)
	}
	all := v.Streams()
	for i := range all {
		if gaps := all[i].Gaps(); len(gaps) > 0 && !partial {
			return nil, &badSlice{Tenant: all[i].Tenant.Text(), Dimension: string(all[i].Dimension), Seq: gaps[0].First, Field: "seq",
				Detail: fmt.Sprintf("the slices %d to %d are missing; --partial accepts gaps", gaps[0].First, gaps[0].Last)}
		}
	}
	return all, nil
}

// verifyLine adds the slice of a line.
func verifyLine(v *accounting.Verifier, n int, text []byte) error {
	var l sliceLine
	if err := jsonError(json.Unmarshal(text, &l, json.RejectUnknownMembers(true))); err != nil {
		return &badSlice{Line: n, Detail: err.Error()}
	}
	s, err := l.slice()
	if err == nil {
		err = v.Add(&s)
	}
	if at := new(accounting.FieldError); errors.As(err, &at) {
		return &badSlice{Line: n, Tenant: l.Tenant, Dimension: l.Dimension, Seq: l.Seq, Field: at.Field, Detail: at.Why}
	}
	return nil
}

// slice returns the slice of a line. Each value has the one text that the API gives it. Its error is a
// *accounting.FieldError.
func (l *sliceLine) slice() (s accounting.Slice, err error) {
	s = accounting.Slice{Dimension: []byte(l.Dimension), Seq: l.Seq, Rows: make([]accounting.Row, len(l.Rows))}
	var ok bool
	if s.Tenant, ok = types.ParseTenant(l.Tenant); !ok {
		return s, &accounting.FieldError{Field: "tenant", Why: "must be default, or a number"}
	}
	for _, kind := range [...]accounting.SliceKind{accounting.SliceUsage, accounting.SliceCorrection} {
		if l.Kind == kind.String() {
			s.Kind = kind
		}
	}
	for _, at := range [...]struct {
		field, text string
		to          *types.Time
	}{{"window_from", l.WindowFrom, &s.Window.From}, {"window_to", l.WindowTo, &s.Window.To}} {
		if *at.to, ok = readStamp(at.text); !ok {
			return s, &accounting.FieldError{Field: at.field, Why: "must be a time such as 2026-01-31T12:00:00.000Z"}
		}
	}
	for _, at := range [...]struct {
		field, text string
		to          *accounting.Digest
	}{{"previous", l.Previous, &s.Previous}, {"digest", l.Digest, &s.Digest}} {
		if n, err := hex.Decode(at.to[:], bytes.ToLower([]byte(at.text))[:min(len(at.text), 2*len(at.to))]); err != nil || n != len(at.to) || at.to.String() != at.text {
			return s, &accounting.FieldError{Field: at.field, Why: "must be 64 of 0-9 a-f"}
		}
	}
	for i := range l.Rows {
		if s.Rows[i], err = l.Rows[i].row(l.Dimension, fmt.Sprintf("rows[%d].", i)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// row returns a row of a dimension.
func (r *usageRow) row(dimension, field string) (row accounting.Row, err error) {
	var ok bool
	if row.Value, ok = readNumber(r.Value, 64); !ok {
		return row, &accounting.FieldError{Field: field + "value", Why: "must be a string of digits, below 2^64"}
	}
	row.Events = r.Events
	labels := make([]accounting.Label, 0, len(r.Labels))
	for name, value := range r.Labels {
		labels = append(labels, accounting.Label{Name: name, Value: value})
		if value != strings.ToLower(value) {
			return row, &accounting.FieldError{Field: field + "labels." + name, Why: "must not have upper case"}
		}
	}
	series, err := accounting.NewSeries(dimension, labels)
	switch at := new(accounting.FieldError); {
	case errors.As(err, &at) && at.Field == "dimension":
		return row, at
	case errors.As(err, &at):
		return row, &accounting.FieldError{Field: field + at.Field, Why: at.Why}
	case r.Labels == nil:
		return row, &accounting.FieldError{Field: field + "labels", Why: "are missing"}
	}
	row.Labels = series.Labels
	return row, nil
}

// readNumber reads a number without leading zeros.
func readNumber(text string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}

// readStamp reads a time with milliseconds.
func readStamp(text string) (types.Time, bool) {
	at, err := time.Parse(stampLayout, text)
	return types.Time(at.UnixMilli()), err == nil && at.UTC().Format(stampLayout) == text
}

// A verifiedChain is a chain of an export that was verified.
type verifiedChain struct {
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
	Gaps       []missingSlice `json:"gaps,omitzero"`
}

type missingSlice struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
}

// sayVerified prints a line for each chain.
func (c *Console) sayVerified(streams []accounting.VerifiedStream) error {
	if len(streams) == 0 {
		return exit.Unable(errors.New("there is no slice to verify"))
	}
	chains, all := make([]verifiedChain, len(streams)), uint64(0)
	for i := range streams {
		s := &streams[i]
		seqs := s.Seqs()
		chains[i] = verifiedChain{Tenant: s.Tenant.Text(), Dimension: string(s.Dimension), Slices: s.Slices, First: seqs.First, Last: seqs.Last, Head: s.Head().String(),
			WindowFrom: time.UnixMilli(int64(s.Window.From)).UTC().Format(stampLayout), WindowTo: time.UnixMilli(int64(s.Window.To)).UTC().Format(stampLayout),
			Value: s.Total.String(), Late: s.Late.String(), Events: s.Events}
		for _, g := range s.Gaps() {
			chains[i].Gaps = append(chains[i].Gaps, missingSlice(g))
		}
		all += s.Slices
	}
	if c.tree.JSON {
		return c.printJSON(struct {
			OK     bool            `json:"ok"`
			Slices uint64          `json:"slices"`
			Chains []verifiedChain `json:"chains"`
		}{true, all, chains})
	}
	for i := range chains {
		if err := c.printLine("%s", chains[i].text()); err != nil {
			return err
		}
	}
	return c.printLine("%d slices of %d chains are verified", all, len(chains))
}

func (v *verifiedChain) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of tenant %s: slices %d to %d, windows %s to %s, value %s of %d events, %s of it late, last digest %s",
		v.Dimension, v.Tenant, v.First, v.Last, v.WindowFrom, v.WindowTo, v.Value, v.Events, v.Late, v.Head)
	if v.First > 1 {
		fmt.Fprintf(&b, "\n  begins in the middle: the slices 1 to %d are not in the file", v.First-1)
	}
	for _, g := range v.Gaps {
		fmt.Fprintf(&b, "\n  gap: the slices %d to %d are not in the file", g.First, g.Last)
	}
	return b.String()
}

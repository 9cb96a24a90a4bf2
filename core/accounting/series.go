package accounting

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"macronode/core/digest"
	"macronode/core/types"
)

// Limits of the text of a series.
const (
	MaxDimension  = 64  // bytes, with the prefix of a custom one
	MaxLabelValue = 64  // bytes of the value of a label
	MaxLabels     = 190 // bytes of all labels of a series as text
)

const customPrefix = "custom:"

// Dimensions returns the names of the dimensions beside the custom ones, and LabelNames those of the
// labels, in the order of their text.
func Dimensions() [7]string {
	return [...]string{"bytes_in", "bytes_out", "bytes_stored", "requests", "requests_write", "requests_read", "cpu_ms"}
}
func LabelNames() [5]string {
	return [...]string{"service", "region", "method", "route", "subject"}
}

// A Label is one label of a series.
type Label struct{ Name, Value string }

// A FieldError says which field of an event or a slice is invalid.
type FieldError struct{ Field, Why string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Why }

// A Series is what usage is counted of.
type Series struct {
	Dimension []byte         // a name of Dimensions, or custom:NAME
	Labels    []byte         // name=value,name=value in the order of LabelNames; may be empty
	ID        types.NameHash // of both
	stream    types.NameHash // of the dimension
}

// NewSeries returns the series of a dimension and labels. Letters become lower case. Its error is a
// *FieldError.
func NewSeries(dimension string, labels []Label) (Series, error) {
	dimension = lower(dimension)
	if err := checkDimension(dimension); err != nil {
		return Series{}, err
	}
	names := LabelNames()
	var values [len(names)]string
	for _, l := range labels {
		place := slices.Index(names[:], l.Name)
		value := lower(l.Value)
		switch {
		case place < 0:
			return Series{}, &FieldError{"labels", "unknown label; the labels are " + strings.Join(names[:], ", ")}
		case values[place] != "":
			return Series{}, &FieldError{"labels." + l.Name, "occurs twice"}
		case !isName(value, MaxLabelValue):
			return Series{}, &FieldError{"labels." + l.Name, fmt.Sprintf("must be 1..%d of a-z 0-9 . _ - / { }", MaxLabelValue)}
		}
		values[place] = value
	}
	text := labelText(values)
	if len(text) > MaxLabels {
		return Series{}, &FieldError{"labels", fmt.Sprintf("must have together at most %d bytes as name=value,name=value", MaxLabels)}
	}
	return identifySeries([]byte(dimension), text), nil
}

// check returns ErrSeries if s cannot be from NewSeries. It reads no text.
func (s *Series) check() error {
	if len(s.Dimension) == 0 || len(s.Dimension) > MaxDimension || len(s.Labels) > MaxLabels || s.ID == (types.NameHash{}) {
		return ErrSeries
	}
	return nil
}

// labelText returns the text of labels with values in the order of LabelNames.
func labelText(values [5]string) (text []byte) {
	for i, name := range LabelNames() {
		if values[i] == "" {
			continue
		}
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, name...), '='), values[i]...)
	}
	return text
}

func checkDimension(d string) error {
	known := Dimensions()
	if slices.Contains(known[:], d) {
		return nil
	}
	name, custom := strings.CutPrefix(d, customPrefix)
	switch {
	case !custom:
		return &FieldError{"dimension", "unknown; must be one of " + strings.Join(known[:], ", ") + ", or " + customPrefix + "NAME"}
	case !isName(name, MaxDimension-len(customPrefix)):
		return &FieldError{"dimension", fmt.Sprintf("the custom name must be 1..%d of a-z 0-9 . _ - / { }", MaxDimension-len(customPrefix))}
	}
	return nil
}

func isName(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/{}", rune(c)) {
			return false
		}
	}
	return true
}

// lower makes the letters A to Z lower case, and no others: some letters outside ASCII have one of a to z as lower case.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c - 'A' + 'a'
		}
		return c
	}, s)
}

// identifySeries computes the digests of a series. It allocates nothing.
func identifySeries(dimension, labels []byte) Series {
	return Series{Dimension: dimension, Labels: labels, ID: seriesID(dimension, labels), stream: digest.Name(dimension)}
}

// seriesID returns the digest of a series. It allocates nothing.
func seriesID(dimension, labels []byte) types.NameHash {
	var room [MaxDimension + 1 + MaxLabels]byte
	both := append(append(append(room[:0], dimension...), 0), labels...)
	return digest.Name(both)
}

// ParseLabels returns the labels of their text.
func ParseLabels(text []byte) (labels []Label) {
	for pair := range bytes.SplitSeq(text, []byte{','}) {
		if name, value, ok := bytes.Cut(pair, []byte{'='}); ok {
			labels = append(labels, Label{string(name), string(value)})
		}
	}
	return labels
}

// validSeries reports whether the texts of a record could come from NewSeries.
func validSeries(dimension, labels []byte) bool {
	if len(dimension) > MaxDimension || len(labels) > MaxLabels || checkDimension(string(dimension)) != nil {
		return false
	}
	next, names := 0, LabelNames()
	for len(labels) > 0 {
		pair, rest, more := bytes.Cut(labels, []byte{','})
		name, value, ok := bytes.Cut(pair, []byte{'='})
		place := slices.Index(names[:], string(name))
		if !ok || place < next || !isName(string(value), MaxLabelValue) || more && len(rest) == 0 {
			return false
		}
		next, labels = place+1, rest
	}
	return true
}

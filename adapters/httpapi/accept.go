package httpapi

import (
	"iter"
	"mime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A mediaRange is one element of the header Accept: a media range, and its weight q of 0 to 1.
type mediaRange struct {
	kind string
	q    float64
}

// mediaRanges yields the elements of one Accept header value. Malformed elements are skipped.
func mediaRanges(header string) iter.Seq[mediaRange] {
	return func(yield func(mediaRange) bool) {
		for part := range strings.SplitSeq(header, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			q := 1.0
			if text, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
					continue
				}
			}
			if !yield(mediaRange{kind, q}) {
				return
			}
		}
	}
}

// includes reports whether a media type is in m.
func (m mediaRange) includes(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	class, _, _ := strings.Cut(kind, "/")
	return m.kind == kind || m.kind == "*/*" || m.kind == class+"/*"
}

// isFormula reports whether a spreadsheet could read s as a formula, or whether s begins with an apostrophe.
func isFormula(s []byte) bool {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		if !unicode.IsSpace(r) {
			return strings.ContainsRune("=+-@'＝＋－＠\u2212", r)
		}
		s = s[size:]
	}
	return false
}

package httpapi

import (
	"iter"
	"mime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A mediaRange is a part of the header Accept.
type mediaRange struct {
	kind string
	q    float64
}

// mediaRanges reads one value of Accept. What cannot be read is left out.
func mediaRanges(said string) iter.Seq[mediaRange] {
	return func(yield func(mediaRange) bool) {
		for one := range strings.SplitSeq(said, ",") {
			kind, params, err := mime.ParseMediaType(one)
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

// of reports that a kind of answer lies in m.
func (m mediaRange) of(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	class, _, _ := strings.Cut(kind, "/")
	return m.kind == kind || m.kind == "*/*" || m.kind == class+"/*"
}

// formula reports that a spreadsheet could take s for something to compute, or that it
// begins with an apostrophe.
func formula(s []byte) bool {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		if !unicode.IsSpace(r) {
			return strings.ContainsRune("=+-@'＝＋－＠\u2212", r)
		}
		s = s[size:]
	}
	return false
}

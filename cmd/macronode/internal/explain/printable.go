package explain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns text with an escape in place of each character that is not printable, and of each byte that is not UTF-8. Clients choose
// parts of the text, such as the path: control characters would change the terminal, and bidirectional ones the order in which it is read.
func Printable(text string) string {
	return escape(text, func(_ rune, raw string) string {
		quoted := strconv.Quote(raw)
		return quoted[1 : len(quoted)-1]
	})
}

// PrintableJSON is Printable for a JSON value. It stays the same value: a string of JSON has no control character below the space, and the others
// are only in strings.
func PrintableJSON(text string) string {
	return escape(text, func(r rune, raw string) string {
		if r < ' ' { // between values
			return raw
		}
		out := ""
		for _, unit := range utf16.Encode([]rune{r}) {
			out += fmt.Sprintf(`\u%04x`, unit)
		}
		return out
	})
}

// escape returns text with by(r, raw) in place of each character r that is not printable. Blanks other than the space are not printable.
func escape(text string, by func(r rune, raw string) string) string {
	var b strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		raw := text[at : at+size]
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) {
			raw = by(r, raw)
		}
		b.WriteString(raw)
		at += size
	}
	return b.String()
}

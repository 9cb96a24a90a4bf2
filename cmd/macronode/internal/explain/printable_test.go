package explain

import (
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"macronode/adapters/decisions"
)

// TestUnprintableCharactersAreEscaped: what a client sends changes neither the terminal nor the order of the text nor the lines.
func TestUnprintableCharactersAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"/v1/issue é 世 \\ \"": "/v1/issue é 世 \\ \"",
		"\x1b[31m\n\r\t\x7f":  `\x1b[31m\n\r\t\x7f`,
		"\u0085\u009b":        `\u0085\u009b`,       // C1
		"\u202e\u2066\u200f":  `\u202e\u2066\u200f`, // bidirectional
		"\u2028\u00a0\ufeff":  `\u2028\u00a0\ufeff`, // line, blank, mark
		"\U000e0041\xff\xc2":  `\U000e0041\xff\xc2`, // tag, no UTF-8
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	d := decisions.Decision{Path: "/a\u009b\u202e\nadmission  admitted", Because: "\u2066x", Why: "admitted"}
	got := Decision(&d)
	if !strings.Contains(got, `/a\u009b\u202e\nadmission  admitted (`) || !strings.Contains(got, `detail      \u2066x`) {
		t.Errorf("%s", got)
	}
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q is printed raw in %s", r, got)
		}
	}
}

// TestPrintableJSONIsTheSameValue: escapes change no value of JSON, and leave no such character.
func TestPrintableJSONIsTheSameValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + rapid.SampledFrom([]string{"\u0085", "\u202e", "\U000e0041", "\x1b", "a"}).Draw(t, "end")
		raw, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Skip(err)
		}
		plain := PrintableJSON(string(raw))
		var is map[string]string
		if err := json.Unmarshal([]byte(plain), &is); err != nil || len(is) != 1 || is[text] != text {
			t.Fatalf("%q is %s, %q, %v", text, plain, is, err)
		}
		for _, r := range plain {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q is printed raw", r)
			}
		}
	})
}

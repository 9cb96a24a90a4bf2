package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"macronode/core/types"
)

// whole returns a text as JSON can represent it, if it was not truncated.
func whole(text string) string { return string([]rune(text)) }

// TestHostileTexts checks that any content results in one bounded line of printable ASCII that can be
// decoded.
func TestHostileTexts(t *testing.T) {
	texts := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) }),
		rapid.StringN(0, 80, 300),
		rapid.SampledFrom([]string{"\n{\"lost\":1}\n", "\x1b[2J", "\u009b31m", "\u202e", "a\"b\\c", "\x00", "\u2028", "\U0001f600", "</script>",
			strings.Repeat("\x01", 1000), strings.Repeat("\xff", 1000), strings.Repeat("\U0001f600", 1000), strings.Repeat("é", 32)}))
	rapid.Check(t, func(t *rapid.T) {
		l := Line{Decision: texts.Draw(t, "decision"), Key: types.KeyID(rapid.Uint64().Draw(t, "key")), Tenant: types.Tenant(rapid.Uint32().Draw(t, "tenant")),
			Route: texts.Draw(t, "route"), Peer: texts.Draw(t, "peer"), Status: rapid.Int().Draw(t, "status"), Code: texts.Draw(t, "code"), TxID: texts.Draw(t, "txid"),
			at: time.UnixMilli(rapid.Int64Range(0, 253402300799999).Draw(t, "at"))}
		was := l
		l.cut()
		b := l.append(nil)
		if len(b) > maxLine {
			t.Fatalf("%d bytes", len(b))
		}
		for _, c := range b {
			if c < ' ' || c > '~' {
				t.Fatalf("%q has %#x", b, c)
			}
		}
		var got entry
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		var again map[string]any
		if err := strict.Unmarshal(b, &again); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !got.TS.Equal(l.at) || got.Tenant != l.Tenant || got.Status != max(l.Status, 0) || (got.Key == "") != (l.Key == 0) {
			t.Fatalf("%s: %+v", b, l)
		}
		for i, pair := range [][2]string{{got.Decision, was.Decision}, {got.Route, was.Route}, {got.Peer, was.Peer}, {got.Code, was.Code}, {got.TxID, was.TxID}} {
			most := []int{maxDecision, maxRoute, maxPeer, maxCode, maxTxID}[i]
			if len(pair[1]) <= most && pair[0] != whole(pair[1]) {
				t.Fatalf("%q is read as %q", pair[1], pair[0])
			}
			if kept, is := strings.CutSuffix(pair[0], "…"); len(pair[1]) > most && (!is || !strings.HasPrefix(whole(pair[1]), strings.TrimRight(kept, "\ufffd"))) {
				t.Fatalf("%q is cut to %q", pair[1], pair[0])
			}
		}
	})
}

// TestLongestLine checks that maxLine covers the longest line.
func TestLongestLine(t *testing.T) {
	worst := strings.Repeat("\x01", 1000)
	l := Line{Decision: worst, Key: 1 << 63, Tenant: 1<<32 - 1, Route: worst, Peer: worst, Status: 1<<63 - 1, Code: worst, TxID: worst, at: time.UnixMilli(1)}
	l.cut()
	if n := len(l.append(nil)); n > maxLine || n < maxLine-256 {
		t.Errorf("%d bytes of %d", n, maxLine)
	}
	for _, text := range []string{l.Decision, l.Route, l.Peer, l.Code, l.TxID} {
		if len(text) > maxRoute || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
			t.Errorf("%q", text)
		}
	}
}

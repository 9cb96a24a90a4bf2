package proxy

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// endsDiffer reports whether the lines of the last header end in different ways, by splitting the
// whole text.
func endsDiffer(text string) bool {
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		code, isLF := line[len("HTTP/1.1 "):], !strings.HasSuffix(line, "\r")
		for {
			line, rest, _ = strings.Cut(rest, "\n")
			if isLF == strings.HasSuffix(line, "\r") {
				return true
			}
			if strings.TrimSuffix(line, "\r") == "" {
				break
			}
		}
		if text = rest; !strings.HasPrefix(code, "1") || strings.HasPrefix(code, "101") {
			return false
		}
	}
	return false
}

// TestHeaderLinesAgreeWithModel: however a header is split, the lines of the response and of the
// interim ones before it are compared, and no byte of the body is.
func TestHeaderLinesAgreeWithModel(t *testing.T) {
	saw := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\r\n", "\r\n", "\r\n", "\n"})
		usual := end.Draw(t, "usual")
		text := ""
		for _, code := range append(rapid.SliceOfN(rapid.SampledFrom([]string{"100", "103"}), 0, 2).Draw(t, "interim"), rapid.SampledFrom([]string{"200", "101", "502"}).Draw(t, "code")) {
			lines := append([]string{"HTTP/1.1 " + code + " it"}, rapid.SliceOfN(rapid.SampledFrom([]string{"A: b", "C: d\re", "F:"}), 0, 4).Draw(t, "fields")...)
			for _, line := range append(lines, "") {
				with := usual
				if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
					with = end.Draw(t, "end")
				}
				text += line + with
			}
		}
		want := endsDiffer(text)
		saw[want]++
		text += rapid.SampledFrom([]string{"", "body\nof\r\n\r\nlines\n"}).Draw(t, "body")
		var h headerLines
		var err error
		for rest := []byte(text); len(rest) > 0 && err == nil; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			err = h.follow(rest[:n])
			rest = rest[n:]
		}
		if errors.Is(err, errLineEnds) != want || err == nil && !h.isOver {
			t.Fatalf("%q: %v, want an error: %v", text, err, want)
		}
	})
	if saw[true] == 0 || saw[false] == 0 {
		t.Errorf("saw %v", saw)
	}
}

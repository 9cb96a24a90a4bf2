package transcript

import (
	"strings"
	"testing"
)

func echo(words []string) string {
	if words[0] == "silence" {
		return ""
	}
	return strings.Join(words, "\n")
}

func TestPlayComparesOutput(t *testing.T) {
	Play(t, "testdata/echo", echo)
}

// TestOutputIsReplaced: old output is always replaced.
func TestOutputIsReplaced(t *testing.T) {
	for _, c := range []struct{ name, was, now string }{
		{"a wrong answer", "> a\nb\n", "> a\na\n"},
		{"a missing answer", "> a\n", "> a\na\n"},
		{"an answer too many", "> a\na\nb\n", "> a\na\n"},
		{"a line before the first said one", "b\n> a\na\n", "> a\na\n"},
		{"no newline at the end", "> a\na", "> a\na\n"},
		{"an answer to silence", "> silence\na\n", "> silence\n"},
		{"remarks and gaps stay", "# x\n\n> a\n\n# y\n", "# x\n\n> a\na\n\n# y\n"},
	} {
		now, err := play(c.was, echo)
		if err != nil || now != c.now {
			t.Errorf("%s: %q, %v, want %q", c.name, now, err, c.now)
		}
		if again, err := play(now, echo); err != nil || again != now {
			t.Errorf("%s: a rewritten story does not stand: %q, %v", c.name, again, err)
		}
	}
}

// TestUselessTranscriptsAreRejected: a transcript without input, or with output that reads as
// another line, proves nothing.
func TestUselessTranscriptsAreRejected(t *testing.T) {
	for name, c := range map[string]struct{ was, answer string }{
		"nothing is said":              {"# only a remark\n", "x"},
		"an empty file":                {"", "x"},
		"an answer like a remark":      {"> a\n", "# x"},
		"an answer like a said line":   {"> a\n", "x\n> b"},
		"an answer with an empty line": {"> a\n", "x\n\ny"},
	} {
		if now, err := play(c.was, func([]string) string { return c.answer }); err == nil {
			t.Errorf("%s: played as %q", name, now)
		}
	}
}

func TestPartingShowsFirstDifference(t *testing.T) {
	for _, c := range []struct{ was, now, want string }{
		{"a\nb\n", "a\nc\n", `2: the transcript says "b", the code "c"`},
		{"a\n", "a\nb\n", `2: the transcript says "", the code "b"`},
		{"a", "a\n", `2: the transcript says "(no line)", the code ""`},
	} {
		if got := parting(c.was, c.now); got != c.want {
			t.Errorf("%q and %q part at %s, want %s", c.was, c.now, got, c.want)
		}
	}
}

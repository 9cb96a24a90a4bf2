// Package transcript plays transcripts: input lines, each followed by its output.
//
//	# a comment
//	> issue ann 10
//	seq 1, ann has 10
//
// A reviewer reads them as the behaviour. After an intended change, `go test ./core/wallet/ledger
// -rewrite` writes the new output; review the difference before you commit it.
package transcript

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "accept the current output of transcripts")

// Play compares the transcript at path with the output of say for each input line, given as its
// words. An output may have several lines, or none.
func Play(t *testing.T, path string, say func(words []string) string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was := string(file)
	now, err := play(was, say)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	switch {
	case now == was:
	case *rewrite:
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: rewritten", path)
	default:
		t.Errorf("%s:%s\nThe transcript is now:\n\n%s", path, parting(was, now), now)
	}
}

// play returns the transcript was with the output of say.
func play(was string, say func(words []string) string) (now string, err error) {
	var out strings.Builder
	inputs := 0
	for line := range strings.Lines(was) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			out.WriteString(line + "\n")
			continue
		}
		if !strings.HasPrefix(line, "> ") {
			continue // old output
		}
		inputs++
		out.WriteString(line + "\n")
		answer := strings.TrimSuffix(say(strings.Fields(line[2:])), "\n")
		if answer == "" {
			continue
		}
		for part := range strings.SplitSeq(answer, "\n") {
			if strings.TrimSpace(part) == "" || part[0] == '#' || strings.HasPrefix(part, "> ") {
				return "", fmt.Errorf("%q is answered by %q, which reads as something else", line, part)
			}
		}
		out.WriteString(answer + "\n")
	}
	if inputs == 0 {
		return "", errors.New("no input line")
	}
	return out.String(), nil
}

// parting describes the first line at which two transcripts differ.
func parting(was, now string) string {
	then, today := strings.Split(was, "\n"), strings.Split(now, "\n")
	for i := 0; ; i++ {
		a, b := at(then, i), at(today, i)
		if a != b {
			return fmt.Sprintf("%d: the transcript says %q, the code %q", i+1, a, b)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}

// Package transcript plays transcripts: a line that is said, the lines that answer it.
//
//	# what the scene is about
//	> issue ann 10
//	seq 1, ann has 10
//
// A reviewer reads them as the behaviour. After a change that is meant to change
// them, `go test ./core/wallet/ledger -rewrite` writes what is answered now; read the
// difference before you commit it.
package transcript

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "accept what the stories answer now")

// Play holds the transcript at path against what say answers to each said line,
// given as its words. An answer may have several lines, or none.
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

// play is the transcript was, with the answers that say gives.
func play(was string, say func(words []string) string) (now string, err error) {
	var told strings.Builder
	said := 0
	for line := range strings.Lines(was) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			told.WriteString(line + "\n")
			continue
		}
		if !strings.HasPrefix(line, "> ") {
			continue // an answer of then
		}
		said++
		told.WriteString(line + "\n")
		answer := strings.TrimSuffix(say(strings.Fields(line[2:])), "\n")
		if answer == "" {
			continue
		}
		for part := range strings.SplitSeq(answer, "\n") {
			if strings.TrimSpace(part) == "" || part[0] == '#' || strings.HasPrefix(part, "> ") {
				return "", fmt.Errorf("%q is answered by %q, which reads as something else", line, part)
			}
		}
		told.WriteString(answer + "\n")
	}
	if said == 0 {
		return "", errors.New("nothing is said")
	}
	return told.String(), nil
}

// parting names the first line at which two stories part.
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

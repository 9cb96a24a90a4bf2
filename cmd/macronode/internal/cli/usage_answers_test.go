package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/testkit"
)

// answeringNode is a node that can be killed, with the answers to the queries of one time.
type answeringNode struct {
	t        *testing.T
	dir      string
	from, to string // of the queries
	asOf     string // of those that are as of a time
}

func (n *answeringNode) run(args string) string {
	n.t.Helper()
	out, err := exec.Command("macronode", append(strings.Fields("usage "+args), "--data", n.dir)...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("usage %s: %v: %s", args, err, out)
	}
	return string(out)
}

// sealed waits for a number of slices, and returns them.
func (n *answeringNode) sealed(count int) (lines string) {
	n.t.Helper()
	testkit.Until(func() bool { lines = n.run("export"); return strings.Count(lines, "\n") == count })
	return lines
}

// nodeTimes are the times of a node in an answer, which are no part of the answer to the question.
var nodeTimes = regexp.MustCompile(`,"sealed_to":"[^"]*","as_of":"[^"]*"`)

// answers returns the answers in each format and by each grouping, without the times of the node; and those as of a time, whole.
func (n *answeringNode) answers() (now, past string) {
	n.t.Helper()
	return nodeTimes.ReplaceAllString(n.ask(""), ""), n.ask(" --as-of " + n.asOf)
}

// ask returns the answers in each format and by each grouping, with more flags.
func (n *answeringNode) ask(flags string) string {
	n.t.Helper()
	var all strings.Builder
	for _, format := range []string{"--csv", "--ndjson", "--json"} {
		for _, group := range []string{"", " --group window", " --group window,service,region"} {
			all.WriteString(n.run(fmt.Sprintf("query --from %s --to %s %s%s%s", n.from, n.to, format, group, flags)))
		}
	}
	return all.String()
}

// TestAnswersOfSealedUsageStay asks for the usage of sealed windows again and again: after a kill, and after a kill with the loss of the
// index, the answers have the same bytes. A late event is a correction: it changes the late part, and no slice that was sealed. As of
// a time before it, it changes nothing.
func TestAnswersOfSealedUsageStay(t *testing.T) {
	t.Parallel()
	n := &answeringNode{t: t}
	var grace time.Duration // more with each try: on a slow machine an event can be late
	start := func() *testkit.Killable {
		return testkit.StartKillable(t, n.dir, "--set", "accounting.window=1s", "--set", "accounting.grace="+grace.String())
	}
	var k *testkit.Killable
	var at, slices string
	for check := testkit.HangGuard(t); strings.Count(slices, `"kind":"usage"`) < 2; check() {
		if k != nil {
			k.End()
			grace = 2*grace + time.Second
		}
		n.dir = t.TempDir()
		k = start()
		at = time.Now().UTC().Format(time.RFC3339Nano)
		n.run("record --dimension requests --value 12 --label service=search --source s --id 1 --time " + at)
		n.run("record --dimension bytes_in --value 7 --label region=eu --source s --id 2 --time " + at)
		slices = n.sealed(2)
	}
	var first struct {
		From time.Time `json:"window_from"`
		To   time.Time `json:"window_to"`
	}
	if err := json.Unmarshal([]byte(strings.SplitAfter(slices, "\n")[0]), &first); err != nil {
		t.Fatal(err)
	}
	n.from, n.to = first.From.Add(-time.Minute).Format(time.RFC3339), first.To.Add(time.Second).Format(time.RFC3339)
	n.asOf = regexp.MustCompile(`"as_of":"([^"]*)"`).FindStringSubmatch(n.run("query --last 1h --json"))[1]
	before, past := n.answers()
	if whole := regexp.MustCompile(`,"as_of":"[^"]*"`).ReplaceAllString(past, ""); whole != before || past == whole {
		t.Fatalf("nothing is open, and the answers as of %s are\n%s\nnot\n%s", n.asOf, past, before)
	}
	if strings.Count(before, `"value":"12","late":"0","open":"0","events":1`) != 6 || strings.Count(before, "search,,,,,12,0,0,1") != 1 {
		t.Fatalf("the answers are\n%s", before)
	}
	again := func(what, want string) {
		t.Helper()
		if got, asOf := n.answers(); got != want || asOf != past {
			t.Errorf("%s, the answers are\n%s\nnot\n%s\nand as of %s\n%s\nnot\n%s", what, got, want, n.asOf, asOf, past)
		}
	}
	again("again", before)
	k.End()
	k = start()
	again("after a kill", before)

	n.run("record --dimension requests --value 5 --label service=search --source s --id 3 --time " + at)
	all := n.sealed(3)
	for line := range strings.Lines(slices) {
		if !strings.Contains(all, line) {
			t.Errorf("a sealed slice has changed: %s is not in\n%s", line, all)
		}
	}
	after, asOf := n.answers()
	if asOf != past {
		t.Errorf("with the late event, the answers as of %s are\n%s\nnot\n%s", n.asOf, asOf, past)
	}
	unlate := strings.NewReplacer(`"value":"17","late":"5","open":"0","events":2`, `"value":"12","late":"0","open":"0","events":1`, ",17,5,0,2", ",12,0,0,1")
	if got := unlate.Replace(after); after == before || got != before {
		t.Errorf("without the late event, the answers are\n%s\nnot\n%s", got, before)
	}
	k.End()
	k = start()
	again("after the second kill", after)
	k.End()
	if err := os.RemoveAll(filepath.Join(n.dir, datadir.Index)); err != nil {
		t.Fatal(err)
	}
	k = start()
	again("with a new index", after)
	if got := n.sealed(3); got != all {
		t.Errorf("with a new index, the slices are\n%s\nnot\n%s", got, all)
	}
	k.End()
}

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var rewrite = flag.Bool("rewrite", false, "accept the page as it is generated now")

func TestThePageIsGenerated(t *testing.T) {
	const path = "../../docs/cli.md"
	now := page(t)
	if *rewrite {
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != now {
		t.Fatal("docs/cli.md is not what the grammar says: go test ./cmd/macronode -rewrite, and read the difference")
	}
}

// page is the documentation of the grammar.
func page(t *testing.T) string {
	var discard bytes.Buffer
	parser, err := newParser(new(tree), &discard, &discard)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Command line

Generated from the grammar; a test compares.

Standard output has what was asked for, as text or, with `+"`--json`"+`, as JSON; standard error has one sentence for each
thing that is wrong, and the log of the node. Nothing is coloured, so `+"`NO_COLOR`"+` has nothing to change.

| exit code | means |
|---|---|
| %d | done |
| %d | refused or failed: it was not done |
| %d | wrong usage or configuration, or the node cannot start: nothing was tried |
| %d | the outcome is not known: ask again with the same key, as the sentence says |

What moves money is sent under one idempotency key until there is an answer or the time is over. What the node is too
busy for, or not ready for, is sent again after the pause that it asks for and a part of 50 ms, doubling to 1 s.

A client finds the node by `+"`run.json`"+` of its directory and is let in by `+"`bootstrap.key`"+` there, unless it is told
otherwise. The key of a directory is sent to no other address.

The node drains when it gets a termination or an interrupt, and aborts at the second; a quit signal writes all
goroutines to standard error; a hangup changes nothing. It tells systemd when it is ready, when it stops and, where a
watchdog is set, that it is alive.

## Flags of every verb

`, done, refused, unable, unknown)
	flags(&b, parser.Model.Flags)
	for _, leaf := range parser.Model.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n    %s\n", leaf.FullPath(), leaf.Help, "macronode "+strings.TrimSuffix(leaf.Summary(), " [flags]"))
		for _, arg := range leaf.Positional {
			fmt.Fprintf(&b, "\n* `%s`: %s\n", arg.Summary(), arg.Help)
		}
		if len(leaf.Flags) > 0 {
			b.WriteString("\n")
			flags(&b, leaf.Flags)
		}
	}
	return b.String()
}

func flags(b *strings.Builder, all []*kong.Flag) {
	b.WriteString("| flag | means |\n|---|---|\n")
	for _, f := range all {
		if f.Name == "help" {
			continue
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		help := f.Help
		for _, env := range f.Envs {
			help += " Variable `" + env + "`."
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, help)
	}
}

// The codes are said in the help as well, and are what scripts know.
func TestExitCodesAreAContract(t *testing.T) {
	if done != 0 || refused != 1 || unable != 2 || unknown != 3 {
		t.Fatal("an exit code has changed")
	}
	for _, code := range []int{done, refused, unable, unknown} {
		if !strings.Contains(exitCodes, fmt.Sprintf("%d ", code)) {
			t.Errorf("the help does not tell of %d", code)
		}
	}
}

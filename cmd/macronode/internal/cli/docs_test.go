package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"macronode/cmd/macronode/internal/exit"
)

var rewrite = flag.Bool("rewrite", false, "accept the page as it is generated now")

func TestPageIsGenerated(t *testing.T) {
	t.Parallel()
	const path = "../../../../docs/cli.md"
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

// page returns the documentation of the grammar.
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
thing that is wrong, progress, and the log of the node. Nothing is coloured, so `+"`NO_COLOR`"+` has nothing to change.

With `+"`--json`"+` failures are JSON too, where nothing else was printed: a refusal is the problem (RFC 9457) as the node
said it; an unknown outcome is `+"`{\"outcome\": \"unknown\", \"idempotency_key\": …, \"nonce\": …, \"detail\": …}`"+`, as far as it has
them; all else is `+"`{\"outcome\": \"failed\" | \"unable\", \"detail\": …}`"+`, by exit code. What lists things prints an object
a line.

| exit code | means |
|---|---|
| %d | done |
| %d | rejected or failed: nothing was changed, or only what the output lists |
| %d | wrong usage or configuration, or the node cannot start |
| %d | the outcome is unknown, or a write took effect but its output could not be written: repeat the command, with the key and nonce that it has printed, if any |

A command that moves money retries with one idempotency key until it has a response or its time limit has passed. It
waits as long as the node asks for, plus a random part of 50 ms, doubling to 1 s.

By default a command finds the node in `+"`run.json`"+` of the data directory and uses the API key in `+"`bootstrap.key`"+` there.
That key is sent to no other address.

SIGTERM and SIGINT start a drain; a second signal aborts it. SIGQUIT writes all goroutines to standard error. SIGHUP reloads the
configuration. The node notifies systemd when it is ready, when it stops, and for a watchdog.

## Flags of every command

`, exit.CodeDone, exit.CodeFailed, exit.CodeUnable, exit.CodeUnknown)
	flags(&b, parser.Model.Flags)
	for _, leaf := range parser.Model.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n    %s\n\n%s\n", leaf.FullPath(), leaf.Help, "macronode "+strings.TrimSuffix(leaf.Summary(), " [flags]"), leaf.Detail)
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

// The help lists the exit codes. Scripts depend on them.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	if exit.CodeDone != 0 || exit.CodeFailed != 1 || exit.CodeUnable != 2 || exit.CodeUnknown != 3 {
		t.Fatal("an exit code has changed")
	}
	for _, code := range []int{exit.CodeDone, exit.CodeFailed, exit.CodeUnable, exit.CodeUnknown} {
		if !strings.Contains(exit.Help, fmt.Sprintf("%d ", code)) {
			t.Errorf("the help does not tell of %d", code)
		}
	}
}

// Every command has a section of the manual with its exit codes and an example, and every example parses.
func TestManual(t *testing.T) {
	t.Parallel()
	var discard bytes.Buffer
	parser, err := newParser(new(tree), &discard, &discard)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(true) {
		verb := strings.TrimPrefix(leaf.FullPath(), "macronode ")
		known[verb] = true
		examples := 0
		for text := range strings.Lines(leaf.Detail) {
			if !strings.HasPrefix(text, "    ") {
				continue
			}
			examples++
			words := shellWords(strings.TrimSpace(text))
			again, err := newParser(new(tree), &discard, &discard)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := again.Parse(words[1:])
			if err != nil || words[0] != "macronode" || !strings.HasPrefix(parsed.Command(), verb) && len(words) > 1 {
				t.Errorf("%s: %q is no example: %v", verb, words, err)
			}
		}
		if examples == 0 || leaf.Help == "" {
			t.Errorf("%s has no example in help.txt", verb)
		}
		if !strings.Contains(leaf.Detail, "Exits ") && !strings.Contains("config schema version completion help", verb) {
			t.Errorf("help.txt does not say how %s exits", verb)
		}
	}
	for section := range strings.SplitSeq(manual, "\n# ") {
		verb, _, _ := strings.Cut(section, "\n")
		if !known[strings.TrimSpace(verb)] && verb != "Sections of the manual: a # and the command, what it does, examples. A test parses each example." {
			t.Errorf("help.txt speaks of %q, which is no verb", verb)
		}
	}
}

// shellWords splits a line as a shell does, as far as the manual needs.
func shellWords(line string) (all []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

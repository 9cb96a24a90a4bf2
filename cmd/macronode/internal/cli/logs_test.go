package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/cmd/macronode/internal/exit"
)

// TestLogsAreJSONFromTheFirstLine: with a JSON log, standard error has only log lines, even if the configuration
// cannot be read. Other commands print text.
func TestLogsAreJSONFromTheFirstLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "macronode.yaml")
	if err := os.WriteFile(file, []byte("log: {format: json}\nnope: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, format string // MACRONODE_LOG__FORMAT
		isJSON       bool
	}{
		{"serve --set a.b=c", "json", true},
		{"--set a.b=c", "json", true},
		{"dev --set a.b=c", "json", true},
		{"serve --set a.b=c --set log.format=json", "", true},
		{"serve --set a.b=c --set=log.format=json", "", true},
		{"serve --data x --no-such-flag --set log.format=json", "", true},
		{"serve --set log.format=json --set node.drain=9h --set wallet=no", "", true},
		{"serve --config " + file, "", true},
		{"serve --config " + file, "text", false},
		{"config check --config " + file, "", false},
		{"serve --config /nowhere", "", false},
		{"serve --set a.b=c", "", false},
		{"serve --set a.b=c --set log.format=text", "json", false},
		{"config check --set a.b=c", "json", false},
		{"status --set a.b=c", "json", false},
	} {
		d := newTestConsole()
		d.environ = []string{"MACRONODE_LOG__FORMAT=" + c.format}
		if c.format == "" {
			d.environ = nil
		}
		if code := Run(strings.Fields(c.args), d.Console); code != exit.CodeUnable {
			t.Errorf("%s: %d", c.args, code)
		}
		stderr := d.err.String()
		for line := range strings.Lines(stderr) {
			var l struct{ Time, Level, Msg, Err string }
			err := json.Unmarshal([]byte(line), &l, json.MatchCaseInsensitiveNames(true))
			if isJSON := err == nil && l.Time != "" && l.Level == "ERROR" && l.Msg != "" && l.Err != ""; isJSON != c.isJSON {
				t.Errorf("%s, format %q: %s", c.args, c.format, line)
			}
		}
		if stderr == "" {
			t.Errorf("%s: nothing is said", c.args)
		}
	}
}

// TestOneReadyLine: the log has one line when the node is ready.
func TestOneReadyLine(t *testing.T) {
	t.Parallel()
	for range 3 {
		p := startNode(t, "log.format=json")
		p.end()
		ready := 0
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, `"msg":"ready"`) || strings.Contains(line, `"msg":"the node is ready"`) {
				ready++
			}
		}
		if ready != 1 {
			t.Errorf("%d lines say that it is ready:\n%s", ready, p.log)
		}
	}
}

// TestVersionFlag: --version prints the same as the command.
func TestVersionFlag(t *testing.T) {
	t.Parallel()
	flag, verb := newTestConsole(), newTestConsole()
	if code := Run([]string{"--version"}, flag.Console) + Run([]string{"version"}, verb.Console); code != exit.CodeDone || flag.out.String() != verb.out.String() || !strings.HasPrefix(flag.out.String(), "macronode ") {
		t.Errorf("%d: %q, the verb says %q\n%s", code, &flag.out, &verb.out, &flag.err)
	}
}

// TestConfigVerbsTakeTheFlagsOfServe, so that the configuration of a command line can be checked and compared.
func TestConfigVerbsTakeTheFlagsOfServe(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	listen := []string{"--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", p.dir, "--set", "journal.stall_threshold=4s"}
	for _, verb := range []string{"check", "effective", "diff"} {
		d := newTestConsole()
		if code := Run(append([]string{"config", verb}, listen...), d.Console); code != exit.CodeDone {
			t.Errorf("config %s: %d\n%s%s", verb, code, &d.out, &d.err)
		}
	}
}

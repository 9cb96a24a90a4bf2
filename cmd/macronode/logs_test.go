package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/config"
	"macronode/core/types"
)

// TestLogsAreJSONFromTheFirstLine: where a node is served with a log of JSON, standard error
// has nothing else, even where the configuration cannot be read. Other verbs speak to people.
func TestLogsAreJSONFromTheFirstLine(t *testing.T) {
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
		d := newDesk()
		d.environ = []string{"MACRONODE_LOG__FORMAT=" + c.format}
		if c.format == "" {
			d.environ = nil
		}
		if code := run(strings.Fields(c.args), d.console); code != unable {
			t.Errorf("%s: %d", c.args, code)
		}
		said := d.err.String()
		for line := range strings.Lines(said) {
			var l struct{ Time, Level, Msg, Err string }
			err := json.Unmarshal([]byte(line), &l, json.MatchCaseInsensitiveNames(true))
			if isJSON := err == nil && l.Time != "" && l.Level == "ERROR" && l.Msg != "" && l.Err != ""; isJSON != c.isJSON {
				t.Errorf("%s, format %q: %s", c.args, c.format, line)
			}
		}
		if said == "" {
			t.Errorf("%s: nothing is said", c.args)
		}
	}
}

// TestDurationsOfLogs are milliseconds, in text as in JSON.
func TestDurationsOfLogs(t *testing.T) {
	for format, want := range map[string]string{"text": "msg=a took_ms=1234.567 n=5", "json": `"msg":"a","took_ms":1234.567,"n":5}`} {
		var b strings.Builder
		log, _ := newLog(config.Log{Format: format, Level: "info"}, &b)
		log.Info("a", "took", 1234567*time.Microsecond+89, slog.Int("n", 5))
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s", format, &b)
		}
	}
}

// TestOneReadyLine: the log says once that the node is ready.
func TestOneReadyLine(t *testing.T) {
	for range 3 {
		p := serves(t, "log.format=json")
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

// TestReadyIsLoggedByOneOfTwo: whichever of announce and the sampler sees first that the node is
// ready, one line says so; a node that recovers later gets a line.
func TestReadyIsLoggedByOneOfTwo(t *testing.T) {
	for _, c := range []struct {
		before, now types.Phase
		announced   bool
		want        bool
	}{
		{types.Starting, types.Ready, false, true},
		{types.Starting, types.Ready, true, true}, // announce was first
		{types.Degraded, types.Ready, false, true},
		{types.Degraded, types.Ready, true, false},
		{types.Starting, types.Degraded, false, false},
		{types.Ready, types.Degraded, true, false},
	} {
		if got := leavesToAnnounce(c.before, c.now, c.announced); got != c.want {
			t.Errorf("%v to %v, announced %v: %v, want %v", c.before, c.now, c.announced, got, c.want)
		}
	}
}

// TestVersionFlag says what the verb says.
func TestVersionFlag(t *testing.T) {
	flag, verb := newDesk(), newDesk()
	if code := run([]string{"--version"}, flag.console) + run([]string{"version"}, verb.console); code != done || flag.out.String() != verb.out.String() || !strings.HasPrefix(flag.out.String(), "macronode ") {
		t.Errorf("%d: %q, the verb says %q\n%s", code, &flag.out, &verb.out, &flag.err)
	}
}

// TestConfigVerbsTakeTheFlagsOfServe, so that what a node is started with can be checked and
// compared.
func TestConfigVerbsTakeTheFlagsOfServe(t *testing.T) {
	p := serves(t)
	listen := []string{"--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", p.dir}
	for _, verb := range []string{"check", "effective", "diff"} {
		d := newDesk()
		if code := run(append([]string{"config", verb}, listen...), d.console); code != done {
			t.Errorf("config %s: %d\n%s%s", verb, code, &d.out, &d.err)
		}
	}
}

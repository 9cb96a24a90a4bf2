package cli

import (
	"slices"
	"testing"
)

// TestRepeatedFlags: a command does nothing if a flag that says what is done is given twice. Other flags can be replaced, and lists grow.
func TestRepeatedFlags(t *testing.T) {
	t.Parallel()
	issue := []string{"wallet", "issue", "--to", "ann", "--asset", "EUR/2", "--amount", "1", "--api-key", "secret"}
	for _, again := range [][]string{{"--amount", "2"}, {"--amount=1"}, {"--to", "bob"}, {"--asset", "USD/2"}} {
		p, d := newPeer(t, "cut"), newTestConsole()
		args := append(slices.Concat(issue, again), "--url", p.URL)
		if code := Run(args, d.Console); code != 2 || len(p.requests()) > 0 {
			t.Errorf("%v: %d, %d requests\n%s", args, code, len(p.requests()), &d.err)
		}
	}
	p, d := newPeer(t, "200 {}"), newTestConsole()
	if code := Run(append(issue, "--memo", "a", "--memo", "b", "--url", "http://127.0.0.1:1", "--url", p.URL), d.Console); code == 2 || len(p.requests()) != 1 {
		t.Errorf("%d, %d requests\n%s", code, len(p.requests()), &d.err)
	}
}

package cli

import (
	"os"
	"strings"
	"testing"
)

// With --json, standard output has exactly one JSON value: the result or the failure.
func TestFailuresAreJSON(t *testing.T) {
	t.Parallel()
	dead, _ := writeRunFiles(t, -1, "", "")
	for _, c := range []struct {
		line, answer string
		code         int
		want         string
	}{
		{issue, barred, 1, barred[4:]},
		{issue, `409 {"code":"nonce_conflict","detail":"Ahead.","expected_nonce":3}`, 1, `{"code":"nonce_conflict","detail":"Ahead.","expected_nonce":3}`},
		{issue + " --key k --timeout 5s", unclear, 3, `{"outcome":"unknown","idempotency_key":"k"}`},
		{issue, "404 what", 1, `{"outcome":"failed","detail":"what answers is no node of ours: 404 Not Found"}`},
		{"wallet burn --from ann --asset EUR/2 --amount 5 --nonce 4 --key k", "cut", 3, `{"outcome":"unknown","idempotency_key":"k","nonce":4}`},
		{"wallet balance ann EUR/2", barred, 1, barred[4:]},
		{"wallet tx tx_1", poor, 1, poor[4:]},
		{"wallet statement ann", barred, 1, barred[4:]},
		{"wallet accounts", barred, 1, barred[4:]},
		{"wallet changes", barred, 1, barred[4:]},
		{"keys list", barred, 1, barred[4:]},
		{"keys create n --scope read", "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): macronode keys list shows a key of this name if it was created; its secret is lost: revoke it"}`},
		{"keys revoke 1", "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): retry the revocation"}`},
		{"status", "cut", 1, `{"outcome":"failed","detail":"the node does not answer: EOF"}`},
		{"drain", barred, 1, barred[4:]},
		{"drain", "404 what", 1, `{"outcome":"failed","detail":"what answers is no node of ours: 404 Not Found"}`},
		{"status --data " + dead, "", 1, `{"outcome":"failed","detail":"the node on ` + dead + ` (process -1) is not running any more: start it again with macronode serve"}`},
		{"status --data nowhere", "", 1, `{"outcome":"failed","detail":"no node is running on nowhere: start one with macronode serve"}`},
		{"wallet bogus", "", 2, `{"outcome":"unable","detail":"unexpected argument bogus; see macronode --help"}`},
		{"config check --set node.drain=9h", "", 2, `{"outcome":"unable","detail":"node.drain (flag --set node.drain=9h) is 9h: must be a duration such as 200ms, 5s or 24h, from 0s to 30m"}`},
	} {
		p, d := newPeer(t, c.answer), newTestConsole()
		p.limitAttempts(c.line)
		args := append(strings.Fields(c.line), "--json")
		if !strings.Contains(c.line, "--data") {
			r, _ := writeRunFiles(t, os.Getpid(), p.at(), p.at())
			args = append(args, "--data", r)
		}
		code := Run(args, d.Console)
		if code != c.code || d.out.String() != c.want+"\n" || !strings.HasPrefix(d.err.String(), "macronode: ") {
			t.Errorf("%s: %d\n%s%swant %d\n%s", c.line, code, &d.out, &d.err, c.code, c.want)
		}
	}
}

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/testkit"
)

// With --json, standard output has exactly one JSON value: the result or the failure.
func TestFailuresAreJSON(t *testing.T) {
	t.Parallel()
	dead, _ := writeRunFiles(t, -1, "", "")
	file, address := filepath.Join(t.TempDir(), "file"), "b3:"+strings.Repeat("a", 64)
	events := filepath.Join(t.TempDir(), "events")
	testkit.Must(t, os.WriteFile(file, []byte("content"), 0o600))
	testkit.Must(t, os.WriteFile(events, []byte(oneEvent+"\n{"), 0o600))
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
		{"object put " + file, "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): repeat the command"}`},
		{"object put " + file, barred, 1, barred[4:]},
		{"usage record " + events, "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): run the same command again; each event counts once\nevent 2: invalid JSON: unexpected EOF"}`},
		{"object rm " + address + " --timeout 5s", unclear, 3, `{"outcome":"unknown","detail":"` + address + `: outcome unknown (outcome_unknown: Not known yet): repeat the command from this address on; not_found then means that it is deleted"}`},
		{"object rm " + address, barred, 1, barred[4:]},
		{"exports resume s", "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF)"}`},
		{"exports resume s", unclear, 3, `{"outcome":"unknown","detail":"outcome unknown (outcome_unknown: Not known yet)"}`},
		{"exports status", "cut", 1, `{"outcome":"failed","detail":"the node does not answer: EOF"}`},
		{"config reload", "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF)"}`},
		{"drain", "cut", 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF)"}`},
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

// TestUnknownPutIsNotFailed: a put of which a request may have taken effect ends with the exit code of an unknown outcome, whatever
// the node says after that. One of which none was sent has failed.
func TestUnknownPutIsNotFailed(t *testing.T) {
	t.Parallel()
	small, large := filepath.Join(t.TempDir(), "small"), filepath.Join(t.TempDir(), "large")
	testkit.Must(t, os.WriteFile(small, []byte("content"), 0o600))
	testkit.Must(t, os.WriteFile(large, nil, 0o600))
	testkit.Must(t, os.Truncate(large, client.PartSize+1))
	upload := func(offset string) string {
		return `{"upload_id":"0000000000010000","address":"b3:","bucket":"default","offset":"` + offset + `","complete":false}`
	}
	const missing, first, other = `404 {"code":"not_found","detail":"None."}`, "16777216", `409 {"code":"digest_mismatch","detail":"Other."}`
	head := []string{missing, missing} // the file is not there
	for _, c := range []struct {
		name, file string
		answers    []string
		code       int
		want       string
	}{
		{"the node is away after it", small, []string{"cut", late}, 3, `{"outcome":"unknown","detail":"outcome unknown (unavailable: Draining): repeat the command"}`},
		{"unavailable", small, []string{late}, 1, late[4:]},
		{"the begin is cut", large, []string{"cut"}, 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): repeat the command"}`},
		{"a part is cut", large, []string{"201 " + upload("0"), "cut"}, 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): repeat the command"}`},
		{"a part is cut, the next one rejected", large, []string{"201 " + upload("0"), "cut", "200 " + upload("0"), barred}, 1, barred[4:]},
		{"the last part is cut", large, []string{"201 " + upload("0"), "204", "cut"}, 3, `{"outcome":"unknown","detail":"outcome unknown (the node does not answer: EOF): repeat the command"}`},
		{"the last part is cut, then rejected", large, []string{"201 " + upload("0"), "204", "cut", "200 " + upload(first), barred}, 3, `{"outcome":"unknown","detail":"outcome unknown (forbidden: May not): repeat the command"}`},
		{"the last part is cut, and its content another one", large, []string{"201 " + upload("0"), "204", "cut", "200 " + upload(first), other, "cut"}, 1, other[4:]},
	} {
		p, d := newPeer(t, append(head, c.answers...)...), newTestConsole()
		d.mostWaits = 3
		if code := Run([]string{"object", "put", c.file, "--json", "--url", p.URL, "--api-key", "secret", "--state-home", t.TempDir()}, d.Console); code != c.code || d.out.String() != c.want+"\n" {
			t.Errorf("%s: %d\n%s%swant %d\n%s", c.name, code, &d.out, &d.err, c.code, c.want)
		}
	}
	p, d := newPeer(t, "cut"), newTestConsole()
	p.Close()
	if code := Run([]string{"object", "put", small, "--url", p.URL, "--api-key", "secret"}, d.Console); code != 1 {
		t.Errorf("no node: %d\n%s", code, &d.err)
	}
}

// TestUnknownRemovalIsNotFailed: an object that an earlier attempt may have removed is not found by the next one.
func TestUnknownRemovalIsNotFailed(t *testing.T) {
	t.Parallel()
	address := "b3:" + strings.Repeat("a", 64)
	p, d := newPeer(t, "cut", `404 {"code":"not_found","detail":"None."}`), newTestConsole()
	d.wantOutput(t, p, "object rm "+address, 3, "macronode: "+address+": outcome unknown (not_found: None): repeat the command from this address on; not_found then means that it is deleted\n")
}

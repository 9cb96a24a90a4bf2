package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// golden returns the response to a request in the golden conversation of the API.
func golden(t *testing.T, target string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../adapters/httpapi/testdata/wire")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "> "+target)
	rest, _, _ = strings.Cut(rest, "\n\n")
	var lines []string
	for line := range strings.SplitSeq(rest, "\n") {
		if text, is := strings.CutPrefix(line, "< "); is {
			lines = append(lines, strings.TrimSuffix(text, "\r"))
		}
	}
	if !ok || len(lines) < 2 {
		t.Fatalf("the conversation has no %s", target)
	}
	return strings.Join(lines[1:], "\n")
}

// A statement in CSV equals that of the node, byte by byte.
func TestCSVEqualsThatOfNode(t *testing.T) {
	t.Parallel()
	want := golden(t, "GET /v1/accounts/shop:1/entries?format=csv")
	lines := golden(t, "GET /v1/accounts/shop:1/entries?limit=2")
	rest := golden(t, "GET /v1/accounts/shop:1/entries?after_seq=2&format=ndjson")
	second := `200 {"account":"shop:1","entries":[` + strings.ReplaceAll(rest, "\n", ",") + `]}`
	p, d := newPeer(t, "200 "+lines, late, second), newTestConsole()
	d.wantOutput(t, p, "wallet statement shop:1 --format csv", 0, strings.ReplaceAll(want, "\n", "\r\n")+"\r\n")
	p, d = newPeer(t, `200 {"account":"a","entries":[]}`), newTestConsole()
	head, _, _ := strings.Cut(want, "\n")
	d.wantOutput(t, p, "wallet statement a --format csv", 0, head+"\r\n")
}

// A text that a spreadsheet could read as a formula is made a text; other texts stay as they are.
func TestCells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": `""`, "tea": `"tea"`, `say "hi"`: `"say ""hi"""`, "=1": `"'=1"`, " =1": `"' =1"`, "+1": `"'+1"`, "-1": `"'-1"`, "@a": `"'@a"`,
		"'a": `"''a"`, "a=1": `"a=1"`, "＝1": `"'＝1"`, "\u00a0=1": "\"'\u00a0=1\"",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
}

// Listings continue after a page, as rows or as objects.
func TestLists(t *testing.T) {
	t.Parallel()
	const accounts = `200 {"accounts":[{"account":"ann","frozen":false,"next_nonce":3,"balances":[{"asset":"A","amount_minor":"5","held_minor":"1","available_minor":"4"},` +
		`{"asset":"B","amount_minor":"6","held_minor":"0","available_minor":"6"}]}],"next_cursor":"x"}`
	const more = `200 {"accounts":[{"account":"bob","frozen":true,"next_nonce":1,"balances":[]}]}`
	p, d := newPeer(t, accounts, more), newTestConsole()
	d.wantOutput(t, p, "wallet accounts --limit 7", 0, ""+
		"account                   asset     amount        held          available     next nonce  state\n"+
		"ann                       A         5             1             4             3           open\n"+
		"ann                       B         6             0             6             3           open\n"+
		"bob                       -         -             -             -             1           frozen\n")
	if got := p.requests()[1]; !strings.HasPrefix(got, "GET /v1/accounts?cursor=x&limit=6 ") {
		t.Error(got)
	}
	p, d = newPeer(t, accounts, more), newTestConsole()
	d.wantOutput(t, p, "wallet accounts --json", 0, accounts[17:strings.Index(accounts, `],"next_cursor`)]+"\n"+more[17:len(more)-2]+"\n")
	p, d = newPeer(t, accounts, barred), newTestConsole()
	d.wantOutput(t, p, "wallet accounts --json", 1, accounts[17:strings.Index(accounts, `],"next_cursor`)]+"\nmacronode: forbidden: May not\n")
}

// A truncated statement fails.
func TestTruncatedStatementFails(t *testing.T) {
	t.Parallel()
	const page = `200 {"entries":[{"seq":1,"direction":"debit","amount_minor":"5","memo":"m"}],"next_after_seq":1}`
	p, d := newPeer(t, page, barred), newTestConsole()
	d.wantOutput(t, p, "wallet statement ann --json", 1, "[\n"+`{"seq":1,"direction":"debit","amount_minor":"5","memo":"m"}`+"macronode: forbidden: May not\n")
}

// A receipt whose hash differs is not printed.
func TestReceiptIsVerified(t *testing.T) {
	t.Parallel()
	good := golden(t, "POST /v1/transfer k3")
	p, d := newPeer(t, "200 "+good), newTestConsole()
	d.wantOutput(t, p, "wallet tx tx_1 --verify --json", 0, good+"\n")
	p, d = newPeer(t, "200 "+strings.Replace(good, `"300"`, `"301"`, 1)), newTestConsole()
	if code := Run([]string{"wallet", "tx", "tx_1", "--verify", "--url", p.URL, "--api-key", "s"}, d.Console); code != 1 ||
		!strings.Contains(d.err.String(), "the receipt is not what its hash says") {
		t.Error(code, &d.err)
	}
	batch := golden(t, "POST /v1/batch k12")
	p, d = newPeer(t, "200 "+strings.Replace(batch, `"amount_minor":"5"`, `"amount_minor":"6"`, 1)), newTestConsole()
	if code := Run([]string{"wallet", "tx", "--key", "k12", "--verify", "--url", p.URL, "--api-key", "s"}, d.Console); code != 1 {
		t.Error(code, &d.out)
	}
}

// The fields of an order are sent once; a relative time is resolved once.
func TestOrders(t *testing.T) {
	t.Parallel()
	const done = `200 {"txid":"tx_1","op":"hold","from":"ann","asset":"A","amount_minor":"5","seq":9,"hold_id":"hold_1","expires_at":"2026-01-03T00:00:00.000Z"}`
	for line, want := range map[string]string{
		"wallet issue --to ann --asset A --amount 5 --ref r --memo m":              `/v1/issue drawn Bearer secret {"amount_minor":"5","asset":"A","memo":"m","ref":"r","to":"ann"}`,
		"wallet transfer --from ann --to b --asset A --amount 5 --nonce 2 --key k": `/v1/transfer k Bearer secret {"amount_minor":"5","asset":"A","from":"ann","nonce":2,"to":"b"}`,
		"wallet burn --from ann --asset A --amount 5 --nonce 2 --ref r":            `/v1/burn drawn Bearer secret {"amount_minor":"5","asset":"A","from":"ann","nonce":2,"ref":"r"}`,
		"wallet hold --from ann --for b --asset A --amount 5 --nonce 2 --expires 48h": `/v1/holds drawn Bearer secret {"amount_minor":"5","asset":"A","beneficiary":"b",` +
			`"expires_at":"2026-01-03T00:00:00Z","from":"ann","nonce":2}`,
		"wallet hold --from ann --asset A --amount 5 --nonce 2 --expires 2026-01-03T01:00:00+01:00": `/v1/holds drawn Bearer secret {"amount_minor":"5","asset":"A",` +
			`"expires_at":"2026-01-03T00:00:00Z","from":"ann","nonce":2}`,
		"wallet capture hold_1 --to b --amount 5":     `/v1/holds/hold_1/capture drawn Bearer secret {"amount_minor":"5","to":"b"}`,
		"wallet release hold_1 --key k":               `/v1/holds/hold_1/release k Bearer secret {}`,
		"wallet freeze a/b --reason r":                `/v1/accounts/a%2Fb/freeze drawn Bearer secret {"reason":"r"}`,
		"wallet unfreeze a/b --reason r":              `/v1/accounts/a%2Fb/unfreeze drawn Bearer secret {"reason":"r"}`,
		"keys create n --scope read,admin --tenant 7": `/v1/keys  Bearer secret {"name":"n","scopes":["read","admin"],"tenant":"7"}`,
	} {
		p, d := newPeer(t, done), newTestConsole()
		Run(append(strings.Fields(line), "--url", p.URL, "--api-key", "secret"), d.Console)
		if got := p.requests(); len(got) != 1 || got[0] != "POST "+want {
			t.Errorf("%s: asked\n%q, not\n%q", line, got, want)
		}
	}
	p, d := newPeer(t, unclear), newTestConsole()
	p.limitAttempts("--timeout")
	d.wantOutput(t, p, "wallet hold --from ann --asset A --amount 5 --nonce 2 --expires 48h --timeout 5s", 3,
		"macronode: outcome unknown (outcome_unknown: Not known yet): retry with --key drawn --nonce 2 --expires 2026-01-03T00:00:00.000Z\n")
	p, d = newPeer(t, `409 {"code":"nonce_conflict","detail":"Ahead.","retryable":true,"expected_nonce":2}`, moved), newTestConsole()
	d.wantOutput(t, p, "wallet transfer --from ann --to bob --asset A --amount 5 --nonce 3 --wait", 0, "tx_1: moved 5 EUR/2 from ann to bob, seq 9\n")
}

// interruptingWriter interrupts its own process after the first write.
type interruptingWriter struct{ io.Writer }

func (r interruptingWriter) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	return n, errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGINT))
}

// Following ends successfully with an interrupt. The interrupt is of the process, so no other test runs meanwhile.
func TestInterruptedFollowSucceeds(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "event: change\ndata: {\"seq\":8,\"op\":\"issue\",\"txid\":\"tx_1\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	d := newTestConsole()
	d.Console.out = interruptingWriter{&d.out}
	if code := Run(strings.Fields("wallet changes --follow --after 7 --json --api-key s --url "+s.URL), d.Console); code != 0 ||
		d.out.String() != `{"seq":8,"op":"issue","txid":"tx_1"}`+"\n" || d.err.Len() > 0 {
		t.Errorf("%d\n%s%s", code, &d.out, &d.err)
	}
}

// A key is saved in its file, or no file is left; of exclusive flags exactly one is needed.
func TestKeyFileAndRequiredFlags(t *testing.T) {
	t.Parallel()
	const made = `200 {"key":"mk_1_s","id":"1","name":"n"}`
	path := filepath.Join(t.TempDir(), "key")
	for _, c := range []struct {
		answer, line string
		code         int
		want         string
		kept         string
	}{
		{barred, "keys create n --scope read --out " + path, 1, "macronode: forbidden: May not\n", ""},
		{"cut", "keys create n --scope read --out " + path, 3, "macronode: outcome unknown (the node does not answer: EOF): " +
			"macronode keys list shows a key of this name if it was created; its secret is lost: revoke it\n", ""},
		{made, "keys create n --scope read --out " + path, 0, "the key 1, named n, is in " + path + "\n", "mk_1_s\n"},
		{made, "keys create n --scope read --out " + path, 2, "macronode: --out: open " + path + ": file exists\n", "mk_1_s\n"},
		{moved, "wallet tx", 2, "macronode: tx needs one of a txid, --ref and --key\n", "mk_1_s\n"},
		{moved, "wallet tx tx_1 --ref r", 2, "macronode: tx needs one of a txid, --ref and --key\n", "mk_1_s\n"},
		{moved, "wallet holds", 2, "macronode: holds needs an account or --id\n", "mk_1_s\n"},
		{moved, "wallet holds ann --id hold_1", 2, "macronode: holds needs an account or --id\n", "mk_1_s\n"},
		{moved, "wallet balance-at ann A --time soon", 2, "macronode: --time soon must be a time such as 2026-01-31T12:00:00Z\n", "mk_1_s\n"},
	} {
		p, d := newPeer(t, c.answer), newTestConsole()
		d.wantOutput(t, p, c.line, c.code, c.want)
		if kept, _ := os.ReadFile(path); string(kept) != c.kept {
			t.Errorf("%s: kept %q", c.line, kept)
		}
		if _, err := os.Stat(path); c.kept == "" && err == nil {
			t.Errorf("%s: an empty file stays", c.line)
		}
	}
}

package main

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

// golden is what the API answered to a request in its golden conversation.
func golden(t *testing.T, asked string) string {
	t.Helper()
	text, err := os.ReadFile("../../adapters/httpapi/testdata/wire")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "> "+asked)
	rest, _, _ = strings.Cut(rest, "\n\n")
	var lines []string
	for line := range strings.SplitSeq(rest, "\n") {
		if said, is := strings.CutPrefix(line, "< "); is {
			lines = append(lines, strings.TrimSuffix(said, "\r"))
		}
	}
	if !ok || len(lines) < 2 {
		t.Fatalf("the conversation has no %s", asked)
	}
	return strings.Join(lines[1:], "\n")
}

// A statement in CSV is what the node itself would have written, byte by byte.
func TestCSVIsTheNodes(t *testing.T) {
	want := golden(t, "GET /v1/accounts/shop:1/entries?format=csv")
	lines := golden(t, "GET /v1/accounts/shop:1/entries?limit=2")
	rest := golden(t, "GET /v1/accounts/shop:1/entries?after_seq=2&format=ndjson")
	second := `200 {"account":"shop:1","entries":[` + strings.ReplaceAll(rest, "\n", ",") + `]}`
	p, d := newPeer(t, "200 "+lines, late, second), newDesk()
	d.says(t, p, "wallet statement shop:1 --format csv", 0, strings.ReplaceAll(want, "\n", "\r\n")+"\r\n")
	p, d = newPeer(t, `200 {"account":"a","entries":[]}`), newDesk()
	head, _, _ := strings.Cut(want, "\n")
	d.says(t, p, "wallet statement a --format csv", 0, head+"\r\n")
}

// What a spreadsheet would compute is a text there, and what is a text stays one.
func TestCells(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "tea": `"tea"`, `say "hi"`: `"say ""hi"""`, "=1": `"'=1"`, " =1": `"' =1"`, "+1": `"'+1"`, "-1": `"'-1"`, "@a": `"'@a"`,
		"'a": `"''a"`, "a=1": `"a=1"`, "＝1": `"'＝1"`, "\u00a0=1": "\"'\u00a0=1\"",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
}

// Listings go on where a page ended, as rows or as objects.
func TestLists(t *testing.T) {
	const accounts = `200 {"accounts":[{"account":"ann","frozen":false,"next_nonce":3,"balances":[{"asset":"A","amount_minor":"5","held_minor":"1","available_minor":"4"},` +
		`{"asset":"B","amount_minor":"6","held_minor":"0","available_minor":"6"}]}],"next_cursor":"x"}`
	const more = `200 {"accounts":[{"account":"bob","frozen":true,"next_nonce":1,"balances":[]}]}`
	p, d := newPeer(t, accounts, more), newDesk()
	d.says(t, p, "wallet accounts --limit 7", 0, ""+
		"account                   asset     amount        held          available     next nonce  state\n"+
		"ann                       A         5             1             4             3           open\n"+
		"ann                       B         6             0             6             3           open\n"+
		"bob                       -         -             -             -             1           frozen\n")
	if got := p.asked()[1]; !strings.HasPrefix(got, "GET /v1/accounts?cursor=x&limit=6 ") {
		t.Error(got)
	}
	p, d = newPeer(t, accounts, more), newDesk()
	d.says(t, p, "wallet accounts --json", 0, accounts[17:strings.Index(accounts, `],"next_cursor`)]+"\n"+more[17:len(more)-2]+"\n")
	p, d = newPeer(t, accounts, barred), newDesk()
	d.says(t, p, "wallet accounts --json", 1, accounts[17:strings.Index(accounts, `],"next_cursor`)]+"\nmacronode: forbidden: May not\n")
}

// A statement that broke off is not one that is whole.
func TestAStatementBreaksOff(t *testing.T) {
	const page = `200 {"entries":[{"seq":1,"direction":"debit","amount_minor":"5","memo":"m"}],"next_after_seq":1}`
	p, d := newPeer(t, page, barred), newDesk()
	d.says(t, p, "wallet statement ann --json", 1, "[\n"+`{"seq":1,"direction":"debit","amount_minor":"5","memo":"m"}`+"macronode: forbidden: May not\n")
}

// A receipt that is not what its hash says is not passed on as proof.
func TestAReceiptIsVerified(t *testing.T) {
	good := golden(t, "POST /v1/transfer k3")
	p, d := newPeer(t, "200 "+good), newDesk()
	d.says(t, p, "wallet tx tx_1 --verify --json", 0, good+"\n")
	p, d = newPeer(t, "200 "+strings.Replace(good, `"300"`, `"301"`, 1)), newDesk()
	if code := run([]string{"wallet", "tx", "tx_1", "--verify", "--url", p.URL, "--api-key", "s"}, d.console); code != 1 ||
		!strings.Contains(d.err.String(), "the receipt is not what its hash says") {
		t.Error(code, &d.err)
	}
	batch := golden(t, "POST /v1/batch k12")
	p, d = newPeer(t, "200 "+strings.Replace(batch, `"amount_minor":"5"`, `"amount_minor":"6"`, 1)), newDesk()
	if code := run([]string{"wallet", "tx", "--key", "k12", "--verify", "--url", p.URL, "--api-key", "s"}, d.console); code != 1 {
		t.Error(code, &d.out)
	}
}

// What is said in an order is what is sent, once; a time from now is one time.
func TestOrders(t *testing.T) {
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
		p, d := newPeer(t, done), newDesk()
		run(append(strings.Fields(line), "--url", p.URL, "--api-key", "secret"), d.console)
		if got := p.asked(); len(got) != 1 || got[0] != "POST "+want {
			t.Errorf("%s: asked\n%q, not\n%q", line, got, want)
		}
	}
	p, d := newPeer(t, unclear), newDesk()
	p.impatient("--timeout")
	d.says(t, p, "wallet hold --from ann --asset A --amount 5 --nonce 2 --expires 48h --timeout 5s", 3,
		"macronode: outcome unknown (outcome_unknown: Not known yet): retry with --key drawn --nonce 2 --expires 2026-01-03T00:00:00.000Z\n")
	p, d = newPeer(t, `409 {"code":"nonce_conflict","detail":"Ahead.","retryable":true,"expected_nonce":2}`, moved), newDesk()
	d.says(t, p, "wallet transfer --from ann --to bob --asset A --amount 5 --nonce 3 --wait", 0, "tx_1: moved 5 EUR/2 from ann to bob, seq 9\n")
}

// ringing is a writer that interrupts its own process once it was written to.
type ringing struct{ io.Writer }

func (r ringing) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	return n, errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGINT))
}

// Who follows until he is told to end has ended well.
func TestAFollowerIsTold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "event: change\ndata: {\"seq\":8,\"op\":\"issue\",\"txid\":\"tx_1\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	d := newDesk()
	d.console.out = ringing{&d.out}
	if code := run(strings.Fields("wallet changes --follow --after 7 --json --api-key s --url "+s.URL), d.console); code != 0 ||
		d.out.String() != `{"seq":8,"op":"issue","txid":"tx_1"}`+"\n" || d.err.Len() > 0 {
		t.Errorf("%d\n%s%s", code, &d.out, &d.err)
	}
}

// A key is kept where it was to be, or there is no trace of it; and of what a verb wants
// one of several, must be one.
func TestWhatIsKeptAndWanted(t *testing.T) {
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
		p, d := newPeer(t, c.answer), newDesk()
		d.says(t, p, c.line, c.code, c.want)
		if kept, _ := os.ReadFile(path); string(kept) != c.kept {
			t.Errorf("%s: kept %q", c.line, kept)
		}
		if _, err := os.Stat(path); c.kept == "" && err == nil {
			t.Errorf("%s: an empty file stays", c.line)
		}
	}
}

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeTemp writes a temporary file and returns its path.
func writeTemp(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	five      = `{"op":"issue","to":"ann","asset":"EUR","amount_minor":"5","ref":"five"}` + "\n"
	six       = `{"op":"issue","to":"bob","asset":"EUR","amount_minor":"6","ref":"six"}` + "\n"
	rcpt      = `{"txid":"tx_1","op":"issue","to":"ann","asset":"EUR","amount_minor":"5","seq":1}`
	good      = `{"status":200,"receipt":` + rcpt + `}`
	bad       = `{"status":409,"problem":{"code":"ref_used","detail":"Used.","status":409}}`
	both      = `200 {"results":[` + good + `,` + good + `]}`
	one       = `200 {"results":[` + good + `]}`
	half      = `200 {"results":[` + good + `,` + bad + `]}`
	whole     = `200 {"receipts":[` + rcpt + `,` + rcpt + `]}`
	another   = `422 {"code":"idempotency_conflict","detail":"Another."}`
	badLine   = `400 {"code":"bad_request","detail":"to: must be more.","index":1}`
	badFirst  = `400 {"code":"bad_request","detail":"op: no.","index":0}`
	notWhole  = `409 {"code":"insufficient_funds","detail":"Too little.","index":0}`
	usedWhole = `409 {"code":"ref_used","detail":"Used.","index":0}`
)

func TestBatch(t *testing.T) {
	t.Parallel()
	file := writeTemp(t, "f.ndjson", five+six+"\n"+five+six+five)
	for _, c := range []struct {
		name, flags string
		answers     []string
		code, asked int
		want        string
	}{
		{"all is done", "", []string{both, both, one}, 0, 3, "5 lines: 5 applied, 0 rejected, 0 unknown, 0 not sent\n"},
		{"a line is refused", "", []string{both, half, one}, 1, 3,
			"line 5: ref_used: Used\n5 lines: 4 applied, 1 rejected, 0 unknown, 0 not sent\nmacronode: 1 of 5 lines were rejected\n"},
		{"in JSON", "--json", []string{both, half, one}, 1, 3,
			`{"line":5,"problem":{"code":"ref_used","detail":"Used.","status":409}}` + "\n" +
				`{"lines":5,"done":4,"refused":1,"unknown":0,"unsent":0,"replayed":0}` + "\nmacronode: 1 of 5 lines were rejected\n"},
		{"busy for a while", "", []string{busy, both, late, both, unclear, one}, 0, 6, "5 lines: 5 applied, 0 rejected, 0 unknown, 0 not sent\n"},
		{"nobody knows", "--timeout 5s", []string{both, unclear}, 3, 2,
			"5 lines: 2 applied, 0 rejected, 2 unknown, 1 not sent\nmacronode: lines 4 to 5: outcome unknown (outcome_unknown: Not known yet): run the same command again\n"},
		{"all or nothing", "--atomic", []string{whole, notWhole}, 1, 2,
			"line 4: insufficient_funds: Too little\n5 lines: 2 applied, 1 rejected, 0 unknown, 2 not sent\n" +
				"macronode: stopped: lines 4 to 5 were not applied, because line 4 was rejected: correct it and send the file from line 4 on with another --key\n"},
		{"all or nothing, and it was all", "--atomic", []string{usedWhole}, 1, 1,
			"line 1: ref_used: Used\n5 lines: 0 applied, 1 rejected, 0 unknown, 4 not sent\n" +
				"macronode: stopped: lines 1 to 2 were not applied now, because line 1 was rejected: it may have taken effect in an earlier run, with all of these lines. " +
				"Look at the statements of its accounts, and send only lines that are not in them, with another --key\n"},
		{"a line is malformed", "", []string{both, badLine, one, one}, 1, 4,
			"line 5: bad_request: to: must be more\n5 lines: 4 applied, 1 rejected, 0 unknown, 0 not sent\nmacronode: 1 of 5 lines were rejected\n"},
		{"all lines of a batch are malformed", "", []string{both, badLine, badFirst, one}, 1, 4,
			"line 4: bad_request: op: no\nline 5: bad_request: to: must be more\n5 lines: 3 applied, 2 rejected, 0 unknown, 0 not sent\nmacronode: 2 of 5 lines were rejected\n"},
		{"a line is malformed, in JSON", "--json", []string{both, badLine, one, one}, 1, 4,
			`{"line":5,"problem":{"code":"bad_request","detail":"to: must be more.","index":1}}` + "\n" +
				`{"lines":5,"done":4,"refused":1,"unknown":0,"unsent":0,"replayed":0}` + "\nmacronode: 1 of 5 lines were rejected\n"},
		{"a line is malformed, and the rest is not let in", "", []string{both, badLine, barred}, 1, 3,
			"line 5: bad_request: to: must be more\n5 lines: 2 applied, 1 rejected, 0 unknown, 2 not sent\nmacronode: stopped: lines 4 to 4 were not applied: forbidden: May not\n"},
		{"a line is malformed, all or nothing", "--atomic", []string{whole, badLine}, 1, 2,
			"line 5: bad_request: to: must be more\n5 lines: 2 applied, 1 rejected, 0 unknown, 2 not sent\n" +
				"macronode: stopped: lines 4 to 5 were not applied, because line 5 was rejected: correct it and send the file from line 4 on with another --key\n"},
		{"another file", "", []string{both, another}, 1, 2,
			"5 lines: 2 applied, 0 rejected, 0 unknown, 3 not sent\nmacronode: stopped: lines 4 to 5 differ from what was sent with the key k.1: the file or --size has changed\n"},
		{"not let in", "", []string{barred}, 1, 1,
			"5 lines: 0 applied, 0 rejected, 0 unknown, 5 not sent\nmacronode: stopped: lines 1 to 2 were not applied: forbidden: May not\n"},
		{"not let in any more", "--json", []string{both, barred}, 1, 2,
			`{"lines":5,"done":2,"refused":0,"unknown":0,"unsent":3,"replayed":0}` + "\nmacronode: stopped: lines 4 to 5 were not applied: forbidden: May not\n"},
		{"fewer are answered than were asked", "", []string{one}, 3, 1,
			"5 lines: 0 applied, 0 rejected, 2 unknown, 3 not sent\nmacronode: lines 1 to 2: outcome unknown " +
				"(what answers is no node of ours: 2 items were asked, 1 answered): run the same command again\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := newPeer(t, c.answers...), newTestConsole()
			p.limitAttempts(c.flags)
			code := Run(append(strings.Fields("wallet batch --key k --size 2 "+c.flags), file, "--url", p.URL, "--api-key", "s"), d.Console)
			output := d.out.String() + withoutProgress(d.err.String())
			if code != c.code || output != c.want || len(p.requests()) != c.asked {
				t.Errorf("%d, asked %d times\n%swant %d\n%s", code, len(p.requests()), output, c.code, c.want)
			}
		})
	}
}

// withoutProgress returns an output without its progress lines.
func withoutProgress(output string) (rest string) {
	for text := range strings.Lines(output) {
		if strings.HasPrefix(text, "macronode: ") {
			rest += text
		}
	}
	return rest
}

// The same file with the same prefix sends the same requests, whatever was interrupted before. Replays are
// counted.
func TestBatchRerunIsReplayed(t *testing.T) {
	t.Parallel()
	file := writeTemp(t, "f", five+six+five)
	args := strings.Fields("wallet batch --key k --size 2 --api-key s " + file + " --url ")
	p, d := newPeer(t, both, "cut"), newTestConsole()
	if code := Run(append(args, p.URL), d.Console); code != 3 {
		t.Fatal(code, &d.err)
	}
	first := p.requests()
	p, d = newPeer(t, both, one), newTestConsole()
	p.header.Set("Idempotency-Replayed", "true")
	if code := Run(append(args, p.URL), d.Console); code != 0 {
		t.Fatal(code, &d.err)
	}
	if again := p.requests(); !slices.Equal(again, slices.Compact(first)) || !strings.Contains(again[1], "/v1/batch k.1 ") {
		t.Errorf("asked\n%q, then\n%q", first, again)
	}
	if want := "3 lines: 3 applied, 0 rejected, 0 unknown, 0 not sent; 3 of them were sent by an earlier run\n"; d.out.String() != want {
		t.Error(&d.out)
	}
}

// A batch ends where it would exceed the limit of the node.
func TestBatchSizeLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{"op":"issue","to":"`+strings.Repeat("a", 2000)+`","asset":"EUR","amount_minor":"5","ref":"r"}`+"\n", 600)
	p, d := newPeer(t, `400 {"code":"bad_request","detail":"."}`), newTestConsole()
	Run([]string{"wallet", "batch", writeTemp(t, "f", long), "--key", "k", "--size", "1000", "--url", p.URL, "--api-key", "s"}, d.Console)
	if n := len(p.requests()[0]); n > 1<<20 || n < 1<<20-3000 {
		t.Errorf("%d bytes were sent", n)
	}
}

// The operations of a file are sent, from NDJSON or CSV, from a file or a pipe.
func TestBatchFileFormats(t *testing.T) {
	t.Parallel()
	const both = `{"atomic":false,"items":[{"amount_minor":"5","asset":"EUR","from":"ann","memo":"a \"b\", c","nonce":3,"op":"transfer","to":"bob"},` +
		`{"hold_id":"hold_1","op":"release"},{"amount_minor":"7","asset":"EUR","expires_at":"2026-01-31T12:00:00Z","from":"ann","nonce":4,"op":"hold"}]}`
	for name, text := range map[string]string{
		"ndjson": `{"op":"transfer","from":"ann","to":"bob","asset":"EUR","amount_minor":"5","nonce":3,"memo":"a \"b\", c"}` + "\r\n\n" +
			` {"hold_id":"hold_1","op":"release"}` + "\n" +
			`{"op":"hold","from":"ann","asset":"EUR","amount_minor":"7","nonce":4,"expires_at":"2026-01-31T12:00:00Z"}`,
		"csv": "op,from,to,asset,amount_minor,nonce,memo,hold_id,expires_at\n" + `transfer,ann,bob,EUR,5,3,"a ""b"", c",,` + "\n" +
			"release,,,,,,,hold_1,\r\nhold,ann,,EUR,7,4,,,2026-01-31T12:00:00Z\n",
	} {
		for _, from := range []string{"-", writeTemp(t, "f", text), writeTemp(t, "marked", "\xef\xbb\xbf"+text)} {
			for _, format := range []string{"auto", name} {
				p, d := newPeer(t, barred), newTestConsole()
				d.in = strings.NewReader(text)
				Run([]string{"wallet", "batch", from, "--key", "k", "--format", format, "--url", p.URL, "--api-key", "s"}, d.Console)
				if want := "POST /v1/batch k.0 Bearer s " + both; p.requests()[0] != want {
					t.Errorf("%s: asked\n%s, not\n%s", name, p.requests()[0], want)
				}
			}
		}
	}
}

// A file with an invalid line is not sent.
func TestInvalidFileIsNotSent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		five + "{":                           "line 2: invalid JSON: unexpected EOF",
		five + `{"op":"isue"}`:               `line 2: op: "isue" must be issue, transfer, burn, hold, capture or release`,
		five + `{"op":"issue","too":"ann"}`:  `line 2: unknown member "too"`,
		five + `{"op":"issue","nonce":"1"}`:  "line 2: nonce: invalid value",
		five + "7":                           "line 2: it is no object",
		five + `{"op":"issue","op":"burn"}`:  "line 2: invalid JSON: duplicate object member name",
		five + strings.Repeat(" ", 70_000):   "line 2: the line is longer than 65536 bytes",
		"":                                   "line 1: the file is empty; a CSV file starts with the column names",
		"op,frm\nissue,ann":                  `line 1: unknown column "frm": the columns are op, from, to, beneficiary, asset, amount_minor, nonce, hold_id, expires_at, ref and memo`,
		"op,frm\nissue,\n":                   `line 1: unknown column "frm": the columns are op, from, to, beneficiary, asset, amount_minor, nonce, hold_id, expires_at, ref and memo`,
		"op,to\nissue,ann,EUR\n":             "line 2: wrong number of fields",
		"op,amount_minor,to, amount_minor\n": `line 1: the column "amount_minor" occurs twice`,
		"op,to\nissue," + strings.Repeat("a", 70_000) + "\n": "line 2: the line is longer than 65536 bytes",
		"op,to\nissue,\"" + strings.Repeat("a\n", 40_000):    "line 2: the line is longer than 65536 bytes",
		"op,to,ref\n\nissue,ann,r\nburn,\"a\"b\n":            "line 4: extraneous or missing \" in quoted-field",
		"op,nonce\ntransfer,one\n":                           `line 2: nonce: invalid value "one"`,
		"to\nann\n":                                          `line 2: op: "" must be issue, transfer, burn, hold, capture or release`,
		"op,expires_at\nhold,soon\n":                         `line 2: expires_at: invalid value "soon"`,
		// What does not make it take effect once for ever.
		five + `{"op":"issue","to":"ann","nonce":1}`:    "line 2: ref: is missing: an issue without one takes effect again when the node has removed its idempotency key",
		"op,to,ref\nissue,ann,r-1\nissue,ann,\n":        "line 3: ref: is missing: an issue without one takes effect again when the node has removed its idempotency key",
		five + `{"op":"transfer","from":"a","ref":"r"}`: "line 2: nonce: must be the next nonce of the debited account, at least 1, not 0",
		five + `{"op":"burn","from":"a","nonce":-1}`:    "line 2: nonce: must be the next nonce of the debited account, at least 1, not -1",
		five + `{"op":"hold","from":"a"}`:               "line 2: nonce: must be the next nonce of the debited account, at least 1, not 0",
		five + `{"op":"capture","to":"b"}`:              "line 2: hold_id: is missing",
		five + `{"op":"release","ref":"r"}`:             "line 2: hold_id: is missing",
	} {
		p, d := newPeer(t, both), newTestConsole()
		path := writeTemp(t, "f", text)
		code := Run([]string{"wallet", "batch", path, "--key", "k", "--url", p.URL, "--api-key", "s"}, d.Console)
		if want := "macronode: " + path + ": " + want + "; nothing was sent\n"; code != 2 || d.err.String() != want || len(p.requests()) > 0 {
			t.Errorf("%q: %d, asked %q\n%swant\n%s", text, code, p.requests(), &d.err, want)
		}
	}
	for flags, want := range map[string]string{
		"--key k --size 0":                  "--size 0 must be 1 to 1000",
		"--key k --size 1001":               "--size 1001 must be 1 to 1000",
		"--key a/b":                         "--key a/b must be at most 56 of A-Z a-z 0-9 _ : . -",
		"--key " + strings.Repeat("k", 57):  "--key " + strings.Repeat("k", 57) + " must be at most 56 of A-Z a-z 0-9 _ : . -",
		"--key k --results /nowhere/at/all": "--results: open /nowhere/at/all: no such file or directory",
	} {
		d := newTestConsole()
		d.in = strings.NewReader(five)
		code := Run(append(strings.Fields("wallet batch - --url http://127.0.0.1:1 --api-key s"), strings.Fields(flags)...), d.Console)
		if d.err.String() != "macronode: "+want+"\n" || code != 2 {
			t.Errorf("%s: %d %s", flags, code, &d.err)
		}
	}
}

// Progress is a bar on a terminal, and otherwise a line a second.
func TestProgress(t *testing.T) {
	t.Parallel()
	file := writeTemp(t, "f", strings.Repeat(five, 4))
	for watched, want := range map[bool]string{
		true: "\r[=======                       ] 1 of 4 lines, 0 rejected" + "\r\x1b[K" + "\r[===============               ] 2 of 4 lines, 1 rejected" +
			"\r[======================        ] 3 of 4 lines, 1 rejected" + "\r[==============================] 4 of 4 lines, 1 rejected" + "\r\x1b[K" +
			"macronode: 1 of 4 lines were rejected\n",
		false: "1 of 4 lines, 0 rejected\n3 of 4 lines, 1 rejected\n4 of 4 lines, 1 rejected\nmacronode: 1 of 4 lines were rejected\n",
	} {
		p, d := newPeer(t, one, `200 {"results":[`+bad+`]}`, late, one, one), newTestConsole()
		p.header = http.Header{"Retry-After": {"1"}}
		d.Console.isErrTerminal = watched
		Run([]string{"wallet", "batch", file, "--key", "k", "--size", "1", "--url", p.URL, "--api-key", "s"}, d.Console)
		if got := d.err.String(); got != want {
			t.Errorf("%v: said %q, not %q", watched, got, want)
		}
	}
}

// TestMalformedLineOfPipe: a malformed line of a pipe is reported, and the lines around it are applied, in the same batches each time. With --atomic
// it ends the run.
func TestMalformedLineOfPipe(t *testing.T) {
	t.Parallel()
	const (
		noJSON = "line 2: bad_request: it is no object\n"
		noRef  = "line 4: bad_request: ref: is missing: an issue without one takes effect again when the node has removed its idempotency key\n"
	)
	text := five + "7\n" + six + `{"op":"issue","to":"ann"}` + "\n" + five
	for _, c := range []struct {
		flags   string
		text    string
		answers []string
		code    int
		keys    []string
		want    string
	}{
		{"--size 3", text, []string{both, one}, 1, []string{"k.0", "k.1"}, noJSON + noRef + "5 lines: 3 applied, 2 rejected, 0 unknown, 0 not sent\nmacronode: 2 of 5 lines were rejected\n"},
		{"--size 1", text, []string{one, one, one}, 1, []string{"k.0", "k.2", "k.4"}, noJSON + noRef + "5 lines: 3 applied, 2 rejected, 0 unknown, 0 not sent\nmacronode: 2 of 5 lines were rejected\n"},
		{"", "{\"op\":7}\n", nil, 1, nil, "line 1: bad_request: op: invalid value\n1 lines: 0 applied, 1 rejected, 0 unknown, 0 not sent\nmacronode: 1 of 1 lines were rejected\n"},
		{"", "op,to,ref\nissue,ann,\nissue,ann,r\n", []string{one}, 1, []string{"k.0"}, strings.Replace(noRef, "4", "2", 1) + "2 lines: 1 applied, 1 rejected, 0 unknown, 0 not sent\nmacronode: 1 of 2 lines were rejected\n"},
		{"--size 1", five + "7\n" + six, []string{one, unclear}, 3, []string{"k.0", "k.2"}, noJSON + "3 lines: 1 applied, 1 rejected, 1 unknown, 0 not sent\n" +
			"macronode: lines 3 to 3: outcome unknown (outcome_unknown: Not known yet): run the same command again\n"},
		{"--atomic", text, nil, 1, nil, "0 lines: 0 applied, 0 rejected, 0 unknown, 0 not sent\nmacronode: line 2: it is no object\n"},
	} {
		for range 2 {
			p, d := newPeer(t, c.answers...), newTestConsole()
			p.limitAttempts("--timeout 5s")
			d.in = strings.NewReader(c.text)
			code := Run(append(strings.Fields("wallet batch - --key k --timeout 5s "+c.flags), "--url", p.URL, "--api-key", "s"), d.Console)
			var keys []string
			for _, r := range p.requests() {
				keys = append(keys, strings.Fields(r)[2])
			}
			if output := d.out.String() + withoutProgress(d.err.String()); code != c.code || output != c.want || !slices.Equal(slices.Compact(keys), c.keys) {
				t.Errorf("%s: %d, %q\n%swant %d, %q\n%s", c.flags, code, keys, output, c.code, c.keys, c.want)
			}
		}
	}
}

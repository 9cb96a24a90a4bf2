package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errDiskFull = errors.New("no space left on device")

// fullDisk is an output that cannot be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errDiskFull }

// A command whose write took effect, but whose output cannot be written, exits with 3 and names what took effect.
// A command that only reads, or whose write was rejected, exits with 1.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	const (
		lost   = "macronode: no space left on device\n"
		but    = lost + "macronode: the output is incomplete, but the node has executed "
		newKey = `201 {"key":"mk_secret","id":"0102030405060708","name":"till"}`
	)
	for _, c := range []struct {
		answers []string
		line    string
		code    int
		want    string
	}{
		{[]string{minted}, issue, 3, but + "POST /v1/issue, tx_1, idempotency key drawn: retry with --key drawn, which takes effect once\n"},
		{[]string{minted}, issue + " --json", 3, but + "POST /v1/issue, tx_1, idempotency key drawn: retry with --key drawn, which takes effect once\n"},
		{[]string{has, moved}, "wallet transfer --from ann --to bob --asset EUR/2 --amount 5", 3,
			but + "POST /v1/transfer, tx_1, idempotency key drawn: retry with --key drawn --nonce 3, which takes effect once\n"},
		{[]string{barred}, issue, 1, "macronode: forbidden: May not\n"},
		{[]string{has}, "wallet balance ann EUR/2", 1, lost},
		{[]string{newKey}, "keys create till --scope read", 3,
			"macronode: the key 0102030405060708 was created but could not be printed: revoke it: no space left on device\n" +
				"macronode: the output is incomplete, but the node has executed POST /v1/keys, 0102030405060708\n"},
		{[]string{`200 {"id":"0102030405060708","name":"till"}`}, "keys revoke 0102030405060708", 3, but + "DELETE /v1/keys/0102030405060708, 0102030405060708\n"},
		{[]string{`200 {"recorded":1,"duplicate":0,"late":0}`}, "usage record --source s --id e --dimension wallet_operations --value 1", 3,
			but + "POST /v1/usage-events: retry with --source s --id e, each event counts once\n"},
	} {
		p, d := newPeer(t, c.answers...), newTestConsole()
		d.Console.out = fullDisk{}
		d.wantOutput(t, p, c.line, c.code, c.want)
	}
}

// The counts of a batch are those of the node, also if the results file or standard output cannot be written.
func TestLostResultsOfBatch(t *testing.T) {
	t.Parallel()
	file := writeTemp(t, "f", five+six+five)
	run := func(d *testConsole, flags string, answers ...string) (int, string) {
		p := newPeer(t, answers...)
		code := Run(append(strings.Fields("wallet batch --key k --size 2 "+flags), file, "--url", p.URL, "--api-key", "s"), d.Console)
		return code, d.out.String() + withoutProgress(d.err.String())
	}
	const but = "macronode: the output is incomplete, but the node has executed POST /v1/batch, idempotency key k.0: run the same command again, which applies each line once\n"
	if code, output := run(newTestConsole(), "--atomic --results /dev/full", whole); code != 3 ||
		output != "3 lines: 2 applied, 0 rejected, 0 unknown, 1 not sent\nmacronode: --results: write /dev/full: no space left on device\n"+but {
		t.Errorf("%d\n%s", code, output)
	}
	if code, output := run(newTestConsole(), "--results /dev/full", half); code != 3 || !strings.Contains(output, "3 lines: 1 applied, 1 rejected, 0 unknown, 1 not sent\n") {
		t.Errorf("%d\n%s", code, output)
	}
	d := newTestConsole()
	d.Console.out = fullDisk{}
	if code, output := run(d, "", half); code != 3 ||
		output != "macronode: no space left on device\nmacronode: no space left on device; 3 lines: 1 applied, 1 rejected, 0 unknown, 1 not sent\n"+but {
		t.Errorf("%d\n%s", code, output)
	}
}

// A key whose secret cannot be saved is reported, and leaves no file.
func TestLostKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	p, d := newPeer(t, `201 {"key":"mk_secret","id":"0102030405060708","name":"till"}`, `404 {"code":"not_found","detail":"No S3."}`), newTestConsole()
	d.wantOutput(t, p, "keys create till --scope read --s3 --out "+path, 3,
		"macronode: the key 0102030405060708 was created but could not be saved: revoke it: not_found: No S3\n")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

package cli

import (
	"log/slog"
	"strings"
	"testing"

	"macronode/adapters/nodedir"
)

func TestGreetingShowsKeyOnlyOnTerminal(t *testing.T) {
	t.Parallel()
	dir, key := writeRunFiles(t, 1, "", "")
	r := nodedir.Run{Listen: nodedir.Listen{HTTP: "h:1", Admin: "a:2"}}
	for _, c := range []struct {
		json, show bool
		want       string
	}{
		{false, false, "macronode is ready on http://h:1 (admin http://a:2), data in DIR\nTry:\n" +
			"  macronode wallet issue --to ann --asset EUR/2 --amount 1000 --data DIR\n" +
			"  macronode wallet transfer --from ann --to bob --asset EUR/2 --amount 250 --data DIR\n" +
			"  macronode wallet balance bob EUR/2 --data DIR\n"},
		{false, true, "macronode is ready on http://h:1 (admin http://a:2), data in DIR\nAPI key: KEY\nTry:\n"},
		{true, false, `{"http":"http://h:1","admin":"http://a:2","data":"DIR"}` + "\n"},
		{true, true, `{"http":"http://h:1","admin":"http://a:2","data":"DIR","api_key":"KEY"}` + "\n"},
	} {
		d := newTestConsole()
		d.tree = &tree{JSON: c.json}
		nodeReport{d.Console}.printGreeting(slog.New(slog.DiscardHandler), dir, r, c.show)
		want := strings.NewReplacer("DIR", dir, "KEY", key).Replace(c.want)
		if got := d.out.String(); !strings.HasPrefix(got, want) || !c.show && strings.Contains(got, key) {
			t.Errorf("%+v:\n%swant\n%s", c, got, want)
		}
	}
}

// The three commands of the greeting parse, and name its directory.
func TestGreetingCommandsParse(t *testing.T) {
	t.Parallel()
	lines := strings.Split(greeting{Data: "/a/b"}.text(), "\n")
	for _, line := range lines[len(lines)-3:] {
		got := new(tree)
		d := newTestConsole()
		parser, err := newParser(got, d.Console.out, d.Console.err)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(line)[1:]); err != nil || got.Data != "/a/b" {
			t.Errorf("%s: %v, %s", line, err, got.Data)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "''", "./a-b_c.d:e": "./a-b_c.d:e", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "ä": "'ä'"} {
		if got := quote(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

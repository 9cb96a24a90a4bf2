package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "accept the page as it is generated now")

func TestThePageIsGenerated(t *testing.T) {
	const path = "../../docs/config.md"
	if *rewrite {
		if err := os.WriteFile(path, []byte(page()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != page() {
		t.Fatal("docs/config.md is not what the tree says: go test ./adapters/config -rewrite, and read the difference")
	}
}

// page is the page that documents every key.
func page() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Generated from the tree of keys; a test compares.

A value comes from the last of these that has one: the default, the YAML file of ` + "`--config`" + `, the
environment, a flag. Unknown keys, unknown variables that begin with ` + "`" + prefix + "`" + `, wrong types, keys that stand
twice and values out of range are errors. ` + "`macronode config effective`" + ` prints every value with where it came
from, ` + "`macronode config schema`" + ` the JSON Schema. The column *change* says when a new value takes
effect: at the next restart, or hot, without one.

Amounts stand in quotes in YAML. A key that holds a secret would end in ` + "`_file`" + ` and name the file that has it.

| key | default | takes | means | change |
|---|---|---|---|---|
`)
	for _, k := range keys(new(Config)) {
		value := "`" + k.tag.Get("default") + "`"
		if leader, ok := k.follows(); ok {
			value = "as `" + leader + "`"
		}
		fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s | %s |\n", k.path, k.variable(), value, k.wants(), k.doc(), k.change())
	}
	return b.String()
}

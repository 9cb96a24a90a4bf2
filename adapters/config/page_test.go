package config

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

//go:embed testdata/front.yaml
var front string

var rewrite = flag.Bool("rewrite", false, "accept the page as it is generated now")

func TestPageIsGenerated(t *testing.T) {
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
		t.Fatal("docs/config.md is outdated: go test ./adapters/config -rewrite, and review the difference")
	}
}

// page returns the page that documents every key.
func page() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Generated from the tree of keys; a test compares.

A value comes from the last of these that has one: the default, the YAML file of ` + "`--config`" + `, the
environment, a flag. Unknown keys, unknown variables that begin with ` + "`" + prefix + "`" + `, wrong types, keys that stand
twice and values out of range are errors. Variables that Kubernetes sets for a Service named macronode
(` + "`MACRONODE_SERVICE_HOST`, `MACRONODE_PORT_8080_TCP_ADDR`" + ` and the like) are ignored. ` + "`macronode config effective`" + ` prints every value with where it came
from, ` + "`macronode config schema`" + ` the JSON Schema. The column *change* says when a new value takes
effect: at the next restart, or hot, without one.

A list is one key: a layer that has it has all of it. In YAML it is a list, or a mapping where its entries have
names; in the environment and in flags it is a text of JSON that says the same. What stands in front of a service
is no longer than this:

` + "```yaml\n" + front + "```" + `

Amounts stand in quotes in YAML. A key that holds a secret would end in ` + "`_file`" + ` and name the file that has it.

| key | default | takes | means | change |
|---|---|---|---|---|
`)
	var lists []key
	for _, k := range keys(new(Config)) {
		value := "`" + k.tag.Get("default") + "`"
		if leader, ok := k.follows(); ok {
			value = "as `" + leader + "`"
		}
		fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s | %s |\n", k.path, k.variable(), value, k.wants(), k.doc(), k.change())
		if isList(k.value.Type()) && isSection(k.value.Type().Elem()) {
			lists = append(lists, k)
		}
	}
	for len(lists) > 0 {
		lists = append(lists[1:], entryPage(&b, lists[0])...)
	}
	return b.String()
}

// entryPage documents an entry of a list, and returns the lists in it.
func entryPage(b *strings.Builder, list key) (lists []key) {
	fmt.Fprintf(b, "\n## An entry of `%s`\n\n| key | default | takes | means |\n|---|---|---|---|\n", list.path)
	section := key{value: reflect.New(list.value.Type().Elem()).Elem()}
	for _, k := range section.inside() {
		path, value := k.path[1:], ""
		switch {
		case k.tag.Get("need") != "":
			value = "must be set"
		case k.tag.Get("either") != "":
			value = "one of these"
		case k.tag.Get("default") != "":
			value = "`" + k.tag.Get("default") + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path, value, strings.ReplaceAll(k.wants(), "|", "\\|"), k.doc())
		if isList(k.value.Type()) && isSection(k.value.Type().Elem()) {
			k.path = list.path + "[]." + path
			lists = append(lists, k)
		}
	}
	for _, g := range groups(section.value.Type()) {
		fmt.Fprintf(b, "\nOf `%s` an entry has exactly one.\n", strings.Join(g[1:], "`, `"))
	}
	return lists
}

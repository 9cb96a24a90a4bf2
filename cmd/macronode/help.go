package main

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// manual says of each verb what its one line of help has no room for: sections that
// begin with # and the verb.
//
//go:embed help.txt
var manual string

// explain gives every verb its section of the manual.
func explain(at *kong.Node) {
	for section := range strings.SplitSeq("\n"+manual, "\n# ") {
		verb, text, _ := strings.Cut(section, "\n")
		if node := below(at, strings.Fields(verb)); node != nil && node != at {
			node.Detail = strings.TrimSpace(text)
		}
	}
}

func below(at *kong.Node, path []string) *kong.Node {
	for _, word := range path {
		if at = childOf(at, word); at == nil {
			return nil
		}
	}
	return at
}

package cli

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// manual has a section for each command, which begins with # and the command.
//
//go:embed help.txt
var manual string

// addManual adds to each command its section of the manual.
func addManual(at *kong.Node) {
	for section := range strings.SplitSeq("\n"+manual, "\n# ") {
		verb, text, _ := strings.Cut(section, "\n")
		if node := nodeAt(at, strings.Fields(verb)); node != nil && node != at {
			node.Detail = strings.TrimSpace(text)
		}
	}
}

func nodeAt(at *kong.Node, path []string) *kong.Node {
	for _, word := range path {
		if at = childOf(at, word); at == nil {
			return nil
		}
	}
	return at
}

package graph

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Read reads a graph written by TLC with -dump dot,actionlabels.
func Read(from io.Reader) (*Graph, error) {
	g, names := empty(), map[string]State{}
	type edge struct{ from, to, action string }
	var edges []edge
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	unquote := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
	for lines.Scan() {
		id, rest, ok := strings.Cut(lines.Text(), ` [label="`)
		if !ok {
			continue
		}
		if a, b, ok := strings.Cut(id, " -> "); ok {
			action, _, _ := strings.Cut(rest, `"`)
			edges = append(edges, edge{a, b, action})
			continue
		}
		label := rest[:strings.LastIndex(rest, `"]`)+1]
		if at := strings.LastIndex(rest, `",style`); at >= 0 {
			label = rest[:at+1]
		}
		text, err := canonical(unquote.Replace(strings.TrimSuffix(label, `"`)))
		if err != nil {
			return nil, fmt.Errorf("state %s: %w", id, err)
		}
		names[id], _ = g.state(text)
	}
	for _, e := range edges {
		g.Edges[Edge{names[e.from], e.action, names[e.to]}] = struct{}{}
	}
	return g, lines.Err()
}

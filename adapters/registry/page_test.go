package registry_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/registry"
)

var rewrite = flag.Bool("rewrite", false, "accept the page as it is generated now")

func TestThePageIsGenerated(t *testing.T) {
	path := filepath.Join(root, "docs/registry.md")
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
		t.Fatal("docs/registry.md is not what the registry says: go test ./adapters/registry -rewrite, and read the difference")
	}
}

const intro = `# Registry

Generated from adapters/registry; a test compares. Another reads the source and finds no buffered channel, lock, pool,
timer or deadline of adapters and cmd/macronode that is not here; a third asks the running binary, which shows
what is here under ` + "`/debug/queues` and `/metrics`" + `, and nothing else. What memory all of it takes at most, ` + "`macronode explain memory`" + ` says.
`

// page is the registry as people read it.
func page() string {
	var p pen
	p.WriteString(intro)
	p.table("Queues", "What waits, from the door inwards, and permits, which are given back. Depth, limit and what was dropped are in `/debug/queues`, the depth in `queue_depth`.",
		"queue | holds | limit | when it is full | counted by | place")
	for _, q := range registry.Queues {
		p.row(code(q.Name), q.What, limit(q.Limit)+" "+q.Unit, string(q.Policy), code(q.Tells), code(strings.Join(q.Where, ", ")))
	}
	p.table("Wires", "Buffered channels that nothing waits in: each word has its place reserved.", "place | carries | size")
	for _, w := range registry.Wires {
		p.row(code(w.Where), w.What, w.Size)
	}
	p.table("Locks", "Nothing is waited for under a lock, but for what the last column says. One is taken while another is held only where it stands inside that.",
		"lock | guards | taken inside | place | may take long")
	for _, l := range registry.Locks {
		p.row(l.Name, l.Guards, strings.Join(l.Inside, ", "), code(l.Where), l.Blocks)
	}
	p.table("Pools", "Memory that is kept for the next who wants it.", "place | keeps | limit")
	for _, l := range registry.Pools {
		p.row(code(l.Where), l.What, l.Limit)
	}
	p.table("Timers", "Timers, tickers and deadlines of the shell. What the node is to do in time goes by the loop's one timer.", "place | then | after")
	for _, i := range registry.Timers {
		p.row(code(i.Where), i.What, limit(i.After))
	}
	p.table("Limits", "Each has code that holds it and a test that sees it held.", "limit | bounds | held by | seen by")
	for _, l := range registry.Limits {
		p.row(code(l.Key), l.What, code(strings.Join(l.By, ", ")), code(l.Test))
	}
	p.table("Metrics", "Each series is there from the start of what it is of: what never happened says 0. No label comes from input; what is of an upstream is there from when it is configured until it is not.",
		"metric | type | labels | means")
	for i := range registry.Metrics {
		m := &registry.Metrics[i]
		p.row(code(m.Name), string(m.Type), labels(m), m.Help)
	}
	p.table("Not there", "Metrics that other planes will have, or that would count what this node does not have.", "metrics | why")
	for _, a := range registry.Absences {
		p.row(code(a.Names), a.Why)
	}
	return p.String()
}

type pen struct{ strings.Builder }

func (p *pen) table(title, text, head string) {
	p.WriteString("\n## " + title + "\n\n" + text + "\n\n| " + head + " |\n|" + strings.Repeat("---|", strings.Count(head, "|")+1) + "\n")
}

func (p *pen) row(cells ...string) {
	p.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func code(names string) string {
	if names == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(names, ", ", "`, `") + "`"
}

// limit is a key of the configuration in the font of code, or any other text.
func limit(text string) string {
	first, rest, _ := strings.Cut(text, ",")
	if rest != "" {
		rest = "," + rest
	}
	if strings.Contains(first, "_") || strings.Count(first, ".") == 1 && !strings.Contains(first, " ") {
		return code(first) + rest
	}
	return text
}

func labels(m *registry.Metric) string {
	var all []string
	for _, l := range m.Labels {
		if l.Values == nil {
			all = append(all, code(l.Name)+": the names in `"+l.Name+"s`")
			continue
		}
		if len(l.Values) > 12 {
			all = append(all, fmt.Sprintf("%s: %d values", code(l.Name), len(l.Values)))
			continue
		}
		all = append(all, code(l.Name)+": "+strings.Join(l.Values, " "))
	}
	return strings.Join(all, "; ")
}

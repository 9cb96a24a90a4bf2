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

This page is generated from adapters/registry. Tests check that it lists every buffered channel, lock, pool, timer and
deadline of adapters and cmd/macronode, and that the running binary shows exactly these queues and metrics under
` + "`/debug/queues` and `/metrics`" + `. ` + "`macronode explain memory`" + ` shows the maximum of memory.
`

// page is the registry as people read it.
func page() string {
	var p pen
	p.WriteString(intro)
	p.table("Queues", "Queues in the order in which a request passes them, and permits. `/debug/queues` shows depth, limit and drops; `queue_depth` has the depth.",
		"queue | holds | limit | when it is full | counted by | place")
	for _, q := range registry.Queues {
		p.row(code(q.Name), q.What, limit(q.Limit)+" "+q.Unit, string(q.Policy), code(q.Tells), code(strings.Join(q.Where, ", ")))
	}
	p.table("Wires", "Buffered channels for signals; each signal has a reserved place.", "place | carries | size")
	for _, w := range registry.Wires {
		p.row(code(w.Where), w.What, w.Size)
	}
	p.table("Locks", "While a lock is held, nothing blocks except what the last column states. The third column lists the locks that may be held when a lock is taken.",
		"lock | guards | taken inside | place | may take long")
	for _, l := range registry.Locks {
		p.row(l.Name, l.Guards, strings.Join(l.Inside, ", "), code(l.Where), l.Blocks)
	}
	p.table("Pools", "Memory kept for reuse.", "place | keeps | limit")
	for _, l := range registry.Pools {
		p.row(code(l.Where), l.What, l.Limit)
	}
	p.table("Timers", "Timers, tickers and deadlines of the adapters. The core has one timer, in the loop.", "place | then | after")
	for _, i := range registry.Timers {
		p.row(code(i.Where), i.What, limit(i.After))
	}
	p.table("Limits", "Each limit has the code that enforces it and a test.", "limit | bounds | held by | seen by")
	for _, l := range registry.Limits {
		p.row(code(l.Key), l.What, code(strings.Join(l.By, ", ")), code(l.Test))
	}
	p.table("Metrics", "Each series exists from the start, with 0 for events that have not happened. No label value comes from input. Series of an upstream exist while it is configured.",
		"metric | type | labels | means")
	for i := range registry.Metrics {
		m := &registry.Metrics[i]
		p.row(code(m.Name), string(m.Type), labels(m), m.Help)
	}
	p.table("Not there", "Metrics of planes to come, and metrics of features that this node does not have.", "metrics | why")
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

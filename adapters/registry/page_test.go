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

var rewrite = flag.Bool("rewrite", false, "write the generated page to docs/registry.md")

func TestPageIsGenerated(t *testing.T) {
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
		t.Fatal("docs/registry.md differs from the registry: run go test ./adapters/registry -rewrite and review the diff")
	}
}

const intro = `# Registry

This page is generated from adapters/registry. Tests check that it lists every buffered channel, lock, pool, timer and
deadline of adapters and cmd/macronode. Tests also check that the running binary reports exactly these queues and metrics under
` + "`/debug/queues` and `/metrics`" + `. ` + "`macronode explain memory`" + ` reports the maximum memory use.
`

// page returns the registry as a Markdown page.
func page() string {
	var p pen
	p.WriteString(intro)
	p.table("Queues", "Queues and permits, in the order in which a request passes them. `/debug/queues` reports depth, limit and drops; `queue_depth` reports the depth.",
		"queue | items | limit | policy when full | counted by | place")
	for _, q := range registry.Queues {
		p.row(code(q.Name), q.What, limit(q.Limit)+" "+q.Unit, string(q.Policy), code(q.Tells), code(strings.Join(q.Where, ", ")))
	}
	p.table("Wires", "Buffered channels in which each item has a reserved place.", "place | carries | size")
	for _, w := range registry.Wires {
		p.row(code(w.Where), w.What, w.Size)
	}
	p.table("Locks", "While a lock is held, nothing blocks except what the last column states. The third column lists the locks that may be held when a lock is taken.",
		"lock | guards | taken inside | place | blocks on")
	for _, l := range registry.Locks {
		p.row(l.Name, l.Guards, strings.Join(l.Inside, ", "), code(l.Where), l.Blocks)
	}
	p.table("Pools", "Memory kept for reuse until the garbage collector frees it.", "place | contents | size of an item")
	for _, l := range registry.Pools {
		p.row(code(l.Where), l.What, l.Limit)
	}
	p.table("Timers", "Timers, tickers and deadlines of the adapters. The core has one timer, in the loop.", "place | when it expires | after")
	for _, i := range registry.Timers {
		p.row(code(i.Where), i.What, limit(i.After))
	}
	p.table("Limits", "Each limit has the code that enforces it and a test.", "limit | what is limited, and what happens beyond it | enforced by | tested by")
	for _, l := range registry.Limits {
		p.row(code(l.Key), l.What, code(strings.Join(l.By, ", ")), code(l.Test))
	}
	p.table("Metrics", "Each series exists from the start; a counter is 0 until its first event. No label value comes from input. The series of an upstream or a quota exist while it is configured.",
		"metric | type | labels | meaning")
	for i := range registry.Metrics {
		m := &registry.Metrics[i]
		p.row(code(m.Name), string(m.Type), labels(m), m.Help)
	}
	p.table("Metrics not provided", "Metrics of planes that do not exist yet, and of features that this node does not have.", "metrics | reason")
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

// limit formats a leading configuration key as code and returns any other text unchanged.
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

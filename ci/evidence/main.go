// Command evidence writes docs/evidence.md: page.md, with the measurements of the last gate in
// place of {{name}}. A check prints its measurement as a line
//
//	evidence: name = value
//
// and ci/run stores the output of each step in bin/log.
package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed page.md
var page string

// stepOf returns the step of ci/run whose log has the facts of a kind.
func stepOf(kind string) string {
	switch kind {
	case "sim", "trace":
		return "simulate"
	case "history":
		return "certify"
	}
	return kind
}

var (
	hole = regexp.MustCompile(`\{\{([a-z0-9_.]+)\}\}`)
	fact = regexp.MustCompile(`evidence: ([a-z0-9_.]+) = (.+?)\s*$`)
)

func main() {
	if err := run("bin/log", "docs/evidence.md"); err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

func run(logs, to string) error {
	names, err := filepath.Glob(filepath.Join(logs, "*.txt"))
	if err != nil {
		return err
	}
	facts := map[string]string{}
	for _, name := range names {
		if err := read(name, facts); err != nil {
			return err
		}
	}
	table, err := os.ReadFile(filepath.Join(logs, "mutants.md"))
	if err == nil {
		facts["mutants.table"] = strings.TrimSpace(string(table))
	}
	return os.WriteFile(to, []byte(fill(page, facts)), 0o600)
}

// read reads the facts of one log; later ones override earlier ones.
func read(name string, facts map[string]string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read only
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := fact.FindStringSubmatch(lines.Text()); m != nil {
			facts[m[1]] = m[2]
		}
	}
	return lines.Err()
}

// fill fills in the facts. For a missing one, it names the step that measures it.
func fill(page string, facts map[string]string) string {
	return hole.ReplaceAllStringFunc(page, func(h string) string {
		if v, ok := facts[hole.FindStringSubmatch(h)[1]]; ok {
			return v
		}
		kind, _, _ := strings.Cut(hole.FindStringSubmatch(h)[1], ".")
		return "not measured: the last gate had no `ci/run " + stepOf(kind) + "`"
	})
}

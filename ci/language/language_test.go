package language_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/ci/language"
)

// TestDocumentation checks the pages that users read.
func TestDocumentation(t *testing.T) {
	pages := []string{"README.md", "docs/glossary.md", "docs/config.md", "docs/cli.md", "docs/registry.md"}
	for _, dir := range []string{"docs/how-to", "docs/tutorials"} {
		more, err := filepath.Glob(filepath.Join("../..", dir, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range more {
			pages = append(pages, strings.TrimPrefix(page, "../../"))
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range language.Check(string(text)) {
			t.Errorf("%s: %s", page, finding)
		}
	}
}

// TestCheckFinds shows that the check reports what it should, and nothing else.
func TestCheckFinds(t *testing.T) {
	for text, want := range map[string]int{
		"If the queue is full, the request is rejected with 429.": 0,
		"Nobody is refused.": 1,
		"A node that ails of a full disk; who asks is told.":                      3,
		"| who | b |\n|---|---|\n| c | whoever |":                                 2,
		"Read this:\n```\nnobody\n```\nand `who` [x](who.md).":                    0,
		strings.Repeat("word ", language.MaxWords) + ".":                          0,
		strings.Repeat("word ", language.MaxWords+1) + ".":                        1,
		strings.Repeat("a ", 20) + "\n\n" + strings.Repeat("a ", 20):              0,
		"* " + strings.Repeat("a ", 20) + "\n* " + strings.Repeat("a ", 20) + ".": 0,
	} {
		if found := language.Check(text); len(found) != want {
			t.Errorf("%q: %q, want %d findings", text, found, want)
		}
	}
}

// TestAPIDocument checks the summaries and descriptions of the API document.
func TestAPIDocument(t *testing.T) {
	raw, err := os.ReadFile("../../adapters/httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			for key, child := range node {
				if text, ok := child.(string); ok && (key == "summary" || key == "description") {
					checked++
					for _, finding := range language.Check(text) {
						t.Errorf("openapi.json: %s", finding)
					}
				}
				walk(child)
			}
		}
	}
	walk(document)
	if checked < 100 {
		t.Errorf("only %d texts were found", checked)
	}
}

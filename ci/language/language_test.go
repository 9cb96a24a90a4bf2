package language_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/ci/language"
)

// TestDocumentation checks all pages of the project. docs/evidence.md is left out: it is page.md of
// ci/evidence, with the numbers of a run of the gate.
func TestDocumentation(t *testing.T) {
	pages := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "../../")
		if err != nil || name == "docs/evidence.md" {
			return err
		}
		if d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), ".git")) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		pages++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, finding := range language.Check(string(text)) {
			t.Errorf("%s: %s", name, finding)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 80 {
		t.Errorf("only %d pages were found", pages)
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

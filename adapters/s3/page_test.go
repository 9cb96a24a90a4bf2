package s3_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/s3"
)

var rewrite = flag.Bool("rewrite", false, "write the generated page to docs/s3.md")

const intro = "# S3\n\nThis page is generated from `adapters/s3`. A test of that package shows each line.\n"

func page() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, c := range s3.Chapters {
		b.WriteString("\n## " + c.Title + "\n\n" + c.Text + "\n\n| name | behaviour | test |\n|---|---|---|\n")
		for _, f := range c.Features {
			b.WriteString("| " + f.Name + " | " + f.What + " | `" + f.Test + "` |\n")
		}
	}
	b.WriteString("\n## Compared with versitygw\n\n" + compared + "\n\n| request | part of the answer | here | versitygw | reason |\n|---|---|---|---|---|\n")
	for _, d := range s3.Differences {
		b.WriteString("| " + d.Request + " | " + d.Part + " | " + d.Here + " | " + d.There + " | " + d.Reason + " |\n")
	}
	return b.String()
}

const compared = "`ci/run s3compare` sends the requests of `chaos/s3compare` to the node and to versitygw 1.8.0. The answers are equal except for these parts. " +
	"The part `answer` is the status and the error code; `*` stands for any text, `-` for nothing."

func TestPageIsGenerated(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "s3.md")
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
		t.Fatal("docs/s3.md differs from adapters/s3: run go test ./adapters/s3 -rewrite and review the diff")
	}
}

// TestFeaturesAreTested: each line names a test of this package, and each operation has a line.
func TestFeaturesAreTested(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			declared[m[1]] = true
		}
	}
	for _, c := range s3.Chapters {
		for _, f := range c.Features {
			if !declared[f.Test] {
				t.Errorf("%s: there is no test %s", f.Name, f.Test)
			}
		}
	}
	for _, op := range s3.Ops()[1:] {
		if !slices.ContainsFunc(s3.Chapters[0].Features, func(f s3.Feature) bool { return f.Name == op.String() }) {
			t.Errorf("%v has no line", op)
		}
	}
}

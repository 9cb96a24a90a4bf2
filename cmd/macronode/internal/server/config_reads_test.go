package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// configRead matches code that reads a key of a configuration.
var configRead = regexp.MustCompile(`\b(?:config|cfg)\.([A-Z]\w*)\.\w+|\.config\.([A-Z]\w*)|\bcfg\.([A-Z]\w*)`)

// TestServerReadsOnlyItsSettings: the server reads no key of the configuration, but its translation in the package settings. So the tests of
// that package see every key.
func TestServerReadsOnlyItsSettings(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, read := range configRead.FindAllString(string(text), -1) {
			if !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(read, ".config.Effective") { // the text for operators
				t.Errorf("%s reads %s: add it to settings.Start or settings.Reload", file, read)
			}
		}
	}
}

package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"macronode/adapters/accesslog"
)

// TestHowManyLines: both pages say of how many requests a second each has its line.
func TestHowManyLines(t *testing.T) {
	for _, page := range []string{"../../docs/config.md", "../../docs/operating.md"} {
		text, err := os.ReadFile(page)
		if want := fmt.Sprintf("of more than %d a second", accesslog.Each); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", page, want, err)
		}
	}
}

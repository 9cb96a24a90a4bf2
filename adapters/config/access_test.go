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
	for page, says := range map[string]string{"../../docs/config.md": "Above %d lines a second", "../../docs/how-to/find-the-cause.md": "Above %d lines a second"} {
		text, err := os.ReadFile(page)
		if want := fmt.Sprintf(says, accesslog.Each); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", page, want, err)
		}
	}
}

package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"macronode/adapters/accesslog"
)

// TestLogSampleRatesAreDocumented: both line state how many requests per second are logged.
func TestLogSampleRatesAreDocumented(t *testing.T) {
	for page, line := range map[string]string{"../../docs/config.md": "Above %d lines a second", "../../docs/how-to/find-the-cause.md": "Above %d lines a second"} {
		text, err := os.ReadFile(page)
		if want := fmt.Sprintf(line, accesslog.Each); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", page, want, err)
		}
	}
}

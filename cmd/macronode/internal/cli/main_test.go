package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary run as macronode where a test starts that program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"macronode": func() { os.Exit(Run(os.Args[1:], Process())) }})
}

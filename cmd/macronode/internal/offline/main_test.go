package offline_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"macronode/cmd/macronode/internal/cli"
)

// TestMain makes the test binary run as macronode where a test starts that program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"macronode": func() { os.Exit(cli.Run(os.Args[1:], cli.Process())) }})
}

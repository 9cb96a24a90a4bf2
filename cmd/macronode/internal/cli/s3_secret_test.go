package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestMissingS3SecretIsLogged: a secret that is created for a journal that exists is logged, since clients have another one. That of a
// new node is not.
func TestMissingS3SecretIsLogged(t *testing.T) {
	t.Parallel()
	const warning = "s3.secret was missing and is created"
	dir := t.TempDir()
	for _, c := range []struct{ lost, warned bool }{{false, false}, {false, false}, {true, true}, {false, false}} {
		if c.lost {
			testkit.Must(t, os.Remove(filepath.Join(dir, "s3.secret")))
		}
		p := startInDir(t, dir, "--set", "listen.s3=127.0.0.1:0")
		p.end()
		if got := strings.Contains(p.log.String(), warning); got != c.warned {
			t.Errorf("lost %v: warned %v\n%s", c.lost, got, p.log)
		}
	}
}

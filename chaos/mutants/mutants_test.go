package mutants_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"macronode/chaos/mutants"
)

var (
	try  = flag.Bool("mutants", false, "break the house: compiles the checks once a mutant")
	only = flag.String("only", "", "the mutants whose name has this in it")
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAnchors: every mutant still mutates something.
func TestAnchors(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants.All() {
		if _, err := m.Lay(root(t), t.TempDir()); err != nil {
			t.Error(err)
		}
		if names[m.Name] || len(m.Kills) == 0 || m.Holds == "" {
			t.Errorf("%s: twice, or killed by nobody, or of no consequence", m.Name)
		}
		names[m.Name] = true
	}
}

// TestMutantsDie: each of its checks sees each mutant.
func TestMutantsDie(t *testing.T) {
	if !*try {
		t.Skip("compiles every check once a mutant: go test ./chaos/mutants -mutants")
	}
	for _, m := range mutants.All() {
		if !strings.Contains(m.Name, *only) {
			continue
		}
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			overlay, err := m.Lay(root(t), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, check := range m.Kills {
				switch v := mutants.Try(root(t), overlay, check); {
				case !v.Built:
					t.Errorf("does not compile: %s", v.Why)
				case !v.Dead:
					t.Errorf("SURVIVED %s", check)
				default:
					t.Logf("killed by %s: %s", check, v.Why)
				}
			}
		})
	}
}

package mutants_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"macronode/chaos/mutants"
)

var again = flag.Bool("again", false, "with -mutants: make the logs of the simulator's corpus again, that their mutants leave")

const lives = "chaos/sim/testdata/corpus"

// TestCorpusFailsWithItsMutant: a log of the simulator's corpus with a mutant's name fails when the mutant is on;
// otherwise it would test nothing special.
func TestCorpusFailsWithItsMutant(t *testing.T) {
	if !*try {
		t.Skip("plays the corpus once a log, with its mutant on: go test ./chaos/mutants -mutants -run Corpus")
	}
	all := mutants.All()
	s := &smithy{t: t, root: root(t), made: map[string]func() (string, error){}}
	schema, err := mutants.Lay(s.root, t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(s.root, lives, "*.log"))
	if err != nil || len(names) < 30 {
		t.Fatalf("%d logs, %v", len(names), err)
	}
	for _, name := range names {
		is := strings.TrimSuffix(filepath.Base(name), ".log")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(is, strings.ReplaceAll(*only, " ", "-")) || !strings.HasPrefix(string(text), "# mutant: ") {
			continue // of a seed that failed before a bug was fixed
		}
		t.Run(is, func(t *testing.T) {
			overlay, number := schema.Overlay, 0
			for i, m := range all {
				if slug(m.Name) == is {
					number = i + 1
				}
			}
			if number == 0 {
				t.Fatal("no mutant has this name")
			}
			if !schema.Has[number] {
				if overlay, err = all[number-1].Lay(s.root, t.TempDir()); err != nil {
					t.Fatal(err)
				}
				number = 0
			}
			built := s.built(t, overlay, "./chaos/sim")
			if *again {
				renew(t, built, number, name)
			}
			if out, err := play(t, built, number, "TestCorpus$"); err == nil || !strings.Contains(out, is+".log fails") {
				t.Errorf("does not fail with its mutant on: make it again with -again\n%s", out)
			}
		})
	}
}

// slug returns a mutant's name as a file name.
func slug(name string) string {
	plain := strings.ReplaceAll(strings.ToLower(name), "'", "")
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(plain, "-"), "-")
}

// play runs tests of the simulator with a mutant on.
func play(t *testing.T, built string, number int, tests string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(built, "-test.timeout=180s", "-test.failfast", "-test.run="+tests)
	if number > 0 {
		cmd.Args = append(cmd.Args, fmt.Sprintf("-mutant=%d", number))
	}
	cmd.Dir = filepath.Join(root(t), "chaos/sim")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// renew makes a log again: of the first run that fails with the mutant on, shrunk.
func renew(t *testing.T, built string, number int, name string) {
	t.Helper()
	out, _ := play(t, built, number, "TestSeeds$")
	left := regexp.MustCompile(`-replay (\S+)`).FindStringSubmatch(out)
	if left == nil {
		t.Fatalf("no run fails with its mutant on\n%s", out)
	}
	text, err := os.ReadFile(left[1])
	if err != nil {
		t.Fatal(err)
	}
	_, log, _ := strings.Cut(string(text), "\n")
	head := "# mutant: " + strings.TrimSuffix(filepath.Base(name), ".log") + "\n"
	if err := os.WriteFile(name, []byte(head+log), 0o600); err != nil {
		t.Fatal(err)
	}
}

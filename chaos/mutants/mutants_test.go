package mutants_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/chaos/mutants"
)

var (
	try   = flag.Bool("mutants", false, "break the house: compiles every check once, and runs it once a mutant")
	only  = flag.String("only", "", "the mutants whose name has this in it")
	files = flag.String("files", "", "only the mutants that edit one of these files, separated by commas")
	every = flag.Bool("every", false, "try each check with no mutant on, not one of each package: all of them run in their own steps of the gate, on the house as it is")
	table = flag.String("table", "", "a file for the table of who killed whom")
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAnchors: every mutant still mutates something, and two checks are held against it,
// or it is said why not.
func TestAnchors(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants.All() {
		if _, err := m.Lay(root(t), t.TempDir()); err != nil {
			t.Error(err)
		}
		if names[m.Name] || len(m.Kills) == 0 || m.Holds == "" {
			t.Errorf("%s: twice, or killed by nobody, or of no consequence", m.Name)
		}
		if (len(m.Kills) > 1) == (m.Alone != "") {
			t.Errorf("%s: checks %q, alone because %q", m.Name, m.Kills, m.Alone)
		}
		names[m.Name] = true
	}
}

// A smithy makes each check once.
type smithy struct {
	t    *testing.T
	root string
	mu   sync.Mutex
	made map[string]func() (string, error) // by overlay and package
}

// built is the file of a package's tests over an overlay, in which nothing is broken yet
// unless it is for one mutant alone.
func (s *smithy) built(t *testing.T, overlay, pkg string) string {
	t.Helper()
	s.mu.Lock()
	make, ok := s.made[overlay+pkg]
	if !ok {
		to := filepath.Join(s.t.TempDir(), "check")
		make = sync.OnceValues(func() (string, error) { return to, mutants.Build(s.root, overlay, pkg, to) })
		s.made[overlay+pkg] = make
	}
	s.mu.Unlock()
	file, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A row is what became of one mutant.
type row struct {
	mutants.Mutant
	verdicts []mutants.Verdict
}

// TestMutantsDie: each of its checks sees each mutant, and complains of nothing where
// none is on.
func TestMutantsDie(t *testing.T) {
	if !*try {
		t.Skip("compiles and runs every check, a quarter of an hour of CPU: go test ./chaos/mutants -mutants")
	}
	all := mutants.All()
	s := &smithy{t: t, root: root(t), made: map[string]func() (string, error){}}
	schema, err := mutants.Lay(s.root, t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]row, len(all))
	t.Run("all", func(t *testing.T) {
		calm := map[string]bool{}
		for i, m := range all {
			if !strings.Contains(m.Name, *only) || !editsOneOf(m, *files) {
				continue
			}
			rows[i].Mutant, rows[i].verdicts = m, make([]mutants.Verdict, len(m.Kills))
			for n, check := range m.Kills {
				c := mutants.Split(check)
				of := c.Package
				if *every {
					of = check
				}
				if schema.Has[i+1] && !calm[of] {
					calm[of] = true
					t.Run("none/"+check, func(t *testing.T) {
						t.Parallel()
						if v := mutants.Calm(s.root, s.built(t, schema.Overlay, c.Package), c); v.Dead {
							t.Errorf("complains of the house as it is: %s", v.Why)
						}
					})
				}
				t.Run(strings.ReplaceAll(m.Name, " ", "_")+"/"+check, func(t *testing.T) {
					t.Parallel()
					overlay, number := schema.Overlay, i+1
					if !schema.Has[number] {
						alone, err := m.Lay(s.root, t.TempDir())
						if err != nil {
							t.Fatal(err)
						}
						overlay, number = alone, 0
					}
					v := mutants.Try(s.root, s.built(t, overlay, c.Package), c, number)
					rows[i].verdicts[n] = v
					switch {
					case v.Blind:
						t.Error("has nothing of what is broken")
					case !v.Dead:
						t.Errorf("SURVIVED, %s broken", m.Holds)
					default:
						t.Logf("killed in %v of CPU time: %s", v.CPU.Round(time.Millisecond), v.Why)
					}
				})
			}
		}
	})
	facts(t, rows)
	if *table != "" {
		if err := os.WriteFile(*table, []byte(tabled(rows)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// editsOneOf reports whether m edits one of the files of a list with commas; an empty list has all files.
func editsOneOf(m mutants.Mutant, list string) bool {
	return list == "" || slices.ContainsFunc(m.Edits, func(e mutants.Edit) bool {
		return slices.Contains(strings.Split(list, ","), e.File)
	})
}

// tabled is the table of the evidence.
func tabled(rows []row) string {
	var b strings.Builder
	b.WriteString("| mutant | what it breaks | killed by | CPU time at most |\n|---|---|---|---|\n")
	for _, r := range rows {
		if r.Name == "" {
			continue
		}
		var by, cost []string
		for i, v := range r.verdicts {
			if v.Dead && !v.Blind {
				by = append(by, "`"+r.Kills[i]+"`")
				cost = append(cost, atMost(v.CPU))
			}
		}
		if r.Alone != "" {
			by = append(by, "alone: "+r.Alone)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Name, r.Holds, strings.ReplaceAll(strings.Join(by, ", "), "|", `\|`), strings.Join(cost, ", "))
	}
	return b.String()
}

// atMost is the power of ten of milliseconds that is not less than d: no more is the same in two runs.
func atMost(d time.Duration) string {
	most := 10 * time.Millisecond
	for most < d {
		most *= 10
	}
	return most.String()
}

// facts are what the evidence says of all of them.
func facts(t *testing.T, rows []row) {
	t.Helper()
	var times []time.Duration
	killed, twice, total := 0, 0, 0
	for _, r := range rows {
		dead := 0
		for _, v := range r.verdicts {
			if v.Dead && !v.Blind {
				dead++
				times = append(times, v.CPU)
			}
		}
		if r.Name != "" {
			total++
		}
		if dead > 0 {
			killed++
		}
		if dead > 1 {
			twice++
		}
	}
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	t.Logf("evidence: mutants.head = %d bugs put into the house one at a time, %d seen", total, killed)
	t.Logf("evidence: mutants.twice = %d of %d; of the others the table says why", twice, total)
	t.Logf("evidence: mutants.median = %v, %v at most", times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

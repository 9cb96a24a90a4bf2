package mutants_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"macronode/chaos/mutants"
)

var (
	try   = flag.Bool("mutants", false, "run the mutants: compiles every check once, and runs it once per mutant")
	only  = flag.String("only", "", "only mutants whose name contains this")
	files = flag.String("files", "", "only the mutants that edit one of these files, separated by commas")
	most  = flag.Int("most", 0, "so many mutants at most, drawn by -base; 0: all")
	base  = flag.Uint64("base", 0, "draws the mutants of -most")
	every = flag.Bool("every", false, "run each check without a mutant, not only one of each package: the gate runs all of them in other steps")
	table = flag.String("table", "", "a file for the table of mutants and the checks that detect them")
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAnchorsAreFresh: every mutant changes its file, and has two checks or a reason for one.
func TestAnchorsAreFresh(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants.All() {
		if _, err := m.Lay(root(t), t.TempDir()); err != nil {
			t.Error(err)
		}
		if names[m.Name] || len(m.Kills) == 0 || m.Holds == "" {
			t.Errorf("%s: duplicate name, no check, or no rule", m.Name)
		}
		for _, check := range m.Kills {
			if c := mutants.Split(check); !hasTest(t, c) {
				t.Errorf("%s: %s has no test %s", m.Name, c.Package, c.Tests)
			}
		}
		if (len(m.Kills) > 1) == (m.Alone != "") {
			t.Errorf("%s: checks %q, alone because %q", m.Name, m.Kills, m.Alone)
		}
		names[m.Name] = true
	}
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// hasTest reports whether the package of a check has a test that it selects.
func hasTest(t *testing.T, c mutants.Check) bool {
	t.Helper()
	selected, _, _ := strings.Cut(c.Tests, "/")
	wanted, err := regexp.Compile(selected)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root(t), c.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testName.FindAllSubmatch(raw, -1) {
			if wanted.Match(found[1]) {
				return true
			}
		}
	}
	return false
}

// TestFaultsCompile: the code of every mutant compiles, also of those whose checks the gate of a day does not run. A mutant
// that does not compile is not detected: it hides that its check never ran.
func TestFaultsCompile(t *testing.T) {
	if !*try || !*every {
		t.Skip("compiles every package with its mutants, a minute of CPU: go test ./chaos/mutants -mutants -every")
	}
	all := mutants.All()
	schema, err := mutants.Lay(root(t), t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	if err := mutants.Compile(root(t), schema.Overlay); err != nil {
		t.Error(err)
	}
	for i, m := range all {
		if schema.Has[i+1] {
			continue
		}
		overlay, err := m.Lay(root(t), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Edits {
			if err := mutants.Compile(root(t), overlay, "./"+filepath.Dir(e.File)); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

// A smithy compiles each check once.
type smithy struct {
	t    *testing.T
	root string
	mu   sync.Mutex
	made map[string]func() (string, error) // by overlay and package
}

// built returns the compiled tests of a package with an overlay. No mutant is on, unless the
// overlay is for one mutant.
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

// A row is the result of one mutant.
type row struct {
	mutants.Mutant
	verdicts []mutants.Verdict
}

// TestMutantsAreDetected: each check of a mutant fails with it, and passes without.
func TestMutantsAreDetected(t *testing.T) {
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
		for _, i := range selected(t, all) {
			m := all[i]
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
							t.Errorf("fails without a mutant: %s", v.Why)
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
						t.Error("does not contain the mutated code")
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

// selected returns the places of the mutants to run, in order.
func selected(t *testing.T, all []mutants.Mutant) (places []int) {
	for i, m := range all {
		if strings.Contains(m.Name, *only) && editsOneOf(m, *files) {
			places = append(places, i)
		}
	}
	if *most > 0 && len(places) > *most {
		t.Logf("%d of %d mutants, drawn by -base %d", *most, len(places), *base)
		draw := rand.New(rand.NewPCG(*base, 0)) //nolint:gosec // the same again for the same base
		draw.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		places = places[:*most]
		slices.Sort(places)
	}
	return places
}

// editsOneOf reports whether m edits one of the files of a comma-separated list; an empty list
// means all files.
func editsOneOf(m mutants.Mutant, list string) bool {
	return list == "" || slices.ContainsFunc(m.Edits, func(e mutants.Edit) bool {
		return slices.Contains(strings.Split(list, ","), e.File)
	})
}

// tabled returns the table of the evidence page.
func tabled(rows []row) string {
	var b strings.Builder
	b.WriteString("| mutant | rule that it breaks | detected by | maximum CPU time |\n|---|---|---|---|\n")
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

// atMost rounds d up to a power of ten of milliseconds, which is the same in two runs.
func atMost(d time.Duration) string {
	most := 10 * time.Millisecond
	for most < d {
		most *= 10
	}
	return most.String()
}

// facts logs the totals for the evidence page.
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
	t.Logf("evidence: mutants.head = %d bugs are inserted one at a time; %d of them are detected.", total, killed)
	t.Logf("evidence: mutants.twice = %d of %d; the table has the reason for the others", twice, total)
	t.Logf("evidence: mutants.median = %v; the maximum is %v", times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
}

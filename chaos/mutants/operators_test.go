package mutants_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
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
	operatorsOf = flag.String("operators", "", "the packages of core that mutation operators break everywhere, by commas; all of them: core")
	near        = flag.Bool("near", false, "run only the package's own tests and the transcripts, not the simulator")
	rewrite     = flag.Bool("rewrite", false, "write undetected mutants to "+unseenPath+", keeping their reasons")
)

const unseenPath = "testdata/unseen.txt"

// unseen returns the undetected mutants, each with the reason after the #. Those without a reason
// have not been reviewed.
func unseen(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(unseenPath)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, why, _ := strings.Cut(lines.Text(), " # ")
		all[name] = why
	}
	return all
}

// broken returns the packages of -operators.
func broken(t *testing.T) []string {
	t.Helper()
	if *operatorsOf != "core" {
		return strings.Split(*operatorsOf, ",")
	}
	return corePackages(t)
}

// corePackages returns the packages of core, such as ./core/gateway/drr.
func corePackages(t *testing.T) (packages []string) {
	t.Helper()
	at := root(t)
	err := filepath.WalkDir(filepath.Join(at, "core"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, err := filepath.Rel(at, filepath.Dir(path))
		packages = append(packages, "./"+filepath.ToSlash(dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// TestCorePackagesAreNested: packages below a directory without Go files are found, such a directory is not, and
// every counted package exists.
func TestCorePackagesAreNested(t *testing.T) {
	all := corePackages(t)
	if !slices.Contains(all, "./core/gateway/drr") || slices.Contains(all, "./core/gateway") || !slices.IsSorted(all) {
		t.Errorf("found %v", all)
	}
	for pkg := range counted(t) {
		if !slices.Contains(all, pkg) {
			t.Errorf("%s has a count, and does not exist", pkg)
		}
	}
}

// looksAt returns the checks for a package, the fastest first.
func looksAt(pkg string) []mutants.Check {
	checks := []mutants.Check{{Package: pkg, Draws: 100}}
	if pkg != "./core/node" {
		checks = append(checks, mutants.Check{Package: "./core/node", Draws: 100})
	}
	if !*near {
		checks = append(checks, mutants.Check{Package: pkg, Draws: 1000}, mutants.Check{Package: "./chaos/sim", Tests: "TestSeeds$"})
	}
	return checks
}

// TestOperatorMutantsAreDetected: mutants of operators in core are detected by the package's own
// tests, the transcripts or the simulator. The undetected ones are listed.
func TestOperatorMutantsAreDetected(t *testing.T) {
	if *operatorsOf == "" {
		t.Skip("breaks everything that can be broken in core, hours of CPU: go test ./chaos/mutants -run TestOperatorMutantsAreDetected -operators core")
	}
	known, tally := unseen(t), &tally{there: map[string]bool{}, missed: map[string]bool{}}
	packages := broken(t)
	for _, pkg := range packages {
		t.Run(strings.TrimPrefix(pkg, "./core/"), func(t *testing.T) { detectIn(t, pkg, known, tally) })
	}
	for name := range known {
		if *operatorsOf == "core" && !tally.there[name] && !*rewrite {
			t.Errorf("%s lists a mutant that does not exist: %s", unseenPath, name)
		}
	}
	if *rewrite {
		keep(t, packages, tally, known)
	}
}

// TestOperatorMutantsAreCounted logs how many of them are detected, according to the last run
// with -rewrite.
func TestOperatorMutantsAreCounted(t *testing.T) {
	all, missed, open := 0, map[string]int{}, 0
	for name, why := range unseen(t) {
		if missed[packageOf(name)]++; why == "" {
			open++
		}
	}
	for pkg, n := range counted(t) {
		if all += n; missed[pkg] > n {
			t.Errorf("%s: %d mutants, %d undetected", pkg, n, missed[pkg])
		}
		all -= missed[pkg]
		delete(missed, pkg)
	}
	if len(missed) > 0 {
		t.Errorf("counted are none of %v", missed)
	}
	unseen := len(unseen(t))
	t.Logf("evidence: mutants.operators_not_counted = %s", strings.Join(notCounted(t), ", "))
	t.Logf("evidence: mutants.operators = %d of %d, %.1f%%; %d of the others are equivalent, %d are open",
		all, all+unseen, 100*float64(all)/float64(all+unseen), unseen-open, open)
}

// notCounted returns the packages of core without a count.
func notCounted(t *testing.T) (packages []string) {
	t.Helper()
	known := counted(t)
	for _, pkg := range corePackages(t) {
		if known[pkg] == 0 {
			packages = append(packages, strings.TrimPrefix(pkg, "./"))
		}
	}
	return packages
}

// A tally is the result of mutants, by name.
type tally struct{ there, missed map[string]bool }

// detectIn tests the mutants of one package. One overlay for all packages would make frequently
// called functions slow.
func detectIn(t *testing.T, pkg string, known map[string]string, of *tally) {
	s := &smithy{t: t, root: root(t), made: map[string]func() (string, error){}}
	all, overlay, err := mutants.OperatorMutants(s.root, t.TempDir(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	looks := looksAt(pkg)
	for i := range looks {
		c := &looks[i]
		v := mutants.Try(s.root, s.built(t, overlay, c.Package), *c, 0)
		if v.Dead {
			t.Fatalf("%s fails without a mutant: %s", c.Package, v.Why)
		}
		c.CPU = time.Second + 5*v.CPU
	}
	var mu sync.Mutex
	tried := counted(t) // an undetected mutant of a package that was never counted is logged, not a failure
	t.Run("all", func(t *testing.T) {
		for _, m := range all {
			of.there[m.Name] = true
			t.Run(fmt.Sprint(m.Number), func(t *testing.T) {
				t.Parallel()
				for _, c := range looks {
					if v := mutants.Try(s.root, s.built(t, overlay, c.Package), c, m.Number); v.Dead && !v.Blind {
						return
					}
				}
				mu.Lock()
				defer mu.Unlock()
				of.missed[m.Name] = true
				if _, ok := known[m.Name]; ok || *rewrite || tried[pkg] == 0 {
					t.Logf("undetected: %s", m.Name)
				} else {
					t.Errorf("undetected: %s", m.Name)
				}
			})
		}
	})
}

// packageOf returns the package of a mutant, from its name.
func packageOf(name string) string { return "./" + filepath.Dir(strings.Fields(name)[0]) }

const countedPath = "testdata/counted.txt"

// counted returns the number of mutants of each package that was tried.
func counted(t *testing.T) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(countedPath)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		var pkg string
		var n int
		if _, err := fmt.Sscan(line, &pkg, &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[pkg] = n
	}
	return all
}

// keep writes the undetected mutants of some packages and their counts, replacing the old ones.
func keep(t *testing.T, packages []string, of *tally, known map[string]string) {
	t.Helper()
	counts := counted(t)
	for _, pkg := range packages {
		counts[pkg] = 0
	}
	for name := range of.there {
		counts[packageOf(name)]++
	}
	for name := range known {
		if slices.Contains(packages, packageOf(name)) && !of.missed[name] {
			delete(known, name)
		}
	}
	for name := range of.missed {
		known[name] = cmp.Or(known[name], "")
	}
	var lines, sums []string
	for name, why := range known {
		if why != "" {
			name += " # " + why
		}
		lines = append(lines, name+"\n")
	}
	for pkg, n := range counts {
		sums = append(sums, fmt.Sprintln(pkg, n))
	}
	slices.Sort(lines)
	slices.Sort(sums)
	for path, all := range map[string][]string{unseenPath: lines, countedPath: sums} {
		if err := os.WriteFile(path, []byte(strings.Join(all, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperatorsOnFixture: operators skip assertions, and produce valid Go.
func TestOperatorsOnFixture(t *testing.T) {
	const pkg = "./chaos/mutants/testdata/operators"
	all, _, err := mutants.OperatorMutants(root(t), t.TempDir(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, s := range all {
		if s.Number != i+1 || s.Package != pkg {
			t.Errorf("%d: %+v", i+1, s)
		}
		names = append(names, strings.TrimPrefix(s.Name, "chaos/mutants/testdata/operators/operators.go "))
	}
	want := []string{
		`counter.add: if [n < 0 || quiet && n > c.most -> false] {`,
		`counter.add: if [n < 0 || -> ]quiet && n > c.most {`,
		`counter.add: if n < 0[ || quiet && n > c.most -> ] {`,
		`counter.add: if n [< -> <=] 0 || quiet && n > c.most {`,
		`counter.add: if n < 0 || [quiet && -> ]n > c.most {`,
		`counter.add: if n < 0 || quiet[ && n > c.most -> ] {`,
		`counter.add: if n < 0 || quiet && n [> -> >=] c.most {`,
		`counter.add: for i := 0; i [< -> <=] n; i++ {`,
		`counter.add: for i := 0; i < n; i[++ -> --] {`,
		`counter.add: [c.n += min(i, 1) -> {}]`,
		`counter.add: c.n [+= -> -=] min(i, 1)`,
		`counter.add: c.n += [min -> max](i, 1)`,
		`counter.add: [c.n = c.n * 2 -> {}]`,
		`counter.add: case [! -> ]quiet:`,
		`counter.add: c.n = c.n [* -> /] 2`,
		`counter.add: return [true -> false]`,
		`counter.add: return [false -> true]`,
		`name: if [text == "" -> false] {`,
		`name: if text [== -> !=] "" {`,
	}
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

package mutants_test

import (
	"bufio"
	"cmp"
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
	slip    = flag.String("slips", "", "the packages of core that mutation operators break everywhere, by commas; all of them: core")
	near    = flag.Bool("near", false, "show slips to their own package and to the stories of the house alone, not to the simulator")
	rewrite = flag.Bool("rewrite", false, "write what nobody saw to "+unseenPath+", with the reasons that are there")
)

const unseenPath = "testdata/unseen.txt"

// unseen are the slips that no check sees, and why nothing can be seen of each: what stands
// behind the # in its line. Nobody has looked at those without a reason.
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

// broken are the packages that -slips names.
func broken(t *testing.T) (packages []string) {
	t.Helper()
	if *slip != "core" {
		return strings.Split(*slip, ",")
	}
	dirs, err := filepath.Glob(filepath.Join(root(t), "core", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		packages = append(packages, "./core/"+filepath.Base(d))
	}
	return packages
}

// looksAt are those who look for slips in a package, the quickest first.
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

// TestSlips: what mutation operators break in core somebody sees: its own package, the
// stories of the house, or the simulator. What nobody sees is known.
func TestSlips(t *testing.T) {
	if *slip == "" {
		t.Skip("breaks everything that can be broken in core, hours of CPU: go test ./chaos/mutants -run TestSlips -slips core")
	}
	known, tally := unseen(t), &tally{there: map[string]bool{}, missed: map[string]bool{}}
	packages := broken(t)
	for _, pkg := range packages {
		t.Run(strings.TrimPrefix(pkg, "./core/"), func(t *testing.T) { slipsIn(t, pkg, known, tally) })
	}
	for name := range known {
		if *slip == "core" && !tally.there[name] && !*rewrite {
			t.Errorf("%s knows what can be broken no more: %s", unseenPath, name)
		}
	}
	if *rewrite {
		keep(t, packages, tally, known)
	}
}

// TestSlipsAreCounted says how many of them are seen, as the last run wrote it down that kept
// what it saw.
func TestSlipsAreCounted(t *testing.T) {
	all, missed, open := 0, map[string]int{}, 0
	for name, why := range unseen(t) {
		if missed[packageOf(name)]++; why == "" {
			open++
		}
	}
	for pkg, n := range counted(t) {
		if all += n; missed[pkg] > n {
			t.Errorf("%s: of %d nobody sees %d", pkg, n, missed[pkg])
		}
		all -= missed[pkg]
		delete(missed, pkg)
	}
	if len(missed) > 0 {
		t.Errorf("counted are none of %v", missed)
	}
	unseen := len(unseen(t))
	t.Logf("evidence: mutants.slips_not_counted = %s", strings.Join(notCounted(t), ", "))
	t.Logf("evidence: mutants.slips = %d of %d, %.1f%%; %d of the others change nothing that can be seen, %d are open",
		all, all+unseen, 100*float64(all)/float64(all+unseen), unseen-open, open)
}

// notCounted returns the packages of core in which no run has counted slips.
func notCounted(t *testing.T) (packages []string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root(t), "core", "*"))
	if err != nil {
		t.Fatal(err)
	}
	known := counted(t)
	for _, d := range dirs {
		if name := filepath.Base(d); known["./core/"+name] == 0 {
			packages = append(packages, "core/"+name)
		}
	}
	return packages
}

// A tally is what became of slips, by name.
type tally struct{ there, missed map[string]bool }

// slipsIn breaks one package everywhere: with those of all of them in one overlay whatever
// is called often would ask thousands of times which is on.
func slipsIn(t *testing.T, pkg string, known map[string]string, of *tally) {
	s := &smithy{t: t, root: root(t), made: map[string]func() (string, error){}}
	all, overlay, err := mutants.Slips(s.root, t.TempDir(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	looks := looksAt(pkg)
	for i := range looks {
		c := &looks[i]
		v := mutants.Try(s.root, s.built(t, overlay, c.Package), *c, 0)
		if v.Dead {
			t.Fatalf("%s complains of the house as it is: %s", c.Package, v.Why)
		}
		c.CPU = time.Second + 5*v.CPU
	}
	var mu sync.Mutex
	tried := counted(t) // what nobody sees where nobody has looked yet is told, and no failure
	t.Run("all", func(t *testing.T) {
		for _, slip := range all {
			of.there[slip.Name] = true
			t.Run(fmt.Sprint(slip.Number), func(t *testing.T) {
				t.Parallel()
				for _, c := range looks {
					if v := mutants.Try(s.root, s.built(t, overlay, c.Package), c, slip.Number); v.Dead && !v.Blind {
						return
					}
				}
				mu.Lock()
				defer mu.Unlock()
				of.missed[slip.Name] = true
				if _, ok := known[slip.Name]; ok || *rewrite || tried[pkg] == 0 {
					t.Logf("nobody sees %s", slip.Name)
				} else {
					t.Errorf("nobody sees %s", slip.Name)
				}
			})
		}
	})
}

// packageOf is where a slip is, by its name.
func packageOf(name string) string { return "./" + filepath.Dir(strings.Fields(name)[0]) }

const countedPath = "testdata/counted.txt"

// counted is how many slips there are of each package that was tried.
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

// keep writes what was missed in some packages, and how many slips they have, in the place of
// what is known of them.
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

// TestOperators: what operators make of a package: nothing of what asserts, and nothing that is no Go.
func TestOperators(t *testing.T) {
	const pkg = "./chaos/mutants/testdata/slips"
	slips, _, err := mutants.Slips(root(t), t.TempDir(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, s := range slips {
		if s.Number != i+1 || s.Package != pkg {
			t.Errorf("%d: %+v", i+1, s)
		}
		names = append(names, strings.TrimPrefix(s.Name, "chaos/mutants/testdata/slips/slips.go "))
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

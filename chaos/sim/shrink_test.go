package sim

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"macronode/chaos/world"
)

// liar is a world whose disk never syncs: against the law, so that every life with a crash
// in it fails.
func liar(c world.Chooser) *World {
	w := New(c)
	w.disk.Told = func(op, _ string) { w.disk.LoseSync = op == "sync" }
	return w
}

// lied are the logs of the lives of liars that fail: nearly all do.
func lied(t *testing.T) (all []world.Log) {
	t.Helper()
	const lives = 16
	for seed := range uint64(lives) {
		var l world.Log
		if err := liar(world.Recorded(world.Given(world.Given(world.Given(Life(seed, 300), "odds/crash", 3), "goal", 0), "odds/gate", 0), &l)).Run(); Rule(err) != "" {
			all = append(all, l)
		}
	}
	if len(all) < lives/2 {
		t.Fatalf("a disk that keeps nothing is believed: %d lives of %d fail", len(all), lives)
	}
	return all
}

// TestLogIsTheRun: the log of a life that failed replays to the same failure, word for
// word, also when it was written down in between.
func TestLogIsTheRun(t *testing.T) {
	l := lied(t)[0]
	name := filepath.Join(t.TempDir(), "life.log")
	if err := Save(name, l, "a liar"); err != nil {
		t.Fatal(err)
	}
	again, err := Load(name)
	if err != nil || !slices.Equal(l, again) {
		t.Fatalf("read %d choices of %d, %v", len(again), len(l), err)
	}
	first, second := liar(world.Replay(l)).Run(), liar(world.Replay(again)).Run()
	if Rule(first) == "" || first.Error() != second.Error() {
		t.Fatalf("failed\n%v\nthen\n%v", first, second)
	}
}

// TestShrunkLives: a log that was made small fails the same, and has nearly no surprises
// left, well within the lives that it was given.
func TestShrunkLives(t *testing.T) {
	for _, l := range lied(t) {
		rule := Rule(liar(world.Replay(l)).Run())
		s := world.Shrinker{Run: func(c world.Chooser) string { return Rule(liar(c).Run()) }, Steps: Steps(), Most: 3000}
		small, same := s.Shrink(l)
		if again := Rule(liar(world.Replay(small)).Run()); rule == "" || same != rule || again != rule {
			t.Fatalf("%s became %s, and replays to %s", rule, same, again)
		}
		if left := small.Surprises(); left > 30 || s.Runs >= s.Most {
			t.Errorf("%s: %d of %d surprises are left, after %d lives", rule, left, l.Surprises(), s.Runs)
		}
	}
}

// TestDivergedIsNoFailure: a log that asks for what is not asked any more proves nothing.
func TestDivergedIsNoFailure(t *testing.T) {
	l, err := Recorded(Life(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	l[2].Site = "odds/of-another-version"
	var d world.Diverged
	if err = New(world.Replay(l)).Run(); !errors.As(err, &d) || d.At != 2 || Rule(err) != "" {
		t.Fatalf("said %v", err)
	}
}

// TestPanicIsAFailure: a panic of the product is a rule that was broken, named without
// the numbers in it.
func TestPanicIsAFailure(t *testing.T) {
	w := New(Life(1, 20))
	w.disk.Told = func(string, string) { _ = []int{1}[len(w.Saw)+7] }
	if err := w.Run(); Rule(err) != "panic: runtime error: index out of range [#] with length #" {
		t.Fatalf("said %v", err)
	}
}

package sim

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"macronode/chaos/world"
)

// liar is a world whose disk never syncs, which a correct disk never does: every run with a crash
// fails.
func liar(c world.Chooser) *World {
	w := New(c)
	w.disk.OnOperation = func(op, _ string) { w.disk.LoseSync = op == "sync" }
	return w
}

// lied returns the logs of failing runs of liars: nearly all fail.
func lied(t *testing.T) (all []world.Log) {
	t.Helper()
	const runs = 16
	for seed := range uint64(runs) {
		var l world.Log
		if err := liar(world.Recorded(world.Given(world.Given(world.Given(Choices(seed, 300), "odds/crash", 3), "goal", 0), "odds/gate", 0), &l)).Run(); Rule(err) != "" {
			all = append(all, l)
		}
	}
	if len(all) < runs/2 {
		t.Fatalf("a disk that keeps nothing passes: %d of %d runs fail", len(all), runs)
	}
	return all
}

// TestLogReplaysFailure: the log of a failing run replays to the same failure, word for word,
// also after it was saved and loaded.
func TestLogReplaysFailure(t *testing.T) {
	l := lied(t)[0]
	name := filepath.Join(t.TempDir(), "run.log")
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

// TestShrunkLogsFailAlike: a shrunk log fails alike, has nearly no choices other than 0, and took
// far fewer runs than permitted.
func TestShrunkLogsFailAlike(t *testing.T) {
	for _, l := range lied(t) {
		rule := Rule(liar(world.Replay(l)).Run())
		s := world.Shrinker{Run: func(c world.Chooser) string { return Rule(liar(c).Run()) }, Steps: Steps(), Most: 3000}
		small, same := s.Shrink(l)
		if again := Rule(liar(world.Replay(small)).Run()); rule == "" || same != rule || again != rule {
			t.Fatalf("%s became %s, and replays to %s", rule, same, again)
		}
		if left := small.Surprises(); left > 30 || s.Runs >= s.Most {
			t.Errorf("%s: %d of %d choices are left, after %d runs", rule, left, l.Surprises(), s.Runs)
		}
	}
}

// TestDivergedReplayIsNotAFailure: a log with other choices proves nothing.
func TestDivergedReplayIsNotAFailure(t *testing.T) {
	l, err := Recorded(Choices(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	l[2].Site = "odds/of-another-version"
	var d world.Diverged
	if err = New(world.Replay(l)).Run(); !errors.As(err, &d) || d.At != 2 || Rule(err) != "" {
		t.Fatalf("got %v", err)
	}
}

// TestPanicIsReportedAsFailure: a panic of the product is a violated rule, named by its text
// without numbers.
func TestPanicIsReportedAsFailure(t *testing.T) {
	w := New(Choices(1, 20))
	w.disk.OnOperation = func(string, string) { _ = []int{1}[len(w.Saw)+7] }
	if err := w.Run(); Rule(err) != "panic: runtime error: index out of range [#] with length #" {
		t.Fatalf("got %v", err)
	}
}

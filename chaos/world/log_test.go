package world_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"macronode/chaos/world"
)

func text(t *testing.T, l world.Log) string {
	t.Helper()
	out, err := l.MarshalText()
	must(t, err)
	return string(out)
}

// TestLogTextRoundTrips: one line per choice, or per run of equal ones.
func TestLogTextRoundTrips(t *testing.T) {
	l := world.Log{{Site: "move", N: 24, Got: 7}, {Site: "client", N: 4}, {Site: "client", N: 4}, {Site: "tear", N: 9, Got: 8}, {Site: "tear", N: 9, Got: 8}}
	const want = "choices 1\nmove 24 7\nclient 4 x2\ntear 9 8 x2\n"
	if got := text(t, l); got != want {
		t.Fatalf("wrote %q, want %q", got, want)
	}
	var back world.Log
	if must(t, back.UnmarshalText([]byte("# why\n"+want+"\n# end"))); !slices.Equal(back, l) {
		t.Fatalf("read %v, want %v", back, l)
	}
}

// TestInvalidLogsAreRejected: with the line; and invalid logs are not written.
func TestInvalidLogsAreRejected(t *testing.T) {
	for _, line := range []string{"", "move 24", "choices 2", "choices 1\nmove", "choices 1\nmove x2", "choices 1\nmove 24 24", "choices 1\nmove 0",
		"choices 1\nmove 24 -1", "choices 1\nmove 24 1 1", "choices 1\nmove 24 x1", "choices 1\nmove 24 1 2 x2", "choices 1\n 24 1", "choices 1\nmove 24 1 x99999999",
		"choices 1\nmove 24 x1048576\nmove 24", "choices 1\nmove  24"} {
		var l world.Log
		if err := l.UnmarshalText([]byte(line)); !errors.Is(err, world.ErrLog) {
			t.Errorf("%q is read as %d choices, %v", line, len(l), err)
		}
	}
	for _, c := range []world.Choice{{Site: "", N: 1}, {Site: "a b", N: 1}, {Site: "#a", N: 1}, {Site: "a", N: 0}, {Site: "a", N: 1, Got: 1}, {Site: "a\n", N: 1}} {
		if out, err := (world.Log{c}).MarshalText(); !errors.Is(err, world.ErrLog) {
			t.Errorf("%+v is written as %q", c, out)
		}
	}
}

// FuzzLog: a text that parses as a log marshals to a text with the same meaning, and that is
// stable.
func FuzzLog(f *testing.F) {
	f.Add([]byte("choices 1\nmove 24 7\nclient 4 x2\ndisk/tear 9 8 x2\n"))
	f.Add([]byte("# caught\nchoices 1\na 1\na 1\na 2 1\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var l, again world.Log
		if l.UnmarshalText(in) != nil {
			return
		}
		out, err := l.MarshalText()
		if err != nil {
			t.Fatalf("was read, and is not written: %v", err)
		}
		if err := again.UnmarshalText(out); err != nil || !slices.Equal(l, again) {
			t.Fatalf("%v\nbecame %v, %v", l, again, err)
		}
		if twice, _ := again.MarshalText(); string(twice) != string(out) {
			t.Fatalf("%q, and the same again %q", out, twice)
		}
	})
}

// ask makes choices and returns the results.
func ask(c world.Chooser, sites ...string) (got []int) {
	for _, site := range sites {
		got = append(got, c.Choose(site, 10))
	}
	return got
}

// TestReplayRepeatsChoices: and chooses 0 after the end.
func TestReplayRepeatsChoices(t *testing.T) {
	var l world.Log
	sites := []string{"a", "b", "a", "c"}
	want := ask(world.Recorded(world.NewSeeded(3), &l), sites...)
	c := world.Replay(l)
	if got := ask(c, sites...); !slices.Equal(got, want) {
		t.Fatalf("recorded %v, replayed %v", want, got)
	}
	if got := ask(c, "d", "e"); !slices.Equal(got, []int{0, 0}) {
		t.Fatalf("after the end %v", got)
	}
}

// TestReplayOfOlderLog: a log may lack an added site, which then gives 0; with the site, the log decides.
func TestReplayOfOlderLog(t *testing.T) {
	l := world.Log{{Site: "a", N: 10, Got: 1}, {Site: "b", N: 10, Got: 2}}
	if got := ask(world.Replay(l, "new"), "a", "new", "b"); !slices.Equal(got, []int{1, 0, 2}) {
		t.Errorf("without the site: %v", got)
	}
	l = slices.Insert(l, 1, world.Choice{Site: "new", N: 10, Got: 3})
	if got := ask(world.Replay(l, "new"), "a", "new", "b"); !slices.Equal(got, []int{1, 3, 2}) {
		t.Errorf("with the site: %v", got)
	}
}

// TestReplayPanicsOnDivergence: at the first choice with another site or range, with its
// position.
func TestReplayPanicsOnDivergence(t *testing.T) {
	l := world.Log{{Site: "a", N: 10, Got: 1}, {Site: "b", N: 9, Got: 1}, {Site: "c", N: 10, Got: 1}}
	for name, sites := range map[string][]string{"site": {"a", "x"}, "n": {"a", "b"}} {
		func() {
			defer func() {
				d, ok := recover().(world.Diverged)
				if !ok || d.At != 1 || d.Want != l[1] || d.Got.Site != sites[1] || d.Got.N != 10 || !strings.Contains(d.Error(), "choice 1") {
					t.Errorf("another %s: %+v", name, d)
				}
			}()
			ask(world.Replay(l), sites...)
		}()
	}
}

// TestGivenFixesOneSite: within the range of the choice.
func TestGivenFixesOneSite(t *testing.T) {
	c := world.Given(world.Dull{}, "b", 7)
	if got := append(ask(c, "a", "b"), c.Choose("b", 3)); !slices.Equal(got, []int{0, 7, 2}) {
		t.Fatalf("answers %v", got)
	}
}

// TestLooseFollowsSteps: a step resumes at its place in the log; a choice within it gets the
// result of the next choice at its site, or 0.
func TestLooseFollowsSteps(t *testing.T) {
	l := world.Log{{Site: "step", N: 10, Got: 1}, {Site: "a", N: 10, Got: 2}, {Site: "b", N: 10, Got: 3}, {Site: "step", N: 10, Got: 4}, {Site: "a", N: 10, Got: 9}}
	for _, is := range []struct {
		asked string
		want  []int
	}{
		{"step a b step a", []int{1, 2, 3, 4, 9}},
		{"step b a step a", []int{1, 3, 0, 4, 9}}, // the choice a of the next step is not taken
		{"step step a b", []int{1, 4, 9, 0}},
		{"step x a step step a", []int{1, 0, 2, 4, 0, 9}},
	} {
		if got := ask(world.Loose(l, "step"), strings.Split(is.asked, " ")...); !slices.Equal(got, is.want) {
			t.Errorf("%s: %v, want %v", is.asked, got, is.want)
		}
	}
	if got := world.Loose(l[4:]).Choose("a", 3); got != 2 {
		t.Errorf("9 of 10 is %d of 3", got)
	}
}

// steps makes a run of steps that fails if it chose 3, and later a step with 5 and then 8.
func steps(c world.Chooser) string {
	three := false
	for range c.Choose("steps", 100) {
		switch c.Choose("step", 10) {
		case 3:
			three = true
		case 5:
			if c.Choose("deep", 2); c.Choose("value", 100) >= 8 && three {
				return "three, and eight"
			}
		case 9:
			c.Choose("noise", 100)
		}
	}
	return ""
}

// TestShrinkRemovesNeedlessChoices: the log of the smaller run replays.
func TestShrinkRemovesNeedlessChoices(t *testing.T) {
	for seed := range uint64(20) {
		var l world.Log
		if steps(world.Recorded(world.Given(world.NewSeeded(seed), "steps", 99), &l)) == "" {
			continue
		}
		s := world.Shrinker{Run: steps, Steps: []string{"step"}, Most: 2000}
		small, failed := s.Shrink(l)
		if again := steps(world.Replay(small)); again != failed || failed != "three, and eight" {
			t.Fatalf("seed %d: failed %q, replayed %q", seed, failed, again)
		}
		if got := strings.ReplaceAll(text(t, small), "\n", " "); got != "choices 1 steps 100 2 step 10 3 step 10 5 deep 2 value 100 8 " {
			t.Errorf("seed %d: %s after %d runs", seed, got, s.Runs)
		}
	}
	s := world.Shrinker{Run: steps, Most: 9}
	if l, failed := s.Shrink(world.Log{{Site: "steps", N: 9}}); failed != "" || len(l) != 1 || s.Runs != 1 {
		t.Errorf("what does not fail is shrunk to %v, %q", l, failed)
	}
}

// TestShrinkBudget: at most the permitted number of runs, and the result is a failing run.
func TestShrinkBudget(t *testing.T) {
	var l world.Log
	for seed := uint64(0); steps(world.Recorded(world.Given(world.NewSeeded(seed), "steps", 99), &l)) == ""; seed++ {
		l = nil
	}
	for most := 1; most < 40; most++ {
		s := world.Shrinker{Run: steps, Steps: []string{"step"}, Most: most}
		if small, failed := s.Shrink(l); s.Runs > most || steps(world.Replay(small)) != failed {
			t.Fatalf("%d runs of %d, %q", s.Runs, most, failed)
		}
	}
}

// TestPriorityStarvesSites: a seed gives the same choices, every result occurs, and in each
// stretch one result is far more frequent than by chance.
func TestPriorityStarvesSites(t *testing.T) {
	for seed := range uint64(20) {
		a, b := world.Priority(seed, 3, "move"), world.Priority(seed, 3, "move")
		seen := [24]int{}
		most := 0
		for range 40 {
			stretch := [24]int{}
			for range 100 {
				x := a.Choose("move", 24)
				if y := b.Choose("move", 24); x != y {
					t.Fatalf("seed %d: %d, then %d", seed, x, y)
				}
				seen[x]++
				stretch[x]++
			}
			most = max(most, slices.Max(stretch[:]))
		}
		if slices.Min(seen[:]) == 0 || most < 40 {
			t.Errorf("seed %d: answers %v, the most in a hundred %d", seed, seen, most)
		}
	}
}

// TestDrawnReadsBytes: a choice takes as many bytes as its range needs, none for a range of one,
// and 0 after the end.
func TestDrawnReadsBytes(t *testing.T) {
	c := world.Drawn([]byte{7, 1, 2, 9})
	got := []int{c.Choose("a", 5), c.Choose("a", 1), c.Choose("a", 1000), c.Choose("a", 256), c.Choose("a", 3)}
	if !slices.Equal(got, []int{2, 0, 258, 9, 0}) {
		t.Fatalf("answers %v", got)
	}
}

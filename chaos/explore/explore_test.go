package explore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"macronode/core/types"
)

// grid is a toy system: walkers with a number of steps each; a meeting point is a bug.
type grid struct {
	at    [3]uint8
	size  uint8
	bug   [3]uint8
	does  string // its bug
	blind bool   // the hash ignores a walker
}

func (g *grid) Enabled(to []Action) []Action {
	for i := range g.at {
		if g.at[i] < g.size {
			to = append(to, Action(i))
		}
	}
	if g.does == "round" && g.at == g.bug {
		to = append(to, 9)
	}
	return to
}

func (g *grid) Do(a Action) error {
	if a == 9 {
		g.at[0]--
		return nil
	}
	g.at[a]++
	switch {
	case g.at != g.bug:
	case g.does == "breaks":
		return fmt.Errorf("met: at %v", g.at)
	case g.does == "panics":
		types.Assert(false, "met")
	}
	return nil
}

func (g *grid) Check() error {
	if g.does == "is broken" && g.at == g.bug {
		return fmt.Errorf("stands: at %v", g.at)
	}
	return nil
}

func (g *grid) Rest() error {
	if g.does == "does not rest" {
		return errors.New("the end: not here")
	}
	return nil
}

func (g *grid) Hash() types.Hash64 {
	h := types.Hash64(0).Mix(uint64(g.at[0])).Mix(uint64(g.at[1]))
	if g.blind {
		return h
	}
	return h.Mix(uint64(g.at[2]))
}

func (g *grid) CopyTo(dst *grid)    { *dst = *g }
func (g *grid) Say(a Action) string { return fmt.Sprintf("walker %d", a) }

// TestEveryStateIsVisitedOnce: three walkers of n steps have (n+1)³ states, and 3n(n+1)²
// transitions.
func TestEveryStateIsVisitedOnce(t *testing.T) {
	for n := range uint64(20) {
		r := Run(&grid{size: uint8(n)}, Scope{Room: 8000})
		side := n + 1
		if r.Distinct != side*side*side || r.Transitions != 3*n*side*side || r.Depth != 3*n || r.Ends != 1 || !r.Whole || r.Found != nil {
			t.Errorf("%d steps: %v", n, r)
		}
	}
}

// TestFullTableIsReported: with one state too many, the report is not whole.
func TestFullTableIsReported(t *testing.T) {
	for room := 1; room <= 1000; room++ {
		if r := Run(&grid{size: 9}, Scope{Room: room}); r.Whole != (room == 1000) || r.Found != nil {
			t.Errorf("room for %d of 1000: %v", room, r)
		}
	}
}

// TestFindsEveryBug: every bug is found, with a minimal schedule.
func TestFindsEveryBug(t *testing.T) {
	for does, want := range map[string]struct {
		rule  string
		steps int
	}{
		"breaks":        {"met", 9},
		"panics":        {"panic", 9},
		"is broken":     {"stands", 9},
		"round":         {"goes round", 11}, // back in an earlier state
		"does not rest": {"the end", 15},
	} {
		r := Run(&grid{size: 5, bug: [3]uint8{4, 2, 3}, does: does}, Scope{Room: 1000})
		if r.Found == nil || r.Whole {
			t.Errorf("a grid that %s: nothing found: %v", does, r)
			continue
		}
		if report := r.Found.String(); rule(r.Found.Err) != want.rule || len(r.Found.Log) != want.steps || strings.Count(report, "walker") != want.steps {
			t.Errorf("a grid that %s: %d steps: %s", does, len(r.Found.Log), report)
		}
		if again := play[grid](&grid{size: 5, bug: [3]uint8{4, 2, 3}, does: does}, r.Found.Log); again == nil || rule(again.Err) != want.rule {
			t.Errorf("a grid that %s: not the same again: %v", does, again)
		}
	}
}

// TestIncompleteHashLosesBugs shows why the hash must cover every field.
func TestIncompleteHashLosesBugs(t *testing.T) {
	g := grid{size: 5, bug: [3]uint8{0, 0, 3}, does: "breaks"}
	if r := Run(&g, Scope{Room: 1000}); r.Found == nil {
		t.Error("not found with open eyes")
	}
	g.blind = true
	if r := Run(&g, Scope{Room: 1000}); r.Found != nil && rule(r.Found.Err) == "met" || r.Distinct > 36 {
		t.Errorf("a blind hash sees: %v, %v", r, r.Found)
	}
}

// TestTableTellsStates: the table distinguishes new states, those on the path, and finished ones,
// however full it is.
func TestTableTellsStates(t *testing.T) {
	s := newSeen(700)
	d := types.NewRand(1)
	keys := make([]types.Hash64, 700)
	slots := make([]int, len(keys))
	for i := range keys {
		keys[i] = types.Hash64(d.Uint64n(1<<62))<<1 | 1
		slot, was := s.open(keys[i])
		if slots[i] = slot; was != fresh || s.full() {
			t.Fatalf("key %d is %d, full %v", i, was, s.full())
		}
	}
	for i, k := range keys {
		if _, was := s.open(k); was != opened {
			t.Fatalf("key %d is %d, on the way", i, was)
		}
		s.close(slots[i])
		if _, was := s.open(k ^ 1); was != closed {
			t.Fatalf("key %d is %d, done with", i, was)
		}
	}
	if s.open(12345); !s.full() {
		t.Error("one more, and not full")
	}
}

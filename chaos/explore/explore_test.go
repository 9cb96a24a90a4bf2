package explore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"macronode/core/types"
)

// grid is a toy: so many walkers, each of so many steps; where they must not meet is a
// bug.
type grid struct {
	at    [3]uint8
	size  uint8
	bug   [3]uint8
	does  string // what is wrong with it
	blind bool   // the hash forgets a walker
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

// TestEveryStateOnce: of three walkers of n steps there are (n+1)³ states, and 3n(n+1)²
// moves between them; no more, no less.
func TestEveryStateOnce(t *testing.T) {
	for n := range uint64(20) {
		r := Run(&grid{size: uint8(n)}, Scope{Room: 8000})
		side := n + 1
		if r.Distinct != side*side*side || r.Transitions != 3*n*side*side || r.Depth != 3*n || r.Ends != 1 || !r.Whole || r.Found != nil {
			t.Errorf("%d steps: %v", n, r)
		}
	}
}

// TestNothingIsCutInSilence: one state more than there is room for, and the report is
// not whole.
func TestNothingIsCutInSilence(t *testing.T) {
	for room := 1; room <= 1000; room++ {
		if r := Run(&grid{size: 9}, Scope{Room: room}); r.Whole != (room == 1000) || r.Found != nil {
			t.Errorf("room for %d of 1000: %v", room, r)
		}
	}
}

// TestFinds: whatever is wrong is found, with a schedule that leads there and has no
// action too many.
func TestFinds(t *testing.T) {
	for does, want := range map[string]struct {
		rule  string
		steps int
	}{
		"breaks":        {"met", 9},
		"panics":        {"panic", 9},
		"is broken":     {"stands", 9},
		"round":         {"goes round", 11}, // the bug, and back to where it has been
		"does not rest": {"the end", 15},
	} {
		r := Run(&grid{size: 5, bug: [3]uint8{4, 2, 3}, does: does}, Scope{Room: 1000})
		if r.Found == nil || r.Whole {
			t.Errorf("a grid that %s: nothing found: %v", does, r)
			continue
		}
		if said := r.Found.String(); rule(r.Found.Err) != want.rule || len(r.Found.Log) != want.steps || strings.Count(said, "walker") != want.steps {
			t.Errorf("a grid that %s: %d steps: %s", does, len(r.Found.Log), said)
		}
		if again := play[grid](&grid{size: 5, bug: [3]uint8{4, 2, 3}, does: does}, r.Found.Log); again == nil || rule(again.Err) != want.rule {
			t.Errorf("a grid that %s: not the same again: %v", does, again)
		}
	}
}

// TestABlindHashLosesBugs: why the hash of a world is held to every field of it.
func TestABlindHashLosesBugs(t *testing.T) {
	g := grid{size: 5, bug: [3]uint8{0, 0, 3}, does: "breaks"}
	if r := Run(&g, Scope{Room: 1000}); r.Found == nil {
		t.Error("not found with open eyes")
	}
	g.blind = true
	if r := Run(&g, Scope{Room: 1000}); r.Found != nil && rule(r.Found.Err) == "met" || r.Distinct > 36 {
		t.Errorf("a blind hash sees: %v, %v", r, r.Found)
	}
}

// TestDeepIsShallow: the table of states tells fresh, on the way, and done with, however
// full it is.
func TestDeepIsShallow(t *testing.T) {
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

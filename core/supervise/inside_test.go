package supervise

import (
	"testing"

	"macronode/ci/flip"
	"macronode/core/event"
	"macronode/core/words"
)

func TestHashForgetsNothing(t *testing.T) {
	s := New(words.NewDice(1))
	flip.Every(t, &s, func() words.Hash64 { return s.Mix(0) })
}

// TestCheckFinds: S1, either way.
func TestCheckFinds(t *testing.T) {
	for name, spoil := range map[string]func(*child){
		"wanted and down":      func(c *child) { c.state = down },
		"unwanted and resting": func(c *child) { c.state, c.wanted = resting, false },
	} {
		s := New(words.NewDice(1))
		s.Begin(new(event.Effects))
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(&s.children[words.ChildAdmin])
		if err := s.Check(); err == nil || err.Error() != "S1: admin" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

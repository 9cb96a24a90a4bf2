package supervisor

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/event"
	"macronode/core/types"
)

func TestHashForgetsNothing(t *testing.T) {
	s := New(types.NewRand(1))
	hashcoverage.Every(t, &s, func() types.Hash64 { return s.HashInto(0) })
}

// TestCheckFinds: S1, in both directions.
func TestCheckFinds(t *testing.T) {
	for name, spoil := range map[string]func(*service){
		"wanted and down":      func(c *service) { c.state = down },
		"unwanted and resting": func(c *service) { c.state, c.wanted = backingOff, false },
	} {
		s := New(types.NewRand(1))
		s.Start(new(event.Effects))
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(&s.services[types.ServiceAdmin])
		if err := s.Check(); err == nil || err.Error() != "S1: admin" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package objectstore

import (
	"errors"
	"fmt"
	"testing"

	"macronode/adapters/provider"
)

// stuck is a provider that removes nothing while it is set.
type stuck struct {
	provider.Port
	is      bool
	removed int
}

func (s *stuck) Remove(string) error {
	if s.is {
		return errors.New("it is stuck")
	}
	s.removed++
	return nil
}

// TestLeftoversAreFew: files that cannot be removed are removed later, but no more of them are remembered than the limit.
func TestLeftoversAreFew(t *testing.T) {
	p, l := &stuck{is: true}, leftovers{}
	for i := range maxLeftovers + 10 {
		l.remove(p, fmt.Sprint(i))
	}
	if l.clear(p); len(l.names) != maxLeftovers { // they still cannot be removed
		t.Errorf("%d are remembered", len(l.names))
	}
	p.is = false
	if l.clear(p); len(l.names) != 0 || p.removed != maxLeftovers {
		t.Errorf("%d are remembered, %d removed", len(l.names), p.removed)
	}
}

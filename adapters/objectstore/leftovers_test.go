package objectstore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"macronode/adapters/provider"
)

// stuck is a provider that removes nothing while it is set.
type stuck struct {
	provider.Port
	is      bool
	forbids string // a name that it does not remove
	removed int
	tried   []string
}

func (s *stuck) Remove(name string) error {
	s.tried = append(s.tried, name)
	if s.is {
		return errors.New("it is stuck")
	}
	if name == s.forbids {
		return errors.Join(provider.ErrUnavailable, os.ErrPermission)
	}
	s.removed++
	return nil
}

// TestLeftoversAreFew: files that cannot be removed are removed later, but no more of them are remembered than the limit.
func TestLeftoversAreFew(t *testing.T) {
	p, l := &stuck{is: true}, leftovers{}
	for i := range maxLeftovers + 10 {
		_ = l.remove(p, fmt.Sprint(i))
	}
	if l.clear(p); len(l.names) != maxLeftovers { // they still cannot be removed
		t.Errorf("%d are remembered", len(l.names))
	}
	p.is = false
	if l.clear(p); len(l.names) != 0 || p.removed != maxLeftovers {
		t.Errorf("%d are remembered, %d removed", len(l.names), p.removed)
	}
}

// TestForbiddenRemovalOfLeftovers: after a removal that a bucket forbids, the others wait for the next call, which begins with them.
func TestForbiddenRemovalOfLeftovers(t *testing.T) {
	p, l := &stuck{is: true}, leftovers{}
	for _, name := range []string{"a", "b", "c", "d"} {
		_ = l.remove(p, name)
	}
	p.is, p.forbids = false, "b"
	for _, want := range [][]string{{"a", "b"}, {"c", "d", "b"}, {"b"}} {
		p.tried = nil
		if l.clear(p); !slices.Equal(p.tried, want) {
			t.Errorf("%q were tried, want %q", p.tried, want)
		}
	}
	p.forbids = ""
	if l.clear(p); len(l.names) > 0 || p.removed != 4 {
		t.Errorf("%d are remembered, %d removed", len(l.names), p.removed)
	}
}

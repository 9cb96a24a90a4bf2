// Package words is tidy: what it does, a pure layer may do.
package types

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	wait "time"
)

type Tenant uint32

var ErrLost = errors.New("lost")

var _ fmt.Stringer = Tenant(0)

const half = 1.0 / 2 // known when it is compiled

func (t Tenant) String() string { return fmt.Sprint(uint32(t)) }

func Tidy(m map[string]int, d wait.Duration) []string {
	if d.Milliseconds() > int64(half*20) || d > 2*wait.Second {
		return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return len(a) - len(b) })
	}
	return slices.Sorted(maps.Keys(m))
}

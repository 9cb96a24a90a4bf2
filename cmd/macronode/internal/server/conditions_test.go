package server

import (
	"testing"

	"macronode/core/types"
)

// TestWhy: the log describes why a node is not ready.
func TestWhy(t *testing.T) {
	set := func(all ...types.Condition) (s types.Conditions) {
		for _, c := range all {
			s = s.With(c)
		}
		return s
	}
	for want, c := range map[string]types.Conditions{"": set(), "disk_full": set(types.DiskFull), "key,sampler,start_timeout": set(types.StartTimeout, types.DependencyKey, types.DependencySampler)} {
		if got := joinConditions(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package admit_test

import (
	"testing"

	"macronode/ci/takes"
	"macronode/core/admit"
)

// TestBytes: a house takes what it says, of each of its limits.
func TestBytes(t *testing.T) {
	routes, places := limits(), limits()
	routes.Routes, places.Places = make([]int, 1_000_000), 100_000
	for name, l := range map[string]admit.Limits{"routes": routes, "places": places} {
		takes.Says(t, name, admit.Bytes(l), func() admit.Admit { return admit.New(l, 1) })
	}
}

package admission_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/gateway/admission"
)

// TestBytes: a house takes what it says, of each of its limits.
func TestBytes(t *testing.T) {
	routes, places := limits(), limits()
	routes.Routes, places.Places = make([]int, 1_000_000), 100_000
	for name, l := range map[string]admission.Limits{"routes": routes, "places": places} {
		memcheck.Says(t, name, admission.Bytes(l), func() admission.Admit { return admission.New(l, 1) })
	}
}

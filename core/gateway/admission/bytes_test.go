package admission_test

import (
	"testing"

	"macronode/ci/memcheck"
	"macronode/core/event"
	"macronode/core/gateway/admission"
)

// TestBytes: admission takes the memory that Bytes returns, for each limit.
func TestBytes(t *testing.T) {
	routes, places := limits(), limits()
	routes.Routes, places.Places = make([]event.RouteLimits, 1_000_000), 100_000
	for name, l := range map[string]admission.Limits{"routes": routes, "places": places} {
		memcheck.Check(t, name, admission.Bytes(l), func() admission.Admit { return admission.New(l, 1) })
	}
}

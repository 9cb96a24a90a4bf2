//go:build examples

package settings

import (
	"macronode/adapters/plane"
	counter "macronode/examples/counter/adapter"
)

// examples returns the planes of a build with the tag examples.
func examples() plane.All { return plane.All{counter.Description()} }

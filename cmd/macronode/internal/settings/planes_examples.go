//go:build examples

package settings

import (
	"macronode/adapters/plane"
	"macronode/examples/counternode"
)

// examples returns the planes of a build with the tag examples.
func examples() plane.All { return plane.All{counternode.Description()} }

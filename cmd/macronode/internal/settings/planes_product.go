//go:build !examples

package settings

import "macronode/adapters/plane"

// examples returns the planes of a build with the tag examples: the product has none.
func examples() plane.All { return nil }

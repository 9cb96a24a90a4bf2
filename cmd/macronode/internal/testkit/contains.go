package testkit

import (
	"strings"
)

// ContainsAll reports whether a text contains all of some strings.
func ContainsAll(text string, all []string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}

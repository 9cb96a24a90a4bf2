package lanes

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// TestHashCoversEveryField of a lane, and of a tenant.
func TestHashCoversEveryField(t *testing.T) {
	var l lane
	hashcoverage.Every(t, &l, func() types.Hash64 { return l.hashInto(1) })
	var of tenant
	hashcoverage.Every(t, &of, func() types.Hash64 { return of.hashInto(1) })
}

package export

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

// TestHashCoversEveryField: two states that differ have different hashes.
func TestHashCoversEveryField(t *testing.T) {
	l, r, k, n := lane{cursor: 3, rows: 2, due: 1}, row{at: 1, status: 400, reason: types.ExportTooLarge}, rowKey{types.LaneID{Tenant: 1, ID: types.NameHash{1}}, 3}, tenant{1, 2}
	hashcoverage.Every(t, &l, func() types.Hash64 { return l.HashInto(0) }, "first: the order of its rows")
	hashcoverage.Every(t, &r, func() types.Hash64 { return r.HashInto(0) })
	hashcoverage.Every(t, &k, func() types.Hash64 { return k.HashInto(0) })
	hashcoverage.Every(t, &n, func() types.Hash64 { return n.HashInto(0) })
}

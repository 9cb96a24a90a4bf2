// Package share is the rule by which tenants share a table, so that none of them fills it.
package share

// Left returns how many more entries a tenant may have that has some, if a table has room for so many. It may be negative.
//
// A limit is that of the tenant; the table may have less room. Without one, for 0, the tenant leaves room: it gets another entry only
// while it has fewer than are left. So alone it gets half of the table, the next tenant a quarter, and each one that has none yet
// gets an entry until the last one is taken.
func Left(limit, has, room int) int {
	if limit > 0 {
		return limit - has
	}
	return max(0, (room-has+1)/2)
}

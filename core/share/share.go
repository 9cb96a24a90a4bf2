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

// MayGrow reports whether a tenant that has some entries gets another one, if there is room for so many. It leaves room as in Left, but has a
// weight, at least 1: it counts as so many tenants that leave room. So it has at most weight times what it leaves to others, and leaves one at
// least. A tenant that has none gets the last one.
func MayGrow(weight, has, room int) bool { return has <= weight*(room-1) }

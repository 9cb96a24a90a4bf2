package objectstore

import "macronode/core/storage"

// fitsGroup reports whether the whole content is in the buffer, and its files are new. A repair and a copy may replace a file, which only a
// draft can.
func (u *Upload) fitsGroup() bool {
	return u.written == 0 && !u.replaces && !u.scheme.IsSet() && (u.stripe == nil || u.stripe.full == 0)
}

// sumSmall returns the address of a content of one group. Store writes it: a file that is made under its name needs no draft and no
// rename. Creating, writing and naming a file are then one transaction of the file system.
func (u *Upload) sumSmall() storage.Address {
	u.tree.Add(u.content(), u.addNode)
	u.isSmall = true
	return storage.Address(u.tree.Sum(u.addNode))
}

// writeSmall writes a content of one group. A crash may leave any part of it under its name: no row names that file, and the collector
// removes it.
func (u *Upload) writeSmall() {
	group := u.content()
	if u.err == nil && u.beginWrite(len(group), len(group)) {
		u.writeGroup(group)
		u.filled = 0
	}
}

//go:build !linux

package fs

// RenameNew renames a file to a name that must be new; os.ErrExist if it is not. Another process may take the name between the
// check and the rename.
func (d Dir) RenameNew(from, to string) error { return d.renameChecked(from, to) }

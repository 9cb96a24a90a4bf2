package fs

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// RenameNew renames a file to a name that must be new; os.ErrExist if it is not. On a file system without such a call, another
// process may take the name between the check and the rename.
func (d Dir) RenameNew(from, to string) error {
	err := again(func() error {
		return unix.Renameat2(unix.AT_FDCWD, d.path(from), unix.AT_FDCWD, d.path(to), unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) {
		return d.renameChecked(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: d.path(from), New: d.path(to), Err: err}
	}
	return nil
}

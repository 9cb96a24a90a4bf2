package fs

import (
	"fmt"
	"syscall"
)

// OpenFiles returns how many files this process may have open at once, connections and directories included: RLIMIT_NOFILE. The Go runtime
// has raised it to the hard limit.
func OpenFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("fs: limit of open files: %w", err)
	}
	return l.Cur, nil
}

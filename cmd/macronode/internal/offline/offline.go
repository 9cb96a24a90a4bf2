// Package offline has the tools for a data directory: verify, backup and restore. They need no running node; a backup asks one for its
// last durable frame.
package offline

import (
	"context"
	"io"

	"macronode/adapters/backup"
	"macronode/adapters/journalfile"
	"macronode/adapters/nodedir"
	"macronode/core/types"
)

// Env is what the tools use of the program that runs them.
type Env struct {
	Version string    // of the program, for lock files
	Out     io.Writer // for the list of unreadable objects

	Progress   func(journalfile.Progress) // of a verification; nil: not shown
	Copied     func(backup.Done)          // progress of a copy of a journal; nil: not shown
	Objects    Meter                      // progress of a copy of objects
	Unreadable func(error)                // why the watermark of the index cannot be read

	// Running returns the last durable frame of a running node, and whether its journal is damaged.
	Running func(context.Context, nodedir.Run) (upto types.LSN, damaged bool, err error)
}

// Meter shows the progress of a copy of objects, in bytes.
type Meter interface {
	Begin(total int64)
	Add(n int64)
	End()
}

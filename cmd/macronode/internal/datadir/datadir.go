// Package datadir has the layout of a data directory, and what it records beside the journal: the
// frames known to be durable.
package datadir

import "macronode/core/types"

// The directories in a data directory.
const (
	Journal   = "journal"
	Restoring = "journal.restoring" // of a restore that is not complete
	Snapshots = "snapshots"
	Index     = "index"
	Objects   = "objects"
)

// ObjectBatch is the number of object rows that are read at once.
const ObjectBatch = 4096

// NewJournalID returns a random id for a new journal.
func NewJournalID() types.JournalID { return types.JournalID(Random64()) }

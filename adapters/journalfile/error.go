package journalfile

import (
	"errors"
	"fmt"
	"syscall"

	"macronode/core/event"
	"macronode/core/types"
)

var (
	// ErrDamaged says that the journal lost what was durable. It is a *Damage.
	ErrDamaged = errors.New("journal: damaged before its durable end")
	// ErrFormat says that this program is too old for the journal, or the files are
	// not a journal.
	ErrFormat = errors.New("journal: of a format that this program does not know")
	// ErrGone says that a frame is not there to be read: not durable, or moved away.
	ErrGone = errors.New("journal: no such frame")

	// ErrApart says that the journal does not go on from where a reading was to begin: an
	// earlier place may do, or its beginning.
	ErrApart = errors.New("journal: does not go on from there")

	// ErrCut reports that the open segment was shortened by another program.
	ErrCut = errors.New("journal: shortened by another program")

	// ErrReplaced reports that another program put another file in the place of the open segment.
	ErrReplaced = errors.New("journal: replaced by another program")

	errClosed = errors.New("journal: closed")
)

// Damage is where a journal does not check, though something later in it, or the
// next segment, vouches for what was there.
type Damage struct {
	Segment  string // the file
	Offset   int64
	From, To types.LSN // the frames that cannot be read
	Why      string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("journal: %s is damaged at byte %d, frames %v to %v: %s", d.Segment, d.Offset, d.From, d.To, d.Why)
}

// Is makes every Damage ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }

// Error is how the disk failed. The journal takes nothing after it.
type Error struct {
	Fault event.Fault
	Doing string
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("journal: %s: %v", e.Doing, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// FaultOf is which fault an error of Write, Sync or Recover is; what is none of the
// disk's counts as a failed write.
func FaultOf(err error) event.Fault {
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return failed.Fault
	}
	return event.WriteFailed
}

// failing wraps err, if it is one. Whatever failed, no space is no space.
func failing(fault event.Fault, doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		fault = event.NoSpace
	}
	return &Error{fault, doing, err}
}

// missing is why a journal cannot be read from its first frame.
const missing = "segments before it are missing, here and in the archive, where one is named (journal.archive)"

package journalfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"macronode/core/event"
	"macronode/core/types"
)

var (
	// ErrDamaged reports that the journal lost durable frames. It is a *Damage.
	ErrDamaged = errors.New("journal: damaged before its durable end")
	// ErrFormat reports a journal of a later format, or files that are not a journal.
	ErrFormat = errors.New("journal: unknown format")
	// ErrGone reports a frame that cannot be read: it is not durable, or its segment was moved
	// away.
	ErrGone = errors.New("journal: no such frame")

	// ErrApart reports that the journal does not continue from the start of a reading: an earlier
	// position may work, or the beginning.
	ErrApart = errors.New("journal: does not continue from the given position")

	// ErrCut reports that the open segment was shortened by another program.
	ErrCut = errors.New("journal: shortened by another program")

	// ErrReplaced reports that another program put another file in the place of the open segment.
	ErrReplaced = errors.New("journal: replaced by another program")

	errClosed = errors.New("journal: closed")
)

// Damage is a place where a journal is invalid although something later, in it or in the next
// segment, proves that the place was durable.
type Damage struct {
	Segment  string // the file
	Offset   int64
	From, To types.LSN // the frames that cannot be read
	Why      string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("journal: %s is damaged at byte %d, frames %v to %v: %s", d.Segment, d.Offset, d.From, d.To, d.Why)
}

// Is reports that a Damage is ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }

// endsEarly sets what is missing where a segment has no more data: the segment after it if that is gone. Nothing
// shows whether the last segment had a successor: its removal leaves no other trace.
func (d *Damage) endsEarly(gap string, isLast bool) {
	switch {
	case gap != "":
		d.Segment, d.Offset, d.Why = gap, 0, absent
	case isLast:
		number, _ := strconv.ParseUint(strings.TrimSuffix(d.Segment, suffix), 10, 32)
		d.Why = "the data ends here: the end of this segment or " + segmentName(uint32(number)+1) + " is missing"
	default:
		d.Why = "the data ends here"
	}
}

// Error is a failure of the disk. After it, the journal rejects writes.
type Error struct {
	Fault event.Fault
	Doing string
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("journal: %s: %v", e.Doing, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// FaultOf returns the fault of an error of Write, Sync or Recover; an error that is not from the
// disk counts as a failed write.
func FaultOf(err error) event.Fault {
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return failed.Fault
	}
	return event.WriteFailed
}

// failing wraps err unless it is nil. A full disk is NoSpace in any operation.
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

// unfit is why a segment is not read that does not continue the one before it.
const unfit = "it does not follow the segment before it"

// unwritten is why a frame of a segment is not read that its writer did not write.
const unwritten = "its group is not of the process that wrote the segment, or the header of the group is damaged and nothing leads to the frame"

// absent is why the frames of a segment cannot be read that is not there, although those before and after it are.
const absent = "it is missing, here and in the archive, where one is named (journal.archive)"

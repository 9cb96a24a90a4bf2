package journalfile

import (
	"errors"

	"macronode/core/record"
	"macronode/core/types"
)

// Chain returns the journal ID of a durable frame and the root after it; false if there is no
// such frame. Any goroutine may call Chain and Range.
func (j *Journal) Chain(lsn types.LSN) (types.JournalID, types.Root, bool, error) {
	f, err := j.Read(lsn)
	if errors.Is(err, ErrGone) {
		return 0, types.Root{}, false, nil
	}
	return f.Journal, f.Root, err == nil, err
}

// Range yields the durable frames from one on, in order, until the last one or until each returns
// an error, which Range returns.
func (j *Journal) Range(from types.LSN, each func(record.Sealed) error) error {
	durable, behind := j.Durable(), From{}
	if from > durable {
		return nil
	}
	if from > 1 {
		f, err := j.Read(from - 1)
		if err != nil {
			return err
		}
		behind = From{LSN: f.LSN, Root: f.Root, Journal: f.Journal}
	}
	_, err := Reading{From: behind, Upto: durable, Each: func(all []record.Sealed) error {
		for _, f := range all {
			if err := each(f); err != nil {
				return err
			}
		}
		return nil
	}}.Scan(j.fs)
	return err
}

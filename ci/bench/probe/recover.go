package main

import (
	"errors"
	"fmt"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/ci/bench/sample"
	"macronode/core/record"
	"macronode/core/state"
)

// write makes a journal of so many frames, for others to recover.
func write(dir string, accounts, frames int) (r sample.Sample, err error) {
	began, used := time.Now(), cpu()
	j, _, err := journalfile.Recover(fs.Dir(dir), 9, nil)
	if err != nil {
		return r, err
	}
	st := state.New(limits(accounts, frames, 24*time.Hour), 1)
	if err := errors.Join(fill(j, &st, accounts, frames), j.Close()); err != nil {
		return r, err
	}
	bytes, err := size(fs.Dir(dir))
	n := uint64(frames)
	return sample.Sample{All: n, Counted: n, Over: n, Took: time.Since(began), CPU: cpu() - used, Bytes: float64(bytes) / float64(n)}, err
}

// recovers times what a start does: read and check on one core, fold on the other,
// give the follower its copy, write the tail anew.
func recovers(dir string, accounts, frames int) (r sample.Sample, err error) {
	l := limits(accounts, frames, 24*time.Hour)
	began, used := time.Now(), cpu()
	st, followed := state.New(l, 1), state.New(l, 2)
	read, folded := make(chan []record.Sealed, 4), make(chan error, 1)
	go func() { folded <- fold(&st, read) }()
	j, found, err := journalfile.Recover(fs.Dir(dir), 9, func(all []record.Sealed) error {
		read <- all
		return nil
	})
	close(read)
	if err := errors.Join(err, <-folded); err != nil {
		return r, err
	}
	st.CopyTo(&followed)
	r = sample.Sample{Took: time.Since(began), CPU: cpu() - used, All: uint64(found.Last), Counted: uint64(found.Last), Over: uint64(found.Last)}
	if int(found.Last) != frames || followed.Hash() != st.Hash() {
		return r, errors.Join(fmt.Errorf("found %v of %d frames", found.Last, frames), j.Close())
	}
	return r, j.Close()
}

func fold(st *state.State, read <-chan []record.Sealed) (err error) {
	for all := range read {
		for i := range all {
			if err == nil {
				err = st.Fold(all[i].Body, nil)
			}
		}
	}
	return err
}

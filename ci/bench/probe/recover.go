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

// recovers measures a start: reading and checking on one core, folding on the other, copying the
// state for the read model, and rewriting the tail.
func recovers(w writing) (r sample.Sample, err error) {
	l := limits(w.accounts, w.window, 24*time.Hour)
	began, used := time.Now(), cpu()
	st, followed := state.New(l, 1), state.New(l, 2)
	read, folded := make(chan []record.Sealed, 4), make(chan error, 1)
	go func() { folded <- fold(&st, read) }()
	j, found, err := journalfile.Recover(fs.Dir(w.dir), 9, func(all []record.Sealed) error {
		read <- all
		return nil
	})
	close(read)
	if err := errors.Join(err, <-folded); err != nil {
		return r, err
	}
	st.CopyTo(&followed)
	r = sample.Sample{Took: time.Since(began), CPU: cpu() - used, All: uint64(found.Last), Counted: uint64(found.Last), Over: uint64(found.Last)}
	if int(found.Last) != w.frames+1 || followed.Hash() != st.Hash() {
		return r, errors.Join(fmt.Errorf("found %v of %d frames", found.Last, w.frames+1), j.Close())
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// verified is what a whole journal says of itself.
type verified struct {
	OK       bool   `json:"ok"`
	Journal  string `json:"journal"`
	Frames   uint64 `json:"frames"`
	Known    uint64 `json:"known_durable"`
	Root     string `json:"root"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Cut      uint64 `json:"torn_tail_bytes"`
	Moved    uint64 `json:"movements"`
	Refused  uint64 `json:"kept_refusals"`
	Keys     uint64 `json:"api_keys"`
	Accounts int    `json:"accounts"`
}

// verify reads a journal on which no node runs: the chain and every checksum, the
// order of frames and of time, each movement against the state before it, and at the
// end that all money adds up. It changes nothing.
func verify(ctx context.Context, cfg *config.Config, out io.Writer, asJSON bool) error {
	dir := fs.Dir(filepath.Join(cfg.Data, segmentsName))
	if _, err := os.Stat(string(dir)); err != nil {
		return cannot(fmt.Errorf("there is no journal in %s", cfg.Data))
	}
	lock, err := fs.Lock(fs.Dir(cfg.Data), thisBuild().Version)
	if err != nil {
		return cannot(err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	st := state.New(stateLimits(cfg), 1)
	v := verified{}
	found, err := journalfile.Scan(dir, func(all []record.Sealed) error {
		for i := range all {
			if err := v.frame(&st, &all[i]); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	}, nil)
	if err = errors.Join(err, v.whole(&st)); err != nil {
		return errors.Join(v.broken(out, asJSON, found.Last, err), fmt.Errorf("verify: %w", err))
	}
	v.OK, v.Frames, v.Known, v.Root = true, uint64(found.Last), uint64(found.Known), fmt.Sprintf("%x", found.Root)
	v.Journal, v.Segments, v.Bytes, v.Cut = fmt.Sprintf("%016x", uint64(found.Recovery.Journal)), found.Segments, found.Bytes, found.Recovery.Cut
	v.Accounts = st.Ledger.Accounts()
	return v.tell(out, asJSON)
}

// broken says for scripts where a journal is damaged.
func (v *verified) broken(out io.Writer, asJSON bool, last words.LSN, err error) error {
	if !asJSON {
		return nil
	}
	d := &journalfile.Damage{}
	errors.As(err, &d)
	raw, e := json.Marshal(struct {
		OK      bool   `json:"ok"`
		Error   string `json:"error"`
		Whole   uint64 `json:"whole_frames"`
		Segment string `json:"segment,omitzero"`
		Offset  int64  `json:"offset,omitzero"`
		From    uint64 `json:"from_lsn,omitzero"`
		To      uint64 `json:"to_lsn,omitzero"`
	}{false, err.Error(), uint64(last), d.Segment, d.Offset, uint64(d.From), uint64(d.To)})
	if e == nil {
		_, e = fmt.Fprintf(out, "%s\n", raw)
	}
	return e
}

// frame folds one frame, and holds each movement to what was there before it.
func (v *verified) frame(st *state.State, s *record.Sealed) error {
	var wrong error
	err := st.Fold(s.Body, func(p words.Place, r *record.Record) {
		switch r.Kind {
		case record.Moved:
			v.Moved++
			if why := st.Ledger.Follows(r); why != nil && wrong == nil {
				wrong = fmt.Errorf("%v: %w", p, why)
			}
		case record.Refused:
			v.Refused++
		case record.KeyMade:
			v.Keys++
		case record.Booted, record.Forgot, record.Restored:
		}
	})
	if errors.Is(err, state.ErrRoom) {
		return fmt.Errorf("%w: wallet.limits, wallet.idempotency.keys and api_keys must be at least what they were", err)
	}
	return errors.Join(err, wrong)
}

// whole checks what only the end can tell: that nothing was created or destroyed.
func (v *verified) whole(st *state.State) error { return st.Check() }

func (v *verified) tell(out io.Writer, asJSON bool) error {
	if asJSON {
		raw, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", raw)
		}
		return err
	}
	_, err := fmt.Fprintf(out, "journal %s is whole: %d frames in %d segments (%d bytes), %d movements, %d kept refusals, %d accounts; root %s\n",
		v.Journal, v.Frames, v.Segments, v.Bytes, v.Moved, v.Refused, v.Accounts, v.Root)
	if err == nil && v.Cut > 0 {
		_, err = fmt.Fprintf(out, "a torn tail of %d bytes was never acknowledged; the next start gives it up\n", v.Cut)
	}
	return err
}

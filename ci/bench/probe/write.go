package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/adapters/snapshot"
	"macronode/ci/bench/ask"
	"macronode/ci/bench/sample"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// writing describes a journal that is made for other measurements.
type writing struct {
	filling
	dir    string // of its segments
	window int    // keys that fit into the node's window
	tail   int    // frames after the snapshot in the next directory; negative: no snapshot
	asks   int    // number of evicted keys to be repeated
	file   string // file for them
}

// write writes a journal.
func (w writing) write() (r sample.Sample, err error) {
	began, used := time.Now(), cpu()
	j, _, err := journalfile.Recover(fs.Dir(w.dir), 9, nil)
	if err != nil {
		return r, err
	}
	st := state.New(limits(w.accounts, w.window, 24*time.Hour), 1)
	if err := errors.Join(w.fill(j, &st), j.Close()); err != nil {
		return r, err
	}
	bytes, err := size(fs.Dir(w.dir))
	n := uint64(w.frames)
	return sample.Sample{All: n, Counted: n, Over: n, Took: time.Since(began), CPU: cpu() - used, Bytes: float64(bytes) / float64(n)}, err
}

func (w writing) fill(j *journalfile.Journal, st *state.State) (err error) {
	if w.asks > 0 {
		f, err := os.Create(w.file)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		defer func() { err = errors.Join(err, out.Flush(), f.Close()) }()
		p := picking{every: uint64(max(1, (w.frames-w.window/2)/w.asks)), left: w.asks, dice: types.NewRand(1), to: out}
		w.seen = p.pick
	}
	l, err := newFiller(j, st, w.filling)
	if err != nil {
		return err
	}
	if w.tail >= 0 {
		if err := l.to(w.frames - w.tail); err != nil {
			return err
		}
		if err := sum(filepath.Join(filepath.Dir(w.dir), "snapshots"), st, l.last); err != nil {
			return err
		}
	}
	return l.to(w.frames)
}

// sum writes a snapshot of a state, as of the last frame.
func sum(dir string, st *state.State, last record.Sealed) error {
	to, err := fs.Make(dir)
	if err != nil {
		return err
	}
	_, err = snapshot.Write(to, snapshot.Head{LSN: last.LSN, At: st.At, Journal: last.Journal, Root: last.Root}, st, nil)
	return err
}

// picking takes one random frame per stretch, and stores its request.
type picking struct {
	every uint64
	left  int
	dice  types.Rand
	to    *bufio.Writer
	next  uint64 // the next taken frame, from 0
	from  uint64 // start of the current stretch
	begun bool
}

func (p *picking) pick(all []record.Sealed) error {
	for i := range all {
		if all[i].LSN < 2 || p.left == 0 { // the first frame is that of the start
			continue
		}
		at := uint64(all[i].LSN) - 2
		if !p.begun || at == p.from+p.every {
			p.begun, p.from, p.next = true, at, at+p.dice.Uint64n(p.every)
		}
		if at != p.next {
			continue
		}
		p.left--
		a, err := asked(&all[i])
		if err == nil {
			err = ask.Write(p.to, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// asked returns the request of a frame, and its receipt.
func asked(s *record.Sealed) (a ask.Ask, err error) {
	var r record.Record
	if _, err := record.Read(s.Body, 0, &r); err != nil {
		return a, err
	}
	answer, status, _, err := receipt.Render(nil, s, 0)
	if err != nil || status != 200 {
		return a, fmt.Errorf("%v is answered %d: %w", s.LSN, status, err)
	}
	from, nonce := "", ""
	if r.Op == event.Transfer {
		from, nonce = fmt.Sprintf(`"from":%q,`, r.From.Text), fmt.Sprintf(`,"nonce":%d`, r.Nonce)
	}
	body := fmt.Sprintf(`{%s"to":%q,"asset":%q,"amount_minor":"%s"%s}`, from, r.To.Text, r.Asset.Text, r.Amount.Append(nil), nonce)
	return ask.Ask{Path: "/v1/" + r.Op.String(), Key: string(r.Key.Text), Body: body, Answer: string(answer)}, nil
}

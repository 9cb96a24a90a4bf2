package main

import (
	"fmt"
	"strconv"
	"time"

	"macronode/adapters/journalfile"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// filling describes the content of a journal: first an issue to each account, then transfers, one
// outcome per frame. Keys are evicted as on a node whose index keeps up.
type filling struct {
	accounts int
	payers   int           // the first of them pay in turn, each to the next account
	frames   int           // in all
	span     time.Duration // the frames' times cover this span up to now; 0: the time of writing
	seen     func([]record.Sealed) error
}

// filler writes a journal as fast as possible.
type filler struct {
	filling
	journal *journalfile.Journal
	state   *state.State
	done    int           // frames, without the one of the node's start
	last    record.Sealed // the last durable frame
	began   time.Time

	arena   []byte
	batch   []event.Frame
	nonce   []types.Nonce
	scratch []byte
	texts   [3][]byte // payer, payee, key
}

// newFiller begins a journal as a node does.
func newFiller(j *journalfile.Journal, st *state.State, f filling) (*filler, error) {
	if f.payers == 0 {
		f.payers = f.accounts
	}
	l := &filler{filling: f, journal: j, state: st, began: time.Now(), nonce: make([]types.Nonce, f.accounts)}
	l.open()
	l.add(&record.Record{Kind: record.Started, Journal: j.ID()})
	l.close()
	return l, l.flush()
}

// to continues until a number of frames are durable.
func (l *filler) to(frames int) error {
	for ; l.done < frames; l.done++ {
		if err := l.next(); err != nil {
			return fmt.Errorf("frame %d: %w", l.done, err)
		}
		if len(l.batch) == maxBatch {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return l.flush()
}

// next makes a frame.
func (l *filler) next() error {
	r := l.request()
	l.scratch = r.Seal(l.scratch)
	rec := record.Record{Kind: record.Posted, Op: r.Op, Tenant: r.Tenant, Key: r.Key, Hash: r.Hash,
		From: r.From, To: r.To, Asset: r.Asset, Amount: r.Amount, Nonce: r.Nonce}
	l.open()
	if why := l.state.Wallet.Ledger.Decide(l.state.At, &rec); why != event.None {
		return fmt.Errorf("refused: %s", why.Code())
	}
	l.add(&rec)
	if upto, any := l.state.Idempotency.Evictable(l.state.At, l.journal.Durable(), types.MaxForgottenPerRequest); any {
		l.add(&record.Record{Kind: record.KeysForgotten, Upto: upto})
	}
	l.close()
	return nil
}

// request returns the request of the next frame.
func (l *filler) request() (r event.Request) {
	r = event.Request{Header: command.Header{Tenant: types.DefaultTenant}, Item: event.Item{Op: event.Issue, Amount: types.MinorUnits(grant)}}
	if i := l.done - l.accounts; i < 0 {
		l.texts[1] = account(l.texts[1][:0], l.done)
	} else {
		at := i % l.payers
		l.nonce[at]++
		l.texts[0], l.texts[1] = account(l.texts[0][:0], at), account(l.texts[1][:0], (at+1)%l.accounts)
		r.Op, r.From.Text, r.Amount, r.Nonce = event.Transfer, l.texts[0], types.MinorUnits(7), l.nonce[at]
	}
	l.texts[2] = strconv.AppendInt(append(l.texts[2][:0], "fill-"...), int64(l.done), 10)
	r.To.Text, r.Key.Text, r.Asset.Text = l.texts[1], l.texts[2], []byte(asset)
	return r
}

func (l *filler) open() {
	at := types.Time(time.Now().UnixMilli())
	if l.span > 0 {
		ago := l.span * time.Duration(l.frames-l.done) / time.Duration(l.frames)
		at = types.Time(l.began.Add(-ago).UnixMilli())
	}
	l.state.Open(l.state.LSN+1, max(at, l.state.At))
	l.batch = append(l.batch, event.Frame{LSN: l.state.LSN, Off: uint32(len(l.arena))})
	l.arena = record.Begin(l.arena, l.state.LSN, l.state.At)
}

func (l *filler) add(r *record.Record) {
	var index uint16
	l.arena, index = record.Add(l.arena, l.batch[len(l.batch)-1].Off, r)
	l.state.Apply(index, r)
}

func (l *filler) close() {
	f := &l.batch[len(l.batch)-1]
	f.Len = uint32(len(l.arena)) - f.Off
}

// flush syncs the written frames.
func (l *filler) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	sealed, err := l.journal.Write(l.arena, l.batch)
	if err != nil {
		return err
	}
	if _, err := l.journal.Sync(); err != nil {
		return err
	}
	l.arena, l.batch, l.last = l.arena[:0], l.batch[:0], sealed[len(sealed)-1]
	if l.seen != nil {
		return l.seen(sealed)
	}
	return nil
}

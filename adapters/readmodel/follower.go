// Package readmodel is the second fold: it knows durable frames only, and answers
// whatever decides nothing.
//
//	durable frames ─► Fold ─► balances, keys, the recent frames ─► Render, Balance, Find
//	                                      └─ older frames: from the segments
package readmodel

import (
	"context"
	"sync"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// Older reads a durable frame that has left memory. Where there is none, its error is
// receipt.ErrNone; any other says that the disk failed.
type Older func(types.LSN) (record.Sealed, error)

// Follower folds and answers. Its lock is held for no longer than a fold of one
// frame or one look-up.
type Follower struct {
	older Older

	mu     sync.RWMutex
	state  state.State
	recent recent
	aside  aside
	moved  chan struct{} // closed at the next fold, when somebody waits for it
	waits  int
	room   int // for those who wait
}

// New follows on from s, keeps so many frames at hand and lets so many wait. Frames that
// are longer than a record are fewer: see Bytes.
func New(s state.State, keep, waiters int, older Older) *Follower {
	return &Follower{older: older, state: s, recent: newRecent(keep), room: waiters}
}

// Fold takes in frames that are durable, in order.
func (f *Follower) Fold(batch []record.Sealed) error {
	for _, s := range batch {
		if err := f.fold(s); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
	return nil
}

func (f *Follower) fold(s record.Sealed) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.state.Fold(s.Body, nil); err != nil {
		return err
	}
	f.recent.keep(s)
	return nil
}

// Begin follows on from what recovery folded, in the place of what New was given.
func (f *Follower) Begin(s *state.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.CopyTo(&f.state)
}

// Keep remembers a frame that was folded elsewhere: recovery's.
func (f *Follower) Keep(s record.Sealed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent.keep(s)
}

// Mark is how far the follower has folded.
func (f *Follower) Mark() types.LSN {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.LSN
}

// Last is the newest frame that it has at hand, and its time; of none, if no frame came since
// the start.
func (f *Follower) Last() (s record.Sealed, at types.Time) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if s = *f.recent.at(f.state.LSN); s.LSN != f.state.LSN {
		return record.Sealed{}, 0
	}
	return s, f.state.At
}

// Journal names the journal that is followed.
func (f *Follower) Journal() types.JournalID {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Journal
}

// Bootstrapped reports that the node's own first key is durable.
func (f *Follower) Bootstrapped() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Keys.Bootstrapped()
}

// Find returns an API key.
func (f *Follower) Find(id types.KeyID) (event.Key, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Keys.Find(id)
}

// Render is the answer that the record at p is, with its HTTP status and whose it
// is: receipt.ErrNone when there is none, another error when it cannot be read.
func (f *Follower) Render(to []byte, p types.Position) (answer []byte, status int, owner types.Tenant, err error) {
	s, err := f.frame(p.LSN)
	if err != nil {
		return to, 0, 0, err
	}
	return f.state.Render(to, &s, p.Index)
}

// frame is a durable frame, also one that is not folded because what comes before it
// cannot be read: from memory, or from the segments.
func (f *Follower) frame(lsn types.LSN) (record.Sealed, error) {
	f.mu.RLock()
	s := *f.recent.at(lsn)
	f.mu.RUnlock()
	if s.LSN == lsn && lsn > 0 {
		return s, nil
	}
	if lsn == 0 || f.older == nil {
		return record.Sealed{}, receipt.ErrNoAnswer
	}
	return f.aside.get(lsn, f.older)
}

// Balance is what an account has of an asset. Reserved accounts are readable: what
// was issued counts below nothing, what was burned is there.
func (f *Follower) Balance(t types.Tenant, account, asset []byte) (b event.Balance) {
	name, kind := digest.Name(account), digest.Name(asset)
	of, own := types.ReservedAsset(account)
	f.mu.RLock()
	defer f.mu.RUnlock()
	b.AsOf, b.At, b.NextNonce = f.state.Wallet.Seq(t), f.state.At, 1
	switch {
	case own && string(of) != string(asset):
	case own:
		issued, burned := f.state.Wallet.Supply(t, kind)
		b.Negative = account[0] == types.Issuance[0]
		if b.Amount = burned; b.Negative {
			b.Amount = issued
			b.Negative = !issued.IsZero()
		}
		b.Available = b.Amount
	default:
		b.Amount, b.Held, b.NextNonce = f.state.Wallet.Balance(f.state.At, t, name, kind)
		b.Available, _ = b.Amount.Sub(b.Held)
	}
	return b
}

// AwaitSeq waits until a tenant's movement is folded; false when ctx ends first, or
// too many wait already.
func (f *Follower) AwaitSeq(ctx context.Context, t types.Tenant, seq types.Seq) bool {
	for {
		moved, done := f.next(t, seq)
		if done {
			return true
		}
		if moved == nil {
			return false
		}
		select {
		case <-moved:
			f.leave()
		case <-ctx.Done():
			f.leave()
			return false
		}
	}
}

// next is closed when there is more; nil when there is no room to wait.
func (f *Follower) next(t types.Tenant, seq types.Seq) (moved chan struct{}, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Wallet.Seq(t) >= seq {
		return nil, true
	}
	if f.waits >= f.room {
		return nil, false
	}
	f.waits++
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	return f.moved, false
}

func (f *Follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits--
}

// Hash identifies what the follower believes, to be held against the node.
func (f *Follower) Hash() types.Hash64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Hash()
}

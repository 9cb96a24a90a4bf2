// Package readmodel is the second fold of the journal: it has durable frames only, and answers
// reads that decide nothing.
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

// Older reads a durable frame that is not in memory. If there is none, its error is
// receipt.ErrNoAnswer; any other error is a failure of the disk.
type Older func(types.LSN) (record.Sealed, error)

// Follower folds and answers. Its lock is held for at most the fold of one frame, or one look-up.
type Follower struct {
	older Older

	mu     sync.RWMutex
	state  state.State
	recent recent
	aside  aside
	moved  chan struct{} // closed at the next fold, if a reader waits
	waits  int
	room   int // free places for waiting readers
}

// New returns a follower that continues from s, keeps some frames in memory, and limits waiting
// readers. If frames are longer than a record, fewer are kept: see Bytes.
func New(s state.State, keep, waiters int, older Older) *Follower {
	return &Follower{older: older, state: s, recent: newRecent(keep), room: waiters}
}

// Fold folds durable frames in order.
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

// Begin replaces the state by the one that recovery folded.
func (f *Follower) Begin(s *state.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.CopyTo(&f.state)
}

// Keep stores a frame that recovery folded.
func (f *Follower) Keep(s record.Sealed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent.keep(s)
}

// Mark returns the last folded frame.
func (f *Follower) Mark() types.LSN {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.LSN
}

// Last returns the newest frame in memory, and the time of the state; a zero frame if no frame
// was folded since the start.
func (f *Follower) Last() (s record.Sealed, at types.Time) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if s = *f.recent.at(f.state.LSN); s.LSN != f.state.LSN {
		return record.Sealed{}, 0
	}
	return s, f.state.At
}

// Journal returns the ID of the journal.
func (f *Follower) Journal() types.JournalID {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Journal
}

// Bootstrapped reports whether the bootstrap key is durable.
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

// Render appends the answer of the record at p and returns its HTTP status and tenant. It returns
// receipt.ErrNoAnswer if there is none, and other errors if it cannot be read.
func (f *Follower) Render(to []byte, p types.Position) (answer []byte, status int, owner types.Tenant, err error) {
	s, err := f.frame(p.LSN)
	if err != nil {
		return to, 0, 0, err
	}
	return f.state.Render(to, &s, p.Index)
}

// frame returns a durable frame from memory or from the segments, even if it could not be folded
// because of damage before it.
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

// Balance returns the balance of an account in an asset. Reserved accounts can be read: the
// issuance account is negative.
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

// AwaitSeq waits until a movement of a tenant is folded; false if ctx ends first, or too many
// readers wait.
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

// next returns a channel that is closed at the next fold; nil if too many readers wait.
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

// Hash identifies the state, for comparison with that of the node.
func (f *Follower) Hash() types.Hash64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Hash()
}

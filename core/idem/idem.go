// Package idem remembers what became of idempotency keys and refs, so that asking
// again is safe. It keeps the recent ones; the index has those that came before.
//
//	index, asked after F was read ──► Fresh: F ≥ forgot ──► Look: held, or what the index says, or new
//	new ──Remember──► held ──Forget, once the index has it──► in the index, a key until its time is over
package idem

import (
	"errors"
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/table"
	"macronode/core/words"
)

// Why a key gets no outcome.
var (
	ErrConflict = errors.New("idem: asked for something else") // use another key
	ErrFull     = errors.New("idem: full")                     // come back when the index has caught up
	ErrShare    = errors.New("idem: share used up")            // this tenant's own keys must leave first
)

// Limits are how much a window takes.
type Limits struct {
	Keys    int // and refs, held at once
	Share   int // of them, by one tenant
	Tenants int
	TTL     time.Duration // of a key, from the frame of its outcome; a ref is for ever
	Trail   time.Duration // a key is held for so long at least: longer than any request is on its way
}

// A Key is a caller's name for one intention, within its tenant; a ref is its name
// for what came of it.
type Key struct {
	Tenant words.Tenant
	Name   words.ID
	Ref    bool
}

// Mix is h after all of k.
func (k Key) Mix(h words.Hash64) words.Hash64 { return k.Name.Mix(k.Tenant.Mix(h)).MixBit(k.Ref) }

type count uint32

func (c count) Mix(h words.Hash64) words.Hash64 { return h.Mix(uint64(c)) }

// Window holds the keys and refs of all frames after forgot.
//
// Invariants:
//
//	I1  a key is held if and only if a frame after forgot has its outcome
//	I2  keys are held in the order of their frames
//	I3  each tenant's count is the number of its keys (a share is for what comes: it may
//	    have been larger when these came)
//	I4  what is forgotten is no younger than what is held
type Window struct {
	limits Limits
	forgot words.LSN
	last   words.Time // of the youngest key that was forgotten
	keys   table.Fifo[Key, event.Seen]
	shares table.Table[words.Tenant, count]
}

// New is an empty window.
func New(l Limits, seed words.Hash64) Window {
	return Window{limits: l, keys: table.NewFifo[Key, event.Seen](l.Keys, seed),
		shares: table.New[words.Tenant, count](l.Tenants, seed)}
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	return table.FifoBytes[Key, event.Seen](l.Keys) + table.Bytes[words.Tenant, count](l.Tenants)
}

// Len is how many keys are held.
func (w *Window) Len() int { return w.keys.Len() }

// Forgot is the last frame whose keys are not held; Aged reports that some of them may
// still be in their time, so that the index must be asked.
func (w *Window) Forgot() words.LSN              { return w.forgot }
func (w *Window) Aged(at words.Time) bool        { return w.forgot > 0 && w.lives(w.last, at) }
func (w *Window) lives(born, at words.Time) bool { return born.Plus(w.limits.TTL) > at }

// Fresh reports that an index that held all frames ≤ upto before it was asked for a
// key, and perhaps for refs, knows all that the window does not. This one compare
// is what keeps a key to one effect.
func (w *Window) Fresh(upto words.LSN, at words.Time, refs bool) bool {
	return upto >= w.forgot || !refs && !w.Aged(at)
}

// Find is the outcome of k, which the index knows as was; found is false when k is new.
func (w *Window) Find(k Key, was event.Seen, at words.Time) (s event.Seen, found bool) {
	if s, found = w.keys.Get(k); !found && was.ID.Place().LSN > 0 && w.lives(was.At, at) {
		s, found = was, true
	}
	return s, found
}

// Tight reports that less than an eighth of the room is left.
func (w *Window) Tight() bool { return w.keys.Room() < w.limits.Keys/8 }

// Look is Find for those who ask something. A key that asks for something else than it
// did is in conflict, and keeps its outcome.
func (w *Window) Look(k Key, asked words.Asked, was event.Seen, at words.Time) (id words.TxID, found bool, err error) {
	s, found := w.Find(k, was, at)
	if found && s.Asked != asked {
		return s.ID, true, ErrConflict
	}
	return s.ID, found, nil
}

// Used finds who has a ref, which the index knows as was.
func (w *Window) Used(k Key, was words.TxID) (id words.TxID, used bool) {
	if s, held := w.keys.Get(k); held {
		return s.ID, true
	}
	return was, was.Place().LSN > 0
}

// Admit says why so many new keys and refs of t cannot be held. None leaves before its
// time to make room for another.
func (w *Window) Admit(t words.Tenant, more int) error {
	switch n, _ := w.shares.Get(t); {
	case !w.Fits(t, more):
		return ErrFull
	case int(n)+more > w.limits.Share:
		return ErrShare
	}
	return nil
}

// Fits reports that there are rows for so many more keys and refs of t.
func (w *Window) Fits(t words.Tenant, more int) bool {
	_, known := w.shares.Find(t)
	return w.keys.Room() >= more && (known || w.shares.Room() > 0)
}

// Remember holds the outcome of a key that was new and admitted.
func (w *Window) Remember(k Key, s event.Seen) {
	words.Assert(s.ID.Place().LSN > w.forgot, "idem: remembers what is forgotten")
	w.keys.Push(k, s)
	n, _ := w.shares.Get(k.Tenant)
	w.shares.Put(k.Tenant, n+1)
}

// Mark is where the window stands; Undo takes back all that was remembered since.
func (w *Window) Mark() (m Mark) { return Mark{w.keys.Len(), w.shares.Len()} }
func (w *Window) Undo(m Mark) {
	for w.keys.Len() > m.keys {
		k, _ := w.keys.Row(w.keys.Len() - 1)
		w.keys.Unpush()
		w.drop(k.Tenant)
	}
	for w.shares.Len() > m.shares {
		w.shares.Unput()
	}
}

// A Mark is a state of the window to come back to.
type Mark struct{ keys, shares int }

// Spare is how far the window may forget at a time: frames that the index holds, which
// has them ≤ indexed, and whose keys have been held for the trail; of those, what is
// over its time, or more than half of what there is room for.
func (w *Window) Spare(at words.Time, indexed words.LSN, most int) (upto words.LSN, any bool) {
	for i := range min(most, w.keys.Len()) {
		_, s := w.keys.Row(i)
		lsn := s.ID.Place().LSN
		needless := !w.lives(s.At, at) || w.keys.Len()-i > w.limits.Keys/2
		if lsn > indexed || s.At.Plus(w.limits.Trail) > at || !needless {
			break
		}
		upto, any = lsn, true
	}
	return upto, any
}

// Forget drops the keys of all frames ≤ upto.
func (w *Window) Forget(upto words.LSN) {
	for w.keys.Len() > 0 {
		k, s := w.keys.Row(0)
		if s.ID.Place().LSN > upto {
			break
		}
		w.keys.Pop()
		w.drop(k.Tenant)
		w.last = max(w.last, s.At)
	}
	w.forgot = max(w.forgot, upto)
}

func (w *Window) drop(t words.Tenant) {
	n, _ := w.shares.Get(t)
	w.shares.Put(t, n-1)
}

// Hash identifies what is held.
func (w *Window) Hash() words.Hash64 {
	return w.keys.Hash().Mix(uint64(w.shares.Hash())).Mix(uint64(w.forgot)).Mix(uint64(w.last))
}

// CopyTo overwrites dst, reusing its memory.
func (w *Window) CopyTo(dst *Window) {
	dst.limits, dst.forgot, dst.last = w.limits, w.forgot, w.last
	w.keys.CopyTo(&dst.keys)
	w.shares.CopyTo(&dst.shares)
}

// Check returns the first invariant that does not hold.
func (w *Window) Check() error {
	if err := errors.Join(w.keys.Check(), w.shares.Check()); err != nil {
		return fmt.Errorf("idem: %w", err)
	}
	last, held := w.forgot, make([]count, w.shares.Len())
	for i := range w.keys.Len() {
		k, s := w.keys.Row(i)
		at := s.ID.Place()
		switch {
		case at.LSN <= w.forgot:
			return fmt.Errorf("I1: %v is held, and forgotten to %v", at, w.forgot)
		case at.LSN < last:
			return fmt.Errorf("I2: %v after %v", at, last)
		case s.At < w.last:
			return fmt.Errorf("I4: held of %d, forgotten to %d", s.At, w.last)
		}
		last = at.LSN
		place, ok := w.shares.Find(k.Tenant)
		if !ok {
			return fmt.Errorf("I3: tenant %d holds a key and has no count", k.Tenant)
		}
		held[place]++
	}
	for i := range held {
		if t, n := w.shares.Row(uint32(i)); n != held[i] {
			return fmt.Errorf("I3: tenant %d: counted %d, held %d", t, n, held[i])
		}
	}
	return nil
}

// Package idempotency remembers what became of idempotency keys and refs, so that asking
// again is safe. It keeps the recent ones; the index has those that came before.
//
//	index, asked after F was read ──► Fresh: F ≥ forgot ──► Look: held, or what the index says, or new
//	new ──Remember──► held ──Forget, once the index has it──► in the index, a key until its time is over
package idempotency

import (
	"errors"
	"fmt"
	"time"

	"macronode/core/command"
	"macronode/core/table"
	"macronode/core/types"
)

// Why a key gets no outcome.
var (
	ErrConflict    = errors.New("idempotency: asked for something else") // use another key
	ErrFull        = errors.New("idempotency: full")                     // come back when the index has caught up
	ErrTenantLimit = errors.New("idempotency: share used up")            // this tenant's own keys must leave first
)

// Limits are how much a window takes.
type Limits struct {
	Keys         int // and refs, held at once
	PerTenant    int // of them, by one tenant
	Tenants      int
	TTL          time.Duration // of a key, from the frame of its outcome; a ref is for ever
	MinRetention time.Duration // a key is held for so long at least: longer than any request is on its way
}

// A Key is a caller's name for one intention, within its tenant; a ref is its name
// for what came of it.
type Key struct {
	Tenant types.Tenant
	Name   types.NameHash
	Ref    bool
}

// HashInto is h after all of k.
func (k Key) HashInto(h types.Hash64) types.Hash64 {
	return k.Name.HashInto(k.Tenant.HashInto(h)).MixBool(k.Ref)
}

type keyCount uint32

func (c keyCount) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(c)) }

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
	limits          Limits
	forgottenTo     types.LSN
	newestForgotten types.Time // of the youngest key that was forgotten
	keys            table.Fifo[Key, command.PriorOutcome]
	tenants         table.Table[types.Tenant, keyCount]
}

// New is an empty window.
func New(l Limits, seed types.Hash64) Window {
	return Window{limits: l, keys: table.NewFifo[Key, command.PriorOutcome](l.Keys, seed),
		tenants: table.New[types.Tenant, keyCount](l.Tenants, seed)}
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	return table.FifoBytes[Key, command.PriorOutcome](l.Keys) + table.Bytes[types.Tenant, keyCount](l.Tenants)
}

// Len is how many keys are held.
func (w *Window) Len() int { return w.keys.Len() }

// ForgottenTo is the last frame whose keys are not held; Aged reports that some of them may
// still be in their time, so that the index must be asked.
func (w *Window) ForgottenTo() types.LSN { return w.forgottenTo }
func (w *Window) MayHaveForgotten(at types.Time) bool {
	return w.forgottenTo > 0 && w.isLive(w.newestForgotten, at)
}
func (w *Window) isLive(born, at types.Time) bool { return born.Add(w.limits.TTL) > at }

// IndexReadIsFresh reports that an index that held all frames ≤ upto before it was asked for a
// key, and perhaps for refs, knows all that the window does not. This one compare
// is what keeps a key to one effect.
func (w *Window) IndexReadIsFresh(upto types.LSN, at types.Time, refs bool) bool {
	return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)
}

// Find is the outcome of k, which the index knows as was; found is false when k is new.
func (w *Window) Find(k Key, was command.PriorOutcome, at types.Time) (s command.PriorOutcome, found bool) {
	if s, found = w.keys.Get(k); !found && was.ID.Position().LSN > 0 && w.isLive(was.At, at) {
		s, found = was, true
	}
	return s, found
}

// NearlyFull reports that less than an eighth of the room is left.
func (w *Window) NearlyFull() bool { return w.keys.Room() < w.limits.Keys/8 }

// Resolve is Find for those who ask something. A key that asks for something else than it
// did is in conflict, and keeps its outcome.
func (w *Window) Resolve(k Key, asked types.RequestHash, was command.PriorOutcome, at types.Time) (id types.TxID, found bool, err error) {
	s, found := w.Find(k, was, at)
	if found && s.Hash != asked {
		return s.ID, true, ErrConflict
	}
	return s.ID, found, nil
}

// FindRef finds who has a ref, which the index knows as was.
func (w *Window) FindRef(k Key, was types.TxID) (id types.TxID, used bool) {
	if s, held := w.keys.Get(k); held {
		return s.ID, true
	}
	return was, was.Position().LSN > 0
}

// Admit says why so many new keys and refs of t cannot be held. None leaves before its
// time to make room for another.
func (w *Window) Admit(t types.Tenant, more int) error {
	switch n, _ := w.tenants.Get(t); {
	case !w.Fits(t, more):
		return ErrFull
	case int(n)+more > w.limits.PerTenant:
		return ErrTenantLimit
	}
	return nil
}

// Fits reports that there are rows for so many more keys and refs of t.
func (w *Window) Fits(t types.Tenant, more int) bool {
	_, known := w.tenants.Find(t)
	return w.keys.Room() >= more && (known || w.tenants.Room() > 0)
}

// Remember holds the outcome of a key that was new and admitted.
func (w *Window) Remember(k Key, s command.PriorOutcome) {
	types.Assert(s.ID.Position().LSN > w.forgottenTo, "idempotency: remembers what is forgotten")
	w.keys.Push(k, s)
	n, _ := w.tenants.Get(k.Tenant)
	w.tenants.Put(k.Tenant, n+1)
}

// Savepoint is where the window stands; Undo takes back all that was remembered since.
func (w *Window) Savepoint() (m Savepoint) { return Savepoint{w.keys.Len(), w.tenants.Len()} }
func (w *Window) Undo(m Savepoint) {
	for w.keys.Len() > m.keys {
		k, _ := w.keys.Row(w.keys.Len() - 1)
		w.keys.DropNewest()
		w.drop(k.Tenant)
	}
	for w.tenants.Len() > m.tenants {
		w.tenants.DropLast()
	}
}

// A Savepoint is a state of the window to come back to.
type Savepoint struct{ keys, tenants int }

// Evictable is how far the window may forget at a time: frames that the index holds, which
// has them ≤ indexed, and whose keys have been held for the trail; of those, what is
// over its time, or more than half of what there is room for.
func (w *Window) Evictable(at types.Time, indexed types.LSN, most int) (upto types.LSN, any bool) {
	for i := range min(most, w.keys.Len()) {
		_, s := w.keys.Row(i)
		lsn := s.ID.Position().LSN
		needless := !w.isLive(s.At, at) || w.keys.Len()-i > w.limits.Keys/2
		if lsn > indexed || s.At.Add(w.limits.MinRetention) > at || !needless {
			break
		}
		upto, any = lsn, true
	}
	return upto, any
}

// Forget drops the keys of all frames ≤ upto.
func (w *Window) Forget(upto types.LSN) {
	for w.keys.Len() > 0 {
		k, s := w.keys.Row(0)
		if s.ID.Position().LSN > upto {
			break
		}
		w.keys.Pop()
		w.drop(k.Tenant)
		w.newestForgotten = max(w.newestForgotten, s.At)
	}
	w.forgottenTo = max(w.forgottenTo, upto)
}

func (w *Window) drop(t types.Tenant) {
	n, _ := w.tenants.Get(t)
	w.tenants.Put(t, n-1)
}

// Hash identifies what is held.
func (w *Window) Hash() types.Hash64 {
	return w.keys.Hash().Mix(uint64(w.tenants.Hash())).Mix(uint64(w.forgottenTo)).Mix(uint64(w.newestForgotten))
}

// CopyTo overwrites dst, reusing its memory.
func (w *Window) CopyTo(dst *Window) {
	dst.limits, dst.forgottenTo, dst.newestForgotten = w.limits, w.forgottenTo, w.newestForgotten
	w.keys.CopyTo(&dst.keys)
	w.tenants.CopyTo(&dst.tenants)
}

// Check returns the first invariant that does not hold.
func (w *Window) Check() error {
	if err := errors.Join(w.keys.Check(), w.tenants.Check()); err != nil {
		return fmt.Errorf("idempotency: %w", err)
	}
	last, held := w.forgottenTo, make([]keyCount, w.tenants.Len())
	for i := range w.keys.Len() {
		k, s := w.keys.Row(i)
		at := s.ID.Position()
		switch {
		case at.LSN <= w.forgottenTo:
			return fmt.Errorf("I1: %v is held, and forgotten to %v", at, w.forgottenTo)
		case at.LSN < last:
			return fmt.Errorf("I2: %v after %v", at, last)
		case s.At < w.newestForgotten:
			return fmt.Errorf("I4: held of %d, forgotten to %d", s.At, w.newestForgotten)
		}
		last = at.LSN
		place, ok := w.tenants.Find(k.Tenant)
		if !ok {
			return fmt.Errorf("I3: tenant %d holds a key and has no count", k.Tenant)
		}
		held[place]++
	}
	for i := range held {
		if t, n := w.tenants.Row(uint32(i)); n != held[i] {
			return fmt.Errorf("I3: tenant %d: counted %d, held %d", t, n, held[i])
		}
	}
	return nil
}

// Package idem remembers what became of idempotency keys, each for its time to
// live, so that asking again is safe.
//
//	Look ──► new ──Remember──► held ──Forget, once its time is over──► gone
package idem

import (
	"errors"
	"fmt"
	"time"

	"macronode/core/table"
	"macronode/core/words"
)

// Why a key gets no outcome.
var (
	ErrConflict = errors.New("idem: asked for something else") // use another key
	ErrFull     = errors.New("idem: full")                     // come back when keys have expired
	ErrShare    = errors.New("idem: share used up")            // this tenant's own keys must expire first
)

// Limits are how much a window takes. TTL counts from the frame of the outcome.
type Limits struct {
	Keys    int // held at once
	Share   int // of them, by one tenant
	Tenants int
	TTL     time.Duration
}

// A Key is a caller's name for one intention, within its tenant.
type Key struct {
	Tenant words.Tenant
	Name   words.ID
}

// Mix is h after all of k.
func (k Key) Mix(h words.Hash64) words.Hash64 { return k.Name.Mix(k.Tenant.Mix(h)) }

// Seen is the outcome of a key: what was asked, where its record is, and when.
type Seen struct {
	Asked words.Asked
	Place words.Place
	At    words.Time
}

// Mix is h after all of s.
func (s Seen) Mix(h words.Hash64) words.Hash64 { return s.Place.Mix(s.Asked.Mix(h)).Mix(uint64(s.At)) }

type count uint32

func (c count) Mix(h words.Hash64) words.Hash64 { return h.Mix(uint64(c)) }

// Window holds the keys of all frames after forgot.
//
// Invariants:
//
//	I1  a key is held if and only if a frame after forgot has its outcome
//	I2  keys are held in the order of their frames
//	I3  each tenant's count is the number of its keys (a share is for what comes: it may
//	    have been larger when these came)
type Window struct {
	limits Limits
	forgot words.LSN
	keys   table.Fifo[Key, Seen]
	shares table.Table[words.Tenant, count]
}

// New is an empty window.
func New(l Limits, seed words.Hash64) Window {
	return Window{limits: l, keys: table.NewFifo[Key, Seen](l.Keys, seed),
		shares: table.New[words.Tenant, count](l.Tenants, seed)}
}

// Bytes is the memory that New takes.
func Bytes(l Limits) int64 {
	return table.FifoBytes[Key, Seen](l.Keys) + table.Bytes[words.Tenant, count](l.Tenants)
}

// Len is how many keys are held.
func (w *Window) Len() int { return w.keys.Len() }

// Look finds the outcome of k; found is false when k is new. A key that asks for
// something else than it did is in conflict, and keeps its outcome.
func (w *Window) Look(k Key, asked words.Asked) (p words.Place, found bool, err error) {
	s, found := w.keys.Get(k)
	if found && s.Asked != asked {
		return s.Place, true, ErrConflict
	}
	return s.Place, found, nil
}

// Admit says why no new key of t can be held. No key leaves before its time to
// make room for another.
func (w *Window) Admit(t words.Tenant) error {
	switch n, _ := w.shares.Get(t); {
	case !w.Fits(t):
		return ErrFull
	case int(n) >= w.limits.Share:
		return ErrShare
	}
	return nil
}

// Fits reports that there is a row for another key of t.
func (w *Window) Fits(t words.Tenant) bool {
	_, known := w.shares.Find(t)
	return w.keys.Room() > 0 && (known || w.shares.Room() > 0)
}

// Remember holds the outcome of a key that was new and admitted.
func (w *Window) Remember(k Key, s Seen) {
	words.Assert(s.Place.LSN > w.forgot, "idem: remembers what is forgotten")
	w.keys.Push(k, s)
	n, _ := w.shares.Get(k.Tenant)
	w.shares.Put(k.Tenant, n+1)
}

// Expired is how far the window may forget at a time: frames whose keys have all
// had their time, a bounded number of them.
func (w *Window) Expired(at words.Time, most int) (upto words.LSN, any bool) {
	for i := range min(most, w.keys.Len()) {
		_, s := w.keys.Row(i)
		if s.At.Plus(w.limits.TTL) > at {
			break
		}
		upto, any = s.Place.LSN, true
	}
	return upto, any
}

// Forget drops the keys of all frames ≤ upto.
func (w *Window) Forget(upto words.LSN) {
	for w.keys.Len() > 0 {
		k, s := w.keys.Row(0)
		if s.Place.LSN > upto {
			break
		}
		w.keys.Pop()
		n, _ := w.shares.Get(k.Tenant)
		w.shares.Put(k.Tenant, n-1)
	}
	w.forgot = max(w.forgot, upto)
}

// Hash identifies what is held.
func (w *Window) Hash() words.Hash64 {
	return w.keys.Hash().Mix(uint64(w.shares.Hash())).Mix(uint64(w.forgot))
}

// CopyTo overwrites dst, reusing its memory.
func (w *Window) CopyTo(dst *Window) {
	dst.limits, dst.forgot = w.limits, w.forgot
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
		switch {
		case s.Place.LSN <= w.forgot:
			return fmt.Errorf("I1: %v is held, and forgotten to %v", s.Place, w.forgot)
		case s.Place.LSN < last:
			return fmt.Errorf("I2: %v after %v", s.Place, last)
		}
		last = s.Place.LSN
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

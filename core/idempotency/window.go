// Package idempotency stores the outcomes of idempotency keys and refs, so that a retry is safe. The window
// has the recent ones, the index the older ones.
//
//	index read at F ──► IndexReadIsFresh: F ≥ forgotten ──► Resolve: in the window, in the index, or new
//	new ──Remember──► in the window ──Forget, once it is indexed──► in the index, a key until its TTL
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
	ErrConflict    = errors.New("idempotency: used for another request") // the caller must use another key
	ErrFull        = errors.New("idempotency: full")                     // until the index has caught up
	ErrTenantLimit = errors.New("idempotency: share used up")            // until keys of this tenant are evicted
	ErrReserved    = errors.New("idempotency: the rest is reserved")     // for keys that are not of low priority
	ErrTooMany     = errors.New("idempotency: too many keys at once")    // for ever: the window has never so much room
)

// Limits are the limits of a window.
type Limits struct {
	Keys         int // keys and refs in the window
	PerTenant    int // keys and refs of one tenant
	Tenants      int
	TTL          time.Duration // of a key, from the frame of its outcome; a ref is permanent
	MinRetention time.Duration // a key stays for at least this time, which is longer than any request takes
}

// A Key identifies an idempotency key or a ref of a tenant.
type Key struct {
	Tenant types.Tenant
	Name   types.NameHash
	Ref    bool
}

// HashInto mixes k into h.
func (k Key) HashInto(h types.Hash64) types.Hash64 {
	return k.Name.HashInto(k.Tenant.HashInto(h)).MixBool(k.Ref)
}

type keyCount uint32

func (c keyCount) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(c)) }

// Window has the keys and refs of all frames after forgotten.
//
// Invariants:
//
//	I1  a key is in the window if and only if a frame after forgotten has its outcome
//	I2  keys are in the order of their frames
//	I3  the count of a tenant is the number of its keys (it may exceed a limit that was lowered)
//	I4  no evicted key is younger than a key in the window
type Window struct {
	limits          Limits
	forgottenTo     types.LSN
	newestForgotten types.Time // of the youngest evicted key
	keys            table.Fifo[Key, command.PriorOutcome]
	tenants         table.Table[types.Tenant, keyCount]
}

// New returns an empty window.
func New(l Limits, seed types.Hash64) Window {
	return Window{limits: l, keys: table.NewFifo[Key, command.PriorOutcome](l.Keys, seed),
		tenants: table.New[types.Tenant, keyCount](l.Tenants, seed)}
}

// Bytes returns the memory that New takes.
func Bytes(l Limits) int64 {
	return table.FifoBytes[Key, command.PriorOutcome](l.Keys) + table.Bytes[types.Tenant, keyCount](l.Tenants)
}

// Len returns the number of keys and refs.
func (w *Window) Len() int { return w.keys.Len() }

// ForgottenTo returns the last frame whose keys were evicted. MayHaveForgotten reports whether some of them
// may still be within their TTL, so that the index must be read.
func (w *Window) ForgottenTo() types.LSN { return w.forgottenTo }
func (w *Window) MayHaveForgotten(at types.Time) bool {
	return w.forgottenTo > 0 && w.isLive(w.newestForgotten, at)
}
func (w *Window) isLive(born, at types.Time) bool { return born.Add(w.limits.TTL) > at }

// IndexReadIsFresh reports whether an index that had reached upto before it was read has every key, and if
// refs is set every ref, that the window has evicted. This comparison guarantees one effect per key.
func (w *Window) IndexReadIsFresh(upto types.LSN, at types.Time, refs bool) bool {
	return upto >= w.forgottenTo || !refs && !w.MayHaveForgotten(at)
}

// Find returns the outcome of k; was is that of the index. found is false if k is new.
func (w *Window) Find(k Key, was command.PriorOutcome, at types.Time) (s command.PriorOutcome, found bool) {
	if s, found = w.keys.Get(k); !found && was.ID.Position().LSN > 0 && w.isLive(was.At, at) {
		s, found = was, true
	}
	return s, found
}

// NearlyFull reports whether less than an eighth of the window is free.
func (w *Window) NearlyFull() bool { return w.keys.Room() < w.limits.Keys/8 }

// Resolve is Find for a request. A key that was used for a different request is a conflict.
func (w *Window) Resolve(k Key, asked types.RequestHash, was command.PriorOutcome, at types.Time) (id types.TxID, found bool, err error) {
	s, found := w.Find(k, was, at)
	if found && s.Hash != asked {
		return s.ID, true, ErrConflict
	}
	return s.ID, found, nil
}

// FindRef returns what used a ref; was is that of the index.
func (w *Window) FindRef(k Key, was command.PriorOutcome) (s command.PriorOutcome, used bool) {
	if s, held := w.keys.Get(k); held {
		return s, true
	}
	return was, was.ID.Position().LSN > 0
}

// Admit returns why so many new keys and refs of t do not fit. No key is evicted early to make room.
func (w *Window) Admit(t types.Tenant, more int) error {
	switch n, _ := w.tenants.Get(t); {
	case !w.Fits(t, more):
		return ErrFull
	case int(n)+more > w.limits.PerTenant:
		return ErrTenantLimit
	}
	return nil
}

// AdmitLowPriority is Admit for keys that leave a quarter of the window, and of the limit of their tenant, to others.
func (w *Window) AdmitLowPriority(t types.Tenant, more int) error {
	n, _ := w.tenants.Get(t)
	switch {
	case more > MaxLowPriority(w.limits):
		return ErrTooMany
	case w.keys.Room()-more < quarter(w.limits.Keys):
		return ErrReserved
	case int(n)+more > w.limits.PerTenant-quarter(w.limits.PerTenant):
		return ErrTenantLimit
	}
	return w.Admit(t, more)
}

// MaxLowPriority returns how many keys AdmitLowPriority takes at once. Eviction leaves half of a window, so that the
// other half, without what is reserved, is all that is certain to become free.
func MaxLowPriority(l Limits) int {
	return min(l.Keys-l.Keys/2-quarter(l.Keys), l.PerTenant-quarter(l.PerTenant))
}

// quarter returns a quarter of n, rounded up.
func quarter(n int) int { return (n + 3) / 4 }

// Fits reports whether there are rows for so many more keys and refs of t.
func (w *Window) Fits(t types.Tenant, more int) bool {
	_, known := w.tenants.Find(t)
	return w.keys.Room() >= more && (known || w.tenants.Room() > 0)
}

// Remember stores the outcome of a new key that Admit has accepted.
func (w *Window) Remember(k Key, s command.PriorOutcome) {
	types.Assert(s.ID.Position().LSN > w.forgottenTo, "idempotency: remembers what is forgotten")
	w.keys.Push(k, s)
	n, _ := w.tenants.Get(k.Tenant)
	w.tenants.Put(k.Tenant, n+1)
}

// Savepoint returns the state of the window. Undo removes everything that was remembered since.
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

// A Savepoint is a state of the window that Undo returns to.
type Savepoint struct{ keys, tenants int }

// Evictable returns the last frame whose keys may be evicted: the index must have it (≤ indexed), and its keys
// must be older than MinRetention. Of those frames, keys beyond their TTL are evicted, and others if the
// window is more than half full.
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

// Forget evicts the keys of all frames ≤ upto.
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

// Hash identifies the content of the window.
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

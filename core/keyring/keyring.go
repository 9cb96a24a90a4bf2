// Package keyring knows who may do what.
//
//	Admit ──► Add ──► Allows · Find
package keyring

import (
	"encoding/binary"
	"errors"

	"macronode/core/event"
	"macronode/core/table"
	"macronode/core/words"
)

// ErrFull says that there is no room for another key.
var ErrFull = errors.New("keyring: full")

type grant struct {
	hash   [32]byte
	tenant words.Tenant
	scopes event.Scopes
	boot   bool
}

func (g grant) Mix(h words.Hash64) words.Hash64 {
	for i := 0; i < len(g.hash); i += 8 {
		h = h.Mix(binary.LittleEndian.Uint64(g.hash[i:]))
	}
	return g.tenant.Mix(h).Mix(uint64(g.scopes)).MixBit(g.boot)
}

// Ring holds API keys. An ID that was ever in it is never another key's.
//
// Invariants:
//
//	K1  at most one key is the node's own first one
type Ring struct {
	keys table.Table[words.KeyID, grant]
}

// New is an empty ring for limit keys.
func New(limit int, seed words.Hash64) Ring {
	return Ring{keys: table.New[words.KeyID, grant](limit, seed)}
}

// Bytes is the memory that New takes.
func Bytes(limit int) int64 { return table.Bytes[words.KeyID, grant](limit) }

// Find returns a key.
func (r *Ring) Find(id words.KeyID) (k event.Key, ok bool) {
	g, ok := r.keys.Get(id)
	return event.Key{ID: id, Tenant: g.tenant, Hash: g.hash, Scopes: g.scopes, Boot: g.boot}, ok
}

// Allows reports that a key of tenant t may do what needs scope.
func (r *Ring) Allows(id words.KeyID, t words.Tenant, scope event.Scopes) bool {
	g, ok := r.keys.Get(id)
	return ok && g.tenant == t && g.scopes&scope == scope
}

// Bootstrapped reports that the node has made its own first key.
func (r *Ring) Bootstrapped() bool {
	for i := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(i)); g.boot {
			return true
		}
	}
	return false
}

// Admit says why a new key cannot be added.
func (r *Ring) Admit() error {
	if r.keys.Room() == 0 {
		return ErrFull
	}
	return nil
}

// Add makes a key known.
func (r *Ring) Add(k event.Key) {
	_, known := r.keys.Find(k.ID)
	words.Assert(!known, "keyring: an id used twice")
	r.keys.Put(k.ID, grant{hash: k.Hash, tenant: k.Tenant, scopes: k.Scopes, boot: k.Boot})
}

// Hash identifies what the ring holds.
func (r *Ring) Hash() words.Hash64 { return r.keys.Hash() }

// CopyTo overwrites dst, reusing its memory.
func (r *Ring) CopyTo(dst *Ring) { r.keys.CopyTo(&dst.keys) }

// Check returns the first invariant that does not hold.
func (r *Ring) Check() error {
	own := 0
	for i := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(i)); g.boot {
			own++
		}
	}
	if own > 1 {
		return errors.New("K1: two keys are the first")
	}
	return r.keys.Check()
}

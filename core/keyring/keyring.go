// Package keyring knows who may do what.
//
//	Admit ──► Add ──► Allows · Permits ──Revoke, Disown, or its time is over──► nobody's, for ever
package keyring

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/table"
	"macronode/core/words"
)

// ErrFull says that there is no room for another key.
var ErrFull = errors.New("keyring: full")

// traits are the truths of a grant.
type traits uint8

const (
	boot    traits = 1 << iota // the node's own first key
	revoked                    // nobody's any more
	bounded                    // its cover has patterns: else nothing need be looked at
)

// grant is what every request asks of a key: with its ID, one cache line.
type grant struct {
	hash    [32]byte
	expires words.Time
	cover   words.Hash64 // the digest of what stands apart
	tenant  words.Tenant
	scopes  event.Scopes
	traits  traits
}

func (g grant) Mix(h words.Hash64) words.Hash64 {
	for i := 0; i < len(g.hash); i += 8 {
		h = h.Mix(binary.LittleEndian.Uint64(g.hash[i:]))
	}
	h = g.tenant.Mix(h).Mix(uint64(g.expires)).Mix(uint64(g.cover))
	return h.Mix(uint64(g.scopes)).Mix(uint64(g.traits))
}

func (g *grant) has(any traits) bool { return g.traits&any != 0 }

// lives reports that a key is somebody's of t.
func (g *grant) lives(at words.Time, t words.Tenant) bool {
	return !g.has(revoked) && (g.expires == 0 || at < g.expires) && g.tenant == t
}

// cover is what is asked of few keys. It never changes.
type cover struct {
	label            words.Label
	accounts, assets words.Patterns
}

const coverBytes = (1 + words.MaxLabel) + 2*(1+words.MaxPatterns)

func (c *cover) digest() words.Hash64 { return c.assets.Mix(c.accounts.Mix(c.label.Mix(0))) }

func (c *cover) bounds() bool { return !c.accounts.Any() || !c.assets.Any() }

// permits reports that c has the account of item and its asset. What names no asset
// wants all of them.
func (c *cover) permits(item *event.Item) bool {
	return words.Covers(&c.accounts, item.Mine().Text) &&
		(len(item.Asset.Text) == 0 && c.assets.Any() || len(item.Asset.Text) > 0 && words.Covers(&c.assets, item.Asset.Text))
}

// Ring holds API keys. An ID that was ever in it is never another key's, so that no
// key leaves.
//
// Invariants:
//
//	K1  at most one key that is not revoked is the node's own first one, and first finds it
//	K2  at the place of each grant stands its cover, whose digest it has
//	K3  a grant is bounded if and only if its cover has patterns
//	K4  the node's own first key is bounded by nothing, has no name, and never ends by itself
type Ring struct {
	keys   table.Table[words.KeyID, grant]
	covers []cover // of the same places
	first  uint32  // place of the node's own first key, and one; 0: there is none
}

// New is an empty ring for limit keys.
func New(limit int, seed words.Hash64) Ring {
	return Ring{keys: table.New[words.KeyID, grant](limit, seed), covers: make([]cover, 0, limit)}
}

// Bytes is the memory that New takes.
func Bytes(limit int) int64 {
	return table.Bytes[words.KeyID, grant](limit) + int64(limit)*coverBytes
}

// Len is how many keys there ever were, At one of them: they keep their places.
func (r *Ring) Len() int { return r.keys.Len() }
func (r *Ring) At(place int) event.Key {
	id, g := r.keys.Row(uint32(place))
	c := &r.covers[place]
	return event.Key{ID: id, Tenant: g.tenant, Hash: g.hash, Scopes: g.scopes, Boot: g.has(boot),
		Label: c.label, Accounts: c.accounts, Assets: c.assets, Expires: g.expires, Revoked: g.has(revoked)}
}

// Each yields the keys that t ever had, oldest first.
func (r *Ring) Each(t words.Tenant, yield func(event.Key) bool) {
	for place := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(place)); g.tenant == t && !yield(r.At(place)) {
			return
		}
	}
}

// Find returns a key, be it revoked or over.
func (r *Ring) Find(id words.KeyID) (k event.Key, ok bool) {
	place, ok := r.keys.Find(id)
	if !ok {
		return event.Key{ID: id}, false
	}
	return r.At(int(place)), true
}

// Allows reports that a key of tenant t may do what needs scope, of no matter which
// account and asset.
func (r *Ring) Allows(at words.Time, id words.KeyID, t words.Tenant, scope event.Scopes) bool {
	g, ok := r.keys.Get(id)
	return ok && g.lives(at, t) && g.scopes&scope == scope
}

// Permits reports that the caller's key covers all that in, which is sane, asks.
func (r *Ring) Permits(at words.Time, in *event.Request) bool {
	place, ok := r.keys.Find(in.Caller)
	if !ok {
		return false
	}
	_, g := r.keys.Row(place)
	if !g.lives(at, in.Tenant) {
		return false
	}
	for _, item := range in.Each {
		scope := item.Op.Scope()
		if scope == 0 || g.scopes&scope != scope || g.has(bounded) && !r.covers[place].permits(item) {
			return false
		}
	}
	return true
}

// Gives reports that the owner of a key may give k to somebody: it rules, it is for all
// accounts and assets, and it may do itself all that k may.
func (r *Ring) Gives(at words.Time, id words.KeyID, t words.Tenant, k *event.Key) bool {
	place, ok := r.keys.Find(id)
	if !ok || !r.Allows(at, id, t, event.MayAdmin|k.Scopes) {
		return false
	}
	_, g := r.keys.Row(place)
	return !g.has(bounded)
}

// Ruled reports that somebody has a key that can make others.
func (r *Ring) Ruled(at words.Time) bool {
	for place := range r.keys.Len() {
		id, g := r.keys.Row(uint32(place))
		if r.Allows(at, id, g.tenant, event.MayAdmin) {
			return true
		}
	}
	return false
}

// First is the node's own first key, unless there is none that is not revoked.
func (r *Ring) First() (k event.Key, any bool) {
	if r.first == 0 {
		return k, false
	}
	return r.At(int(r.first - 1)), true
}

// Bootstrapped reports that the node has a first key that is not revoked.
func (r *Ring) Bootstrapped() bool { return r.first > 0 }

// Admit says why a new key cannot be added.
func (r *Ring) Admit() error {
	if r.keys.Room() == 0 {
		return ErrFull
	}
	return nil
}

// Shares reports that a tenant may have another key: the last one is for a first key of
// the node's own, and of the rest no tenant but the default one has more than a quarter.
func (r *Ring) Shares(t words.Tenant) bool {
	has := 0
	for place := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(place)); g.tenant == t {
			has++
		}
	}
	all := r.keys.Len() + r.keys.Room()
	return r.keys.Room() > 1 && (t == words.DefaultTenant || has < max(1, all/4))
}

// Add makes a key known, whose ID nobody had before.
func (r *Ring) Add(k event.Key) {
	_, known := r.keys.Find(k.ID)
	words.Assert(!known, "keyring: an id used twice")
	c := cover{k.Label, k.Accounts, k.Assets}
	words.Assert(!k.Boot || c == cover{} && k.Expires == 0, "keyring: a first key that is not for all")
	g := grant{hash: k.Hash, expires: k.Expires, cover: c.digest(), tenant: k.Tenant, scopes: k.Scopes}
	if c.bounds() {
		g.traits |= bounded
	}
	if k.Revoked {
		g.traits |= revoked
	}
	if k.Boot {
		g.traits |= boot
	}
	place := r.keys.Put(k.ID, g)
	r.covers = append(r.covers, c)
	if k.Boot && !k.Revoked {
		r.first = place + 1
	}
}

// Revoke ends a key that is known; Disown all of them.
func (r *Ring) Revoke(id words.KeyID) {
	place, known := r.keys.Find(id)
	words.Assert(known, "keyring: revokes what nobody knows")
	r.revoke(place)
}

func (r *Ring) Disown() {
	for place := range r.keys.Len() {
		r.revoke(uint32(place))
	}
}

func (r *Ring) revoke(place uint32) {
	_, g := r.keys.Row(place)
	g.traits |= revoked
	r.keys.Set(place, g)
	if r.first == place+1 {
		r.first = 0
	}
}

// Hash identifies what the ring holds.
func (r *Ring) Hash() words.Hash64 { return r.keys.Hash() }

// CopyTo overwrites dst, reusing its memory.
func (r *Ring) CopyTo(dst *Ring) {
	r.keys.CopyTo(&dst.keys)
	if cap(dst.covers) != cap(r.covers) {
		dst.covers = make([]cover, 0, cap(r.covers))
	}
	dst.covers, dst.first = append(dst.covers[:0], r.covers...), r.first
}

// Check returns the first invariant that does not hold.
func (r *Ring) Check() error {
	if len(r.covers) != r.keys.Len() {
		return fmt.Errorf("K2: %d grants have %d covers", r.keys.Len(), len(r.covers))
	}
	first := uint32(0)
	for place := range uint32(r.keys.Len()) {
		id, g := r.keys.Row(place)
		c := &r.covers[place]
		own := g.has(boot) && !g.has(revoked)
		switch {
		case own && first > 0:
			return errors.New("K1: two keys are the first")
		case g.cover != c.digest():
			return fmt.Errorf("K2: key %016x has another's cover", uint64(id))
		case g.has(bounded) != c.bounds():
			return fmt.Errorf("K3: key %016x is bounded: %v, its cover says %v", uint64(id), g.has(bounded), c.bounds())
		case g.has(boot) && (g.expires != 0 || *c != cover{}):
			return fmt.Errorf("K4: key %016x is the first, and not for all", uint64(id))
		case own:
			first = place + 1
		}
	}
	if first != r.first {
		return fmt.Errorf("K1: the first key is at %d, and looked for at %d", first, r.first)
	}
	return r.keys.Check()
}

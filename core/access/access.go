// Package access stores API keys and decides what each permits.
//
//	Admit ──► Add ──► Allows, Authorizes ──Revoke, RevokeAll or expiry──► never valid again
package access

import (
	"encoding/binary"
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/table"
	"macronode/core/types"
)

// ErrFull reports that no further key fits.
var ErrFull = errors.New("access: full")

// traits are the flags of a grant.
type traits uint8

const (
	bootstrap  traits = 1 << iota // the bootstrap key
	revoked                       // revoked for ever
	restricted                    // its restriction has patterns; otherwise it is not read
)

// grant has the fields of a key that every request needs: with its ID, one cache line.
type grant struct {
	hash        [32]byte
	expires     types.Time
	restriction types.Hash64 // digest of the restriction
	tenant      types.Tenant
	scopes      event.Scopes
	traits      traits
}

func (g grant) HashInto(h types.Hash64) types.Hash64 {
	for i := 0; i < len(g.hash); i += 8 {
		h = h.Mix(binary.LittleEndian.Uint64(g.hash[i:]))
	}
	h = g.tenant.HashInto(h).Mix(uint64(g.expires)).Mix(uint64(g.restriction))
	return h.Mix(uint64(g.scopes)).Mix(uint64(g.traits))
}

func (g *grant) has(any traits) bool { return g.traits&any != 0 }

// isActive reports whether a key of tenant t is valid at a time.
func (g *grant) isActive(at types.Time, t types.Tenant) bool {
	return !g.has(revoked) && (g.expires == 0 || at < g.expires) && g.tenant == t
}

// restriction has the fields that few keys have. It never changes.
type restriction struct {
	label            types.Label
	accounts, assets types.Patterns
}

const restrictionBytes = (1 + types.MaxLabel) + 2*(1+types.MaxPatterns)

func (c *restriction) digest() types.Hash64 {
	return c.assets.HashInto(c.accounts.HashInto(c.label.HashInto(0)))
}

func (c *restriction) restricts() bool { return !c.accounts.CoversAll() || !c.assets.CoversAll() }

// permits reports whether c covers the account and the asset of item, and permits its ref. An item without an asset needs a key
// that covers all assets.
func (c *restriction) permits(item *event.Item) bool {
	return types.Covers(&c.accounts, item.AuthorizedAccount().Text) && c.permitsRef(item) &&
		(len(item.Asset.Text) == 0 && c.assets.CoversAll() || len(item.Asset.Text) > 0 && types.Covers(&c.assets, item.Asset.Text))
}

// permitsRef reports whether c permits the ref of item: if it has account patterns, a ref of charges is reserved.
func (c *restriction) permitsRef(item *event.Item) bool {
	return c.accounts.CoversAll() || !types.IsChargeRef(item.Ref.Text)
}

// Keys has all API keys. No key is ever removed, so that an ID never belongs to another key.
//
// Invariants:
//
//	K1  at most one bootstrap key is not revoked, and bootstrapAt is its place
//	K2  each grant has the digest of the restriction at its place
//	K3  a grant is restricted if and only if its restriction has patterns
//	K4  the bootstrap key has no restriction, no label and no expiry
type Keys struct {
	keys        table.Table[types.KeyID, grant]
	covers      []restriction // by the place of their grants
	bootstrapAt uint32        // place of the bootstrap key plus 1; 0: none
}

// New returns an empty table for limit keys.
func New(limit int, seed types.Hash64) Keys {
	return Keys{keys: table.New[types.KeyID, grant](limit, seed), covers: make([]restriction, 0, limit)}
}

// Bytes returns the memory that New takes.
func Bytes(limit int) int64 {
	return table.Bytes[types.KeyID, grant](limit) + int64(limit)*restrictionBytes
}

// Len returns the number of keys that were ever added, At the key at a place.
func (r *Keys) Len() int { return r.keys.Len() }
func (r *Keys) At(place int) event.Key {
	id, g := r.keys.Row(uint32(place))
	c := &r.covers[place]
	return event.Key{ID: id, Tenant: g.tenant, Hash: g.hash, Scopes: g.scopes, Bootstrap: g.has(bootstrap),
		Label: c.label, Accounts: c.accounts, Assets: c.assets, Expires: g.expires, Revoked: g.has(revoked)}
}

// Each yields all keys of t, including revoked ones, oldest first.
func (r *Keys) Each(t types.Tenant, yield func(event.Key) bool) {
	for place := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(place)); g.tenant == t && !yield(r.At(place)) {
			return
		}
	}
}

// Find returns a key, even if it is revoked or expired.
func (r *Keys) Find(id types.KeyID) (k event.Key, ok bool) {
	place, ok := r.keys.Find(id)
	if !ok {
		return event.Key{ID: id}, false
	}
	return r.At(int(place)), true
}

// EndOf returns when a key stops being valid: 0 if it is revoked. It returns false if the key is unknown or has no end.
func (r *Keys) EndOf(id types.KeyID) (end types.Time, ok bool) {
	g, known := r.keys.Get(id)
	switch {
	case !known:
		return 0, false
	case g.has(revoked):
		return 0, true
	}
	return g.expires, g.expires > 0
}

// Allows reports whether a key of tenant t has a scope, regardless of accounts and assets.
func (r *Keys) Allows(at types.Time, id types.KeyID, t types.Tenant, scope event.Scopes) bool {
	g, ok := r.keys.Get(id)
	return ok && g.isActive(at, t) && g.scopes&scope == scope
}

// Authorizes reports whether the caller's key covers every operation of in, which is valid.
func (r *Keys) Authorizes(at types.Time, in *event.Request) bool {
	place, ok := r.keys.Find(in.Caller)
	if !ok {
		return false
	}
	_, g := r.keys.Row(place)
	if !g.isActive(at, in.Tenant) {
		return false
	}
	for _, item := range in.Each {
		scope := item.Op.Scope()
		if scope == 0 || g.scopes&scope != scope || g.has(restricted) && !r.covers[place].permits(item) {
			return false
		}
	}
	return true
}

// RejectsRef reports whether the caller's key does not permit the ref of an operation of in, whatever else it covers.
func (r *Keys) RejectsRef(in *event.Request) bool {
	place, ok := r.keys.Find(in.Caller)
	if !ok {
		return false
	}
	for _, i := range in.Each {
		if !r.covers[place].permitsRef(i) {
			return true
		}
	}
	return false
}

// CanGrant reports whether a key may create k: it has the scope admin and all scopes of k, and no
// restriction.
func (r *Keys) CanGrant(at types.Time, id types.KeyID, t types.Tenant, k *event.Key) bool {
	place, ok := r.keys.Find(id)
	if !ok || !r.Allows(at, id, t, event.ScopeAdmin|k.Scopes) {
		return false
	}
	_, g := r.keys.Row(place)
	return !g.has(restricted)
}

// HasAdmin reports whether a valid key can create others.
func (r *Keys) HasAdmin(at types.Time) bool {
	for place := range r.keys.Len() {
		id, g := r.keys.Row(uint32(place))
		if r.Allows(at, id, g.tenant, event.ScopeAdmin) {
			return true
		}
	}
	return false
}

// Bootstrap returns the bootstrap key, if it is not revoked.
func (r *Keys) Bootstrap() (k event.Key, any bool) {
	if r.bootstrapAt == 0 {
		return k, false
	}
	return r.At(int(r.bootstrapAt - 1)), true
}

// Bootstrapped reports whether there is a bootstrap key that is not revoked.
func (r *Keys) Bootstrapped() bool { return r.bootstrapAt > 0 }

// Full reports whether there is no row for a further key.
func (r *Keys) Full() bool { return r.keys.Room() == 0 }

// Admit returns why a new key cannot be created: APIKeysFull or TenantAPIKeysFull. The last row is kept for a bootstrap key, and no tenant
// but the default one may have more than a quarter of all.
func (r *Keys) Admit(k *event.Key) event.Problem {
	room := r.keys.Room()
	quarter := max(1, (r.keys.Len()+room)/4)
	switch {
	case room == 0, room == 1 && !k.Bootstrap:
		return event.APIKeysFull
	case !k.Bootstrap && k.Tenant != types.DefaultTenant && r.countOf(k.Tenant) >= quarter:
		return event.TenantAPIKeysFull
	}
	return event.None
}

// countOf returns the number of keys that a tenant ever had.
func (r *Keys) countOf(t types.Tenant) (n int) {
	for place := range r.keys.Len() {
		if _, g := r.keys.Row(uint32(place)); g.tenant == t {
			n++
		}
	}
	return n
}

// Add adds a key with a new ID.
func (r *Keys) Add(k event.Key) {
	_, known := r.keys.Find(k.ID)
	types.Assert(!known, "access: an id used twice")
	c := restriction{k.Label, k.Accounts, k.Assets}
	types.Assert(!k.Bootstrap || c == restriction{} && k.Expires == 0, "access: a first key that is not for all")
	g := grant{hash: k.Hash, expires: k.Expires, restriction: c.digest(), tenant: k.Tenant, scopes: k.Scopes}
	if c.restricts() {
		g.traits |= restricted
	}
	if k.Revoked {
		g.traits |= revoked
	}
	if k.Bootstrap {
		g.traits |= bootstrap
	}
	place := r.keys.Put(k.ID, g)
	r.covers = append(r.covers, c)
	if k.Bootstrap && !k.Revoked {
		r.bootstrapAt = place + 1
	}
}

// Revoke revokes a known key, RevokeAll all keys.
func (r *Keys) Revoke(id types.KeyID) {
	place, known := r.keys.Find(id)
	types.Assert(known, "access: revokes an unknown key")
	r.revoke(place)
}

func (r *Keys) RevokeAll() {
	for place := range r.keys.Len() {
		r.revoke(uint32(place))
	}
}

func (r *Keys) revoke(place uint32) {
	_, g := r.keys.Row(place)
	g.traits |= revoked
	r.keys.Set(place, g)
	if r.bootstrapAt == place+1 {
		r.bootstrapAt = 0
	}
}

// Hash identifies all keys.
func (r *Keys) Hash() types.Hash64 { return r.keys.Hash() }

// CopyTo overwrites dst, reusing its memory.
func (r *Keys) CopyTo(dst *Keys) {
	r.keys.CopyTo(&dst.keys)
	if cap(dst.covers) != cap(r.covers) {
		dst.covers = make([]restriction, 0, cap(r.covers))
	}
	dst.covers, dst.bootstrapAt = append(dst.covers[:0], r.covers...), r.bootstrapAt
}

// Check returns the first invariant that does not hold.
func (r *Keys) Check() error {
	if len(r.covers) != r.keys.Len() {
		return fmt.Errorf("K2: %d grants have %d covers", r.keys.Len(), len(r.covers))
	}
	first := uint32(0)
	for place := range uint32(r.keys.Len()) {
		id, g := r.keys.Row(place)
		c := &r.covers[place]
		own := g.has(bootstrap) && !g.has(revoked)
		switch {
		case own && first > 0:
			return errors.New("K1: two keys are the first")
		case g.restriction != c.digest():
			return fmt.Errorf("K2: key %016x has another's cover", uint64(id))
		case g.has(restricted) != c.restricts():
			return fmt.Errorf("K3: key %016x is bounded: %v, its cover says %v", uint64(id), g.has(restricted), c.restricts())
		case g.has(bootstrap) && (g.expires != 0 || *c != restriction{}):
			return fmt.Errorf("K4: key %016x is the first, and not for all", uint64(id))
		case own:
			first = place + 1
		}
	}
	if first != r.bootstrapAt {
		return fmt.Errorf("K1: the first key is at %d, and looked for at %d", first, r.bootstrapAt)
	}
	return r.keys.Check()
}

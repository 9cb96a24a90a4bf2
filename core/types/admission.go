package types

// A Class is a kind of caller that shares a turn: it follows from the listener and a
// verified credential, never from what a request says of itself.
type Class uint8

const (
	ClassInternal Class = iota // the node's own, and keys that are for that
	ClassAuthed                // who has shown a key
	ClassAnon                  // everybody else
	NumClasses
)

func (c Class) String() string {
	return [...]string{"internal", "authed", "anon", "?"}[min(c, NumClasses)]
}

// A Facet is a part of a plane that has its own queue and its own permits, so that one
// that hangs keeps nothing of another.
type Facet uint8

const (
	FacetWallet Facet = iota // what moves money, and what is read from memory
	FacetQuery               // what is read from the index
	FacetProxy               // what is asked of upstreams
	Streams                  // what waits or lasts: change streams, long polls, event streams and tunnels of upstreams
	NumFacets
)

func (f Facet) String() string {
	return [...]string{"wallet", "query", "proxy", "streams", "?"}[min(f, NumFacets)]
}

// A Flow is who takes turns within a class: a tenant, or a peer of those who have shown
// no key.
type Flow struct {
	Class Class
	ID    uint64 // a Tenant, or of a peer a part of its digest
}

// HashInto is h after all of f.
func (f Flow) HashInto(h Hash64) Hash64 { return h.Mix(uint64(f.Class)).Mix(f.ID) }

// A QuotaScope is what a quota counts by.
type QuotaScope uint8

const (
	ScopeInstance QuotaScope = iota
	ScopePeer
	ScopeKey
	ScopeTenant
	ScopeRoute // all who ask for it together
	NumQuotaScopes
)

func (s QuotaScope) String() string {
	return [...]string{"instance", "peer", "key", "tenant", "route", "?"}[min(s, NumQuotaScopes)]
}

// A QuotaUnit is what a quota counts.
type QuotaUnit uint8

const (
	UnitRequests QuotaUnit = iota
	UnitBytes
)

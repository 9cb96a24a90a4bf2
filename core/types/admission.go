package types

// A Class is a class of callers in the fair queue. It follows from the listener and a verified
// credential, never from other content of a request.
type Class uint8

const (
	ClassInternal Class = iota // the node itself, and keys of its operators
	ClassAuthed                // callers with a valid API key
	ClassAnon                  // callers without a key
	NumClasses
)

func (c Class) String() string {
	return [...]string{"internal", "authed", "anon", "?"}[min(c, NumClasses)]
}

// A Facet is a part of a plane with its own queue and permits, so that a facet that hangs takes no
// capacity from another.
type Facet uint8

const (
	FacetWallet  Facet = iota // operations on money, and reads from memory
	FacetQuery                // reads from the index
	FacetProxy                // requests to upstreams
	Streams                   // requests that last: change streams, long polls, event streams and tunnels of upstreams
	FacetStorage              // uploads and downloads of objects
	NumFacets
)

func (f Facet) String() string {
	return [...]string{"wallet", "query", "proxy", "streams", "storage", "?"}[min(f, NumFacets)]
}

// A Flow takes turns within its class: a tenant, or the peer of callers without a key.
type Flow struct {
	Class Class
	ID    uint64 // the tenant, or a part of the digest of the peer
}

// HashInto mixes f into h.
func (f Flow) HashInto(h Hash64) Hash64 { return h.Mix(uint64(f.Class)).Mix(f.ID) }

// A QuotaScope is the subject for which a quota counts.
type QuotaScope uint8

const (
	ScopeInstance QuotaScope = iota
	ScopePeer
	ScopeKey
	ScopeTenant
	ScopeRoute // all requests of the route together
	NumQuotaScopes
)

func (s QuotaScope) String() string {
	return [...]string{"instance", "peer", "key", "tenant", "route", "?"}[min(s, NumQuotaScopes)]
}

// A QuotaUnit is the unit that a quota counts.
type QuotaUnit uint8

const (
	UnitRequests QuotaUnit = iota
	UnitBytes
)

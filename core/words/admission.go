package words

// A Class is a kind of caller that shares a turn: it follows from the listener and a
// verified credential, never from what a request says of itself.
type Class uint8

const (
	Internal Class = iota // the node's own, and keys that are for that
	Authed                // who has shown a key
	Anon                  // everybody else
	Classes
)

func (c Class) String() string {
	return [...]string{"internal", "authed", "anon", "?"}[min(c, Classes)]
}

// A Facet is a part of a plane that has its own queue and its own permits, so that one
// that hangs keeps nothing of another.
type Facet uint8

const (
	Money   Facet = iota // what moves money, and what is read from memory
	Lists                // what is read from the index
	Beyond               // what is asked of upstreams
	Streams              // what waits or lasts: change streams, long polls, event streams and tunnels of upstreams
	Facets
)

func (f Facet) String() string {
	return [...]string{"money", "lists", "beyond", "streams", "?"}[min(f, Facets)]
}

// A Flow is who takes turns within a class: a tenant, or a peer of those who have shown
// no key.
type Flow struct {
	Class Class
	Of    uint64 // a Tenant, or of a peer a part of its digest
}

// Mix is h after all of f.
func (f Flow) Mix(h Hash64) Hash64 { return h.Mix(uint64(f.Class)).Mix(f.Of) }

// A Scope is what a quota counts by.
type Scope uint8

const (
	OfInstance Scope = iota
	OfPeer
	OfKey
	OfTenant
	OfRoute // all who ask for it together
	Scopes
)

func (s Scope) String() string {
	return [...]string{"instance", "peer", "key", "tenant", "route", "?"}[min(s, Scopes)]
}

// A Unit is what a quota counts.
type Unit uint8

const (
	Requests Unit = iota
	Bytes
)

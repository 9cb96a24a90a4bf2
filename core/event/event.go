// Package event is what crosses the border of the node: what happened outside, and
// what the node wants done about it. Data only.
package event

import (
	"errors"

	"macronode/core/words"
)

// An Event is what happened outside.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Boot ends a recovery: the node may begin frames. → a Booted record
	Boot struct{ Found Recovery }

	// Enrol asks for an API key to be known. It is recorded once; asking again for
	// a key that is known is answered without a record. Caller 0 is the node itself.
	Enrol struct {
		Ticket words.Ticket
		Caller words.KeyID
		Tenant words.Tenant // the caller's
		Key    Key
		// Instead ends the node's own first key and puts this one in its place.
		Instead bool
	}
	// Revoke ends an API key. It is recorded once; asking again is answered without
	// a record.
	Revoke struct {
		Ticket words.Ticket
		Caller words.KeyID
		Tenant words.Tenant // the caller's
		Key    words.KeyID
	}

	// Durable says that all frames ≤ Upto are on disk, Bytes of bodies since the
	// last such word. Folded says that the follower knows them.
	Durable struct {
		Upto  words.LSN
		Bytes uint64
	}
	Folded struct{ Upto words.LSN }

	// Find asks what became of an idempotency key. It is answered by the place of its
	// outcome, or NotFound: there is none yet.
	Find struct {
		Ticket words.Ticket
		Caller words.KeyID
		Tenant words.Tenant // the caller's
		Key    words.Name
		Upto   words.LSN // as in a Request
		Seen   Seen
	}
	// Indexed says that the index holds the keys and refs of all frames ≤ Upto, and
	// keeps them through a crash.
	Indexed struct{ Upto words.LSN }
	// Refused says that a flush failed: nothing ≥ From may ever be acknowledged.
	Refused struct {
		From words.LSN
		Why  Fault
	}

	// Cancel says that nobody waits for Ticket any more. What was decided stands.
	Cancel struct{ Ticket words.Ticket }

	// ChildUp and ChildDown tell of a child of the shell.
	ChildUp   struct{ Child words.Child }
	ChildDown struct{ Child words.Child }

	// Room is what the journal's disk has free, in bytes.
	Room struct{ Free uint64 }

	// Reloaded says whether a configuration that was read while the node runs was applied.
	Reloaded struct{ Failed bool }

	// Signal is what an operator wants.
	Signal struct{ What Signals }

	// Tick says that Due has come.
	Tick struct{}
)

func (Boot) event()      {}
func (*Arrive) event()   {}
func (*Stream) event()   {}
func (*Settle) event()   {}
func (*Ask) event()      {}
func (Probed) event()    {}
func (*Enrol) event()    {} // by pointer, like all that is large: boxing allocates
func (*Revoke) event()   {}
func (*Find) event()     {}
func (Durable) event()   {}
func (Indexed) event()   {}
func (Folded) event()    {}
func (Refused) event()   {}
func (Cancel) event()    {}
func (ChildUp) event()   {}
func (ChildDown) event() {}
func (Room) event()      {}
func (Reloaded) event()  {}
func (Signal) event()    {}
func (Tick) event()      {}
func (*Request) event()  {}
func (*Renew) event()    {}

// Recovery is what a start found in the journal.
type Recovery struct {
	Journal words.JournalID
	Cut     uint64 // bytes of a tail that was not whole, given up
	Tail    uint32 // frames beyond the known durable one, made durable again
	Damaged bool   // frames that were durable cannot be read: those before them can
}

// A Fault is how the disk failed.
type Fault uint8

const (
	WriteFailed Fault = iota + 1
	SyncFailed
	NoSpace
	TooSlow       // the node gave up waiting
	Damaged       // what was durable cannot be read: a restart will not help
	DirectoryLost // the data directory was removed or replaced: another node may write there
)

func (f Fault) String() string {
	return [...]string{"", "write failed", "sync failed", "no space", "too slow", "damaged", "directory lost"}[f]
}

// Signals are what an operator may want.
type Signals uint8

const (
	// Drain ends the node: lame duck, then no new work, then nothing.
	Drain Signals = iota + 1
	// Abort ends the waiting of a drain.
	Abort
	// AcceptClock believes the machine's clock, however far ahead it is.
	AcceptClock
)

// A Key is an API key as the node knows it: the secret is not in it.
type Key struct {
	ID       words.KeyID
	Tenant   words.Tenant
	Hash     [32]byte // of the secret
	Scopes   Scopes
	Boot     bool           // the one that a node makes for itself at its first start
	Label    words.Label    // what it is called
	Accounts words.Patterns // the accounts that it covers
	Assets   words.Patterns
	Expires  words.Time // from then on it is nobody's; 0: never
	Revoked  bool
}

// Why a key is none. Each is the caller's mistake.
var (
	ErrScopes = errors.New("scopes: unknown")
	ErrFirst  = errors.New("key: the node's own first key is for all, and has no name and no end")
	ErrDead   = errors.New("key: a new key is not revoked, and somebody's")
)

// Check says why k, new, is no key.
func (k *Key) Check() error {
	switch {
	case k.Scopes&^AllScopes != 0:
		return ErrScopes
	case k.ID == 0 || k.Revoked || k.Tenant == 0 || k.Expires < 0:
		return ErrDead
	case k.Boot && (k.Label != words.Label{} || k.Expires != 0 || !k.Accounts.Any() || !k.Assets.Any()):
		return ErrFirst
	case k.Label != words.Label{}:
		return words.CheckLabel(k.Label.String())
	}
	return nil
}

// Scopes are what a key may do.
type Scopes uint16

const (
	MayRead Scopes = 1 << iota
	MayIssue
	MayTransfer
	MayBurn
	MayHold
	MayCapture
	MayAdmin
	AllScopes = MayAdmin<<1 - 1
)

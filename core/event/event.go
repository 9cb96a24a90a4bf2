// Package event is what crosses the border of the node: what happened outside, and
// what the node wants done about it. Data only.
package event

import (
	"errors"

	"macronode/core/command"
	"macronode/core/types"
)

// An Event is what happened outside.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Recovered ends a recovery: the node may begin frames. → a Booted record
	Recovered struct{ Recovery Recovery }

	// CreateKey asks for an API key to be known. It is recorded once; asking again for
	// a key that is known is answered without a record. Caller 0 is the node itself.
	CreateKey struct {
		Ticket types.Ticket
		Caller types.KeyID
		Tenant types.Tenant // the caller's
		Key    Key
		// Instead ends the node's own first key and puts this one in its place.
		ReplaceBootstrap bool
	}
	// RevokeKey ends an API key. It is recorded once; asking again is answered without
	// a record.
	RevokeKey struct {
		Ticket types.Ticket
		Caller types.KeyID
		Tenant types.Tenant // the caller's
		Key    types.KeyID
	}

	// Durable says that all frames ≤ Upto are on disk, Bytes of bodies since the
	// last such word. Folded says that the follower knows them.
	Durable struct {
		Upto  types.LSN
		Bytes uint64
	}
	Applied struct{ Upto types.LSN }

	// FindOutcome asks what became of an idempotency key. It is answered by the place of its
	// outcome, or NotFound: there is none yet.
	FindOutcome struct {
		Ticket    types.Ticket
		Caller    types.KeyID
		Tenant    types.Tenant // the caller's
		Key       types.Name
		IndexedTo types.LSN // as in a Request
		Prior     command.PriorOutcome
	}
	// Execute carries a durable command of a plane that has no event of its own. The answer is a Reply.
	Execute struct{ Command command.Command }

	// Indexed says that the index holds the keys and refs of all frames ≤ Upto, and
	// keeps them through a crash.
	Indexed struct{ Upto types.LSN }
	// FlushFailed says that a flush failed: nothing ≥ From may ever be acknowledged.
	FlushFailed struct {
		From  types.LSN
		Fault Fault
	}

	// Cancel says that nobody waits for Ticket any more. What was decided stands.
	Cancel struct{ Ticket types.Ticket }

	// ServiceUp and ChildDown tell of a child of the shell.
	ServiceUp   struct{ Service types.Service }
	ServiceDown struct{ Service types.Service }

	// DiskFree is what the journal's disk has free, in bytes.
	DiskFree struct{ Bytes uint64 }

	// ConfigReloaded says whether a configuration that was read while the node runs was applied.
	ConfigReloaded struct{ Failed bool }

	// Signal is what an operator wants.
	Signal struct{ Kind SignalKind }

	// Tick says that Due has come.
	Tick struct{}
)

func (Recovered) event()      {}
func (*Admit) event()         {}
func (*ReserveBytes) event()  {}
func (*Finish) event()        {}
func (*UpstreamQuery) event() {}
func (HealthChecked) event()  {}
func (*CreateKey) event()     {} // by pointer, like all that is large: boxing allocates
func (*RevokeKey) event()     {}
func (*FindOutcome) event()   {}
func (Durable) event()        {}
func (Indexed) event()        {}
func (Applied) event()        {}
func (FlushFailed) event()    {}
func (Cancel) event()         {}
func (ServiceUp) event()      {}
func (ServiceDown) event()    {}
func (DiskFree) event()       {}
func (ConfigReloaded) event() {}
func (Signal) event()         {}
func (Tick) event()           {}
func (*Request) event()       {}
func (*Execute) event()       {}
func (*ApplyPolicy) event()   {}

// Recovery is what a start found in the journal.
type Recovery struct {
	Journal    types.JournalID
	CutBytes   uint64 // bytes of a tail that was not whole, given up
	TailFrames uint32 // frames beyond the known durable one, made durable again
	Damaged    bool   // frames that were durable cannot be read: those before them can
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

// SignalKind are what an operator may want.
type SignalKind uint8

const (
	// Drain ends the node: lame duck, then no new work, then nothing.
	Drain SignalKind = iota + 1
	// Abort ends the waiting of a drain.
	Abort
	// AcceptClock believes the machine's clock, however far ahead it is.
	AcceptClock
)

// A Key is an API key as the node knows it: the secret is not in it.
type Key struct {
	ID        types.KeyID
	Tenant    types.Tenant
	Hash      [32]byte // of the secret
	Scopes    Scopes
	Bootstrap bool           // the one that a node makes for itself at its first start
	Label     types.Label    // what it is called
	Accounts  types.Patterns // the accounts that it covers
	Assets    types.Patterns
	Expires   types.Time // from then on it is nobody's; 0: never
	Revoked   bool
}

// Why a key is none. Each is the caller's mistake.
var (
	ErrScopes       = errors.New("scopes: unknown")
	ErrBootstrapKey = errors.New("key: the node's own first key is for all, and has no name and no end")
	ErrKeyState     = errors.New("key: a new key is not revoked, and somebody's")
)

// Check says why k, new, is no key.
func (k *Key) Check() error {
	switch {
	case k.Scopes&^AllScopes != 0:
		return ErrScopes
	case k.ID == 0 || k.Revoked || k.Tenant == 0 || k.Expires < 0:
		return ErrKeyState
	case k.Bootstrap && (k.Label != types.Label{} || k.Expires != 0 || !k.Accounts.CoversAll() || !k.Assets.CoversAll()):
		return ErrBootstrapKey
	case k.Label != types.Label{}:
		return types.CheckLabel(k.Label.String())
	}
	return nil
}

// Scopes are what a key may do.
type Scopes uint16

const (
	ScopeRead Scopes = 1 << iota
	ScopeIssue
	ScopeTransfer
	ScopeBurn
	ScopeHold
	ScopeCapture
	ScopeAdmin
	AllScopes = ScopeAdmin<<1 - 1
)

// Package event defines the input and output of a step: events from outside, and effects. It is data
// only.
package event

import (
	"errors"

	"macronode/core/command"
	"macronode/core/types"
)

// An Event is the input of one step.
//
//sumtype:decl
type Event interface{ event() }

type (
	// Recovered ends a recovery: the node may begin frames. It records Started, and in the same frame decides commands of the node
	// itself. So they are before all that the node serves. They have no replies. A damaged journal takes none.
	Recovered struct {
		Recovery Recovery
		Commands []command.Command
	}

	// CreateKey creates an API key. Creating a known key again succeeds without a record. Caller 0 is
	// the node itself.
	CreateKey struct {
		Ticket types.Ticket
		Permit types.Ticket // as in a command
		Caller types.KeyID
		Tenant types.Tenant // the caller's
		Key    Key
		// ReplaceBootstrap revokes the bootstrap key and makes this key the new one.
		ReplaceBootstrap bool
	}
	// RevokeKey revokes an API key. Revoking it again succeeds without a record.
	RevokeKey struct {
		Ticket types.Ticket
		Permit types.Ticket // as in a command
		Caller types.KeyID
		Tenant types.Tenant // the caller's
		Key    types.KeyID
	}

	// Durable reports that all frames ≤ Upto are on disk; Bytes counts their bodies since the last
	// Durable. Applied reports that the read model has applied them.
	Durable struct {
		Upto  types.LSN
		Bytes uint64
	}
	Applied struct{ Upto types.LSN }

	// FindOutcome looks up an idempotency key. The reply has the position of its outcome, or NotFound.
	FindOutcome struct {
		Ticket    types.Ticket
		Permit    types.Ticket // as in a command
		Caller    types.KeyID
		Tenant    types.Tenant // the caller's
		Key       types.Name
		IndexedTo types.LSN // as in a Request
		Prior     command.PriorOutcome
	}
	// Execute carries a durable command of a plane that has no event of its own. The answer is a Reply.
	Execute struct{ Command command.Command }

	// Indexed reports that the index has durably stored the keys and refs of all frames ≤ Upto.
	Indexed struct{ Upto types.LSN }
	// FlushFailed reports a failed flush: no frame ≥ From may ever be acknowledged.
	FlushFailed struct {
		From  types.LSN
		Fault Fault
	}

	// Cancel reports that the client of Ticket has gone. The decision stands.
	Cancel struct{ Ticket types.Ticket }

	// ServiceUp and ServiceDown report the state of a supervised service.
	ServiceUp   struct{ Service types.Service }
	ServiceDown struct{ Service types.Service }

	// DiskFree reports the free bytes of the journal's disk.
	DiskFree struct{ Bytes uint64 }
	// ProviderHealth reports how many providers of objects cannot be used, whether objects lack copies, and whether
	// objects are lost: no repair can make them whole.
	ProviderHealth struct {
		Failed  int
		Lacking bool
		Lost    bool
	}

	// FrameUnreadable reports that a durable frame is damaged on the disk. The state does not need it:
	// it was folded before, or a snapshot covers it.
	FrameUnreadable struct{}

	// ConfigReloaded reports whether a reloaded configuration was applied.
	ConfigReloaded struct{ Failed bool }

	// SegmentsArchived reports whether the segments that no start needs could be moved into the archive.
	SegmentsArchived struct{ Failed bool }

	// ObjectFiles reports whether the directory of the objects can be read and written.
	ObjectFiles struct{ Unreadable, Unwritable bool }

	// Signal is a request of the operator.
	Signal struct{ Kind SignalKind }

	// Tick reports that the due time has come.
	Tick struct{}
)

func (Recovered) event()        {}
func (*Admit) event()           {}
func (*ReserveBytes) event()    {}
func (*Finish) event()          {}
func (*UpstreamQuery) event()   {}
func (HealthChecked) event()    {}
func (*CreateKey) event()       {} // by pointer: boxing a large value allocates
func (*RevokeKey) event()       {}
func (*FindOutcome) event()     {}
func (Durable) event()          {}
func (Indexed) event()          {}
func (Applied) event()          {}
func (FlushFailed) event()      {}
func (Cancel) event()           {}
func (ServiceUp) event()        {}
func (ServiceDown) event()      {}
func (DiskFree) event()         {}
func (ProviderHealth) event()   {}
func (ConfigReloaded) event()   {}
func (FrameUnreadable) event()  {}
func (ObjectFiles) event()      {}
func (SegmentsArchived) event() {}
func (Signal) event()           {}
func (Tick) event()             {}
func (*Request) event()         {}
func (*Execute) event()         {}
func (*ApplyPolicy) event()     {}

// Recovery is the result of reading the journal at a start.
type Recovery struct {
	Journal    types.JournalID
	CutBytes   uint64 // bytes of a torn tail that were cut off
	TailFrames uint32 // frames after the last one known to be durable, made durable again
	Damaged    bool   // durable frames cannot be read; those before them can
}

// A Fault is a kind of journal failure.
type Fault uint8

const (
	WriteFailed Fault = iota + 1
	SyncFailed
	NoSpace
	TooSlow   // longer than the sync timeout
	Damaged   // durable frames cannot be read; a restart does not help
	FilesLost // the data directory or the open segment was removed, replaced or cut
)

func (f Fault) String() string {
	return [...]string{"", "write failed", "sync failed", "no space", "too slow", "damaged", "files lost"}[f]
}

// A SignalKind is a request of the operator.
type SignalKind uint8

const (
	// Drain shuts the node down: lame duck, then no new requests, then the end.
	Drain SignalKind = iota + 1
	// Abort ends a drain without waiting for requests.
	Abort
	// AcceptClock trusts the machine's clock, however far ahead it is.
	AcceptClock
)

// A Key is an API key as the node stores it, without the secret.
type Key struct {
	ID        types.KeyID
	Tenant    types.Tenant
	Hash      [32]byte // of the secret
	Scopes    Scopes
	Bootstrap bool           // the key that the node creates at its first start
	Label     types.Label    // name for people
	Accounts  types.Patterns // accounts that it covers
	Assets    types.Patterns
	Expires   types.Time // invalid from then on; 0: never
	Revoked   bool
}

// Why a key is invalid. Each is a mistake of the caller.
var (
	ErrScopes       = errors.New("scopes: unknown")
	ErrBootstrapKey = errors.New("key: the node's own first key is for all, and has no name and no end")
	ErrKeyState     = errors.New("key: a new key needs an id and a tenant, has no negative expiry, and is not revoked")
)

// Check returns why k is not a valid new key.
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

// Scopes are the permissions of a key.
type Scopes uint16

const (
	ScopeRead Scopes = 1 << iota
	ScopeIssue
	ScopeTransfer
	ScopeBurn
	ScopeHold
	ScopeCapture
	ScopeAdmin
	ScopeStore // objects: put, delete
	ScopeMeter // usage: record events
	AllScopes  = ScopeMeter<<1 - 1
)

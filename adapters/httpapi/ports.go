package httpapi

import (
	"context"
	"time"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// A Node decides requests.
type Node interface {
	// Submit decides a request and waits for the reply. It returns false if there is no room, and nothing was
	// decided. If ctx ends first, the problem is OutcomeUnknown, and the node may still read the request, so it
	// must not be changed. Find, CreateKey and RevokeKey do the same for other events.
	Submit(ctx context.Context, in *event.Request) (event.Reply, bool)
	Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool)
	// Execute is Submit of a command of a plane that has no event of its own.
	Execute(ctx context.Context, in command.Command) (event.Reply, bool)
	CreateKey(ctx context.Context, in *event.CreateKey) (event.Reply, bool)
	RevokeKey(ctx context.Context, in *event.RevokeKey) (event.Reply, bool)
	// Status returns the status without waiting.
	Status() event.Status
	// Journal returns the ID of the journal.
	Journal() types.JournalID
}

// A ReadModel reads the durable state.
type ReadModel interface {
	// Find returns an API key, also if it is revoked or has expired.
	Find(id types.KeyID) (event.Key, bool)
	// Keys returns API keys of a tenant, oldest first: at most limit, without the first skip.
	Keys(t types.Tenant, skip, limit int) []event.Key
	// Render appends the response of the record at p, and returns its HTTP status and tenant. It returns
	// receipt.ErrNoAnswer if there is no response at p, and another error if the record cannot be read. Change
	// appends what the movement at p changed.
	Render(to []byte, p types.Position) (answer []byte, status int, owner types.Tenant, err error)
	Change(to []byte, p types.Position) (change []byte, owner types.Tenant, err error)
	// RequestAt sets the request of the record at p: Tenant, Caller, and the texts, numbers and Hold of the
	// operation, or of each operation of a batch. Hold is also set for the operation that opened it. A rejected
	// request has only its Op. The errors are those of Render.
	RequestAt(p types.Position, in *event.Request) (of types.JournalID, err error)
	// Balance returns the balance of an account in an asset.
	Balance(t types.Tenant, account, asset []byte) event.Balance
	// Frozen reports whether an account is frozen.
	Frozen(t types.Tenant, account []byte) bool
	// Supply returns the issued, burned and held amounts of an asset.
	Supply(t types.Tenant, asset []byte) (issued, burned, held types.Amount)
	// Seq returns the last applied movement of t.
	Seq(t types.Tenant) types.Seq
	// AwaitSeq waits until a movement of t is applied. It returns false if ctx ends first, or if too many requests
	// wait.
	AwaitSeq(ctx context.Context, t types.Tenant, seq types.Seq) bool
}

// An Index reads the journal in other orders. It is slightly behind the read model, and each result has its
// watermark. An Index may lower a limit, so a list has ended only if a result is empty. While it is unavailable
// its errors have a method Unavailable that returns true.
type Index interface {
	// Mark returns the watermark of the index, Seq its last movement of t.
	Mark() event.Watermark
	Seq(t types.Tenant) types.Seq
	// Await waits until the index has a movement of t. It returns false if ctx ends first, or if too many requests
	// wait.
	Await(ctx context.Context, t types.Tenant, seq types.Seq) bool
	// Ref returns the record that has a ref.
	Ref(t types.Tenant, id types.NameHash) (types.TxID, bool, error)
	// Entries yields the movements of an account after a seq, oldest first, at most limit. An entry is valid only
	// during yield.
	Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error)
	// BalanceAt returns the balance after a movement, BalanceAtTime after the last movement whose time is at most
	// at. They return false if that is beyond the watermark. NextNonce is not set.
	BalanceAt(t types.Tenant, account, asset []byte, seq types.Seq) (event.Balance, bool, error)
	BalanceAtTime(t types.Tenant, account, asset []byte, at types.Time) (event.Balance, bool, error)
	// Accounts yields pairs of an account with a prefix and an asset that it ever had, in the order of account, a
	// zero byte and asset, after such a text: at most limit pairs. Assets lists assets in the same way.
	Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (event.Watermark, error)
	Assets(t types.Tenant, prefix, after []byte, limit int) ([][]byte, event.Watermark, error)
	// Holds lists the holds of an account in a state, or in any, after a hold ID in the order of IDs, as they are
	// at a time. next is the ID at which the list continues; zero: it has ended. Hold returns one hold.
	Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, after types.TxID, limit int, now types.Time) (list []event.HoldView, next types.TxID, m event.Watermark, err error)
	Hold(t types.Tenant, id types.TxID, now types.Time) (event.HoldView, bool, error)
	// Changes lists the movements of t after a seq, at most limit, without gaps.
	Changes(t types.Tenant, after types.Seq, limit int) ([]event.Change, event.Watermark, error)
}

// A Meter counts. Its methods must not block.
type Meter interface {
	// Endpoint returns functions for one endpoint: answered counts a request that has ended, with its
	// HTTP status (0: no response), busy one that was rejected with 429.
	Endpoint(name, method string) (answered func(took time.Duration, status int, decision []byte), busy func())
	Rejected(types.Class, event.RejectReason) // at admission
	Refused(types.Facet, event.Problem)       // in place of a result, by facet
	Decided(took time.Duration)               // by the node
	Replayed()                                // an outcome was returned again
	TimedOut(event.Problem)                   // at the deadline, for requests of the API: Timeout for a read, OutcomeUnknown for a write
	Panicked()
	// Usage counts usage events: new ones, those recorded before, and of the new ones those that came late.
	Usage(recorded, duplicate, late uint64)
	// PrepaidRejected counts a request that was rejected because its account cannot pay for it or for its usage events.
	PrepaidRejected()
}

// A Metering takes each request of an API key that was served. Its methods must not block.
type Metering interface {
	// Reserve reserves what a request of a prepaid tenant will cost, before it is served; r.In is the declared size of its body. A
	// problem is why its account cannot pay. Count or Cancel follows when the request has ended: it counts, or it does not.
	Reserve(r *accounting.Request, t *flow.Terms) (flow.Reservation, event.Problem, event.Shortfall)
	// ReserveResponse reserves the size of the response too, before its first byte is sent. It is called once at most.
	ReserveResponse(r flow.Reservation, at types.Time, size uint64) (flow.Reservation, event.Problem, event.Shortfall)
	Count(r accounting.Request, of flow.Reservation)
	Cancel(of flow.Reservation)
}

// An Audit records uses of API keys. Its methods must not block.
type Audit interface {
	// Note is called once for each use of a key that changed something or was rejected.
	Note(AuditRecord)
}

// An AuditRecord is one use of a verified API key.
type AuditRecord struct {
	Decision string // the decision ID
	Key      types.KeyID
	Tenant   types.Tenant // the key's
	Route    string       // the operationId of the document
	Peer     string       // the address of the other end of the connection
	Status   int          // the HTTP status
	Code     string       // of the problem; empty: the request succeeded
	TxID     types.TxID   // of the new record; zero: none
}

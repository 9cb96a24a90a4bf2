package httpapi

import (
	"context"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// A Node decides.
type Node interface {
	// Submit lets a request in and waits for its reply; false when there is no room
	// for it at once, and nothing was decided. Where ctx ends first the reply is
	// Unknown, and the request may still be read by the node: it is not written to
	// any more. Find, Enrol and Revoke are the same of other events.
	Submit(ctx context.Context, in *event.Request) (event.Reply, bool)
	Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool)
	// Execute is Submit of a command of a plane that has no event of its own.
	Execute(ctx context.Context, in command.Command) (event.Reply, bool)
	Enrol(ctx context.Context, in *event.CreateKey) (event.Reply, bool)
	Revoke(ctx context.Context, in *event.RevokeKey) (event.Reply, bool)
	// Status is what the node says of itself, without waiting.
	Status() event.Status
	// Journal names the journal that records are of.
	Journal() types.JournalID
}

// Books tell what is durable.
type Books interface {
	// Find returns an API key, be it revoked or over.
	Find(id types.KeyID) (event.Key, bool)
	// Keys are the API keys that a tenant ever had, oldest first, but for the first so
	// many: at most limit.
	Keys(t types.Tenant, skip, limit int) []event.Key
	// Render appends the answer that the record at p is, with its HTTP status and
	// whose it is; receipt.ErrNone where there is no answer at p, another error where it
	// cannot be read. Change appends what the movement at p changed.
	Render(to []byte, p types.Position) (answer []byte, status int, owner types.Tenant, err error)
	Change(to []byte, p types.Position) (change []byte, owner types.Tenant, err error)
	// Asked says what the record at p was asked to do, as far as it tells: Tenant and
	// Caller, and of the operation, or of each of a batch that was done, the texts, the
	// numbers and the Hold, which an operation that opened one names too. What was refused
	// tells its Op alone. Its errors are Render's.
	Asked(p types.Position, in *event.Request) (of types.JournalID, err error)
	// Balance is what an account has of an asset.
	Balance(t types.Tenant, account, asset []byte) event.Balance
	// Frozen reports that nothing may leave an account.
	Frozen(t types.Tenant, account []byte) bool
	// Supply is how much of an asset was ever issued and burned, and is held.
	Supply(t types.Tenant, asset []byte) (issued, burned, held types.Amount)
	// Seq is the last movement of t that is counted.
	Seq(t types.Tenant) types.Seq
	// AwaitSeq waits until a movement of t is counted; false when ctx ends first, or
	// too many wait.
	AwaitSeq(ctx context.Context, t types.Tenant, seq types.Seq) bool
}

// Views show the journal in other orders. They are behind the books by a little, and
// each answer says as of which mark it is. A limit may be less to them than what is
// asked for, so that a list has ended only where nothing comes. While they are away their
// errors have an Unavailable that is true.
type Views interface {
	// Mark is how far the views have come, Seq the last movement of t that they count.
	Mark() event.Watermark
	Seq(t types.Tenant) types.Seq
	// Await waits until a movement of t is counted; false when ctx ends first, or too
	// many wait.
	Await(ctx context.Context, t types.Tenant, seq types.Seq) bool
	// Ref is the record that has a ref.
	Ref(t types.Tenant, id types.NameHash) (types.TxID, bool, error)
	// Entries yields an account's movements whose seq is more than after, oldest first,
	// at most limit. What yield is given is gone when it returns.
	Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error)
	// BalanceAt is what an account had of an asset behind a movement, BalanceAtTime behind
	// the last whose time is at most at; false where that is beyond the mark. Next is not
	// told.
	BalanceAt(t types.Tenant, account, asset []byte, seq types.Seq) (event.Balance, bool, error)
	BalanceAtTime(t types.Tenant, account, asset []byte, at types.Time) (event.Balance, bool, error)
	// Accounts yields accounts that begin with prefix, each with every asset that it ever
	// had, in the order of account, a zero byte and asset, behind such a text: at most
	// limit pairs. Assets lists assets in the same way, behind one.
	Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (event.Watermark, error)
	Assets(t types.Tenant, prefix, after []byte, limit int) ([][]byte, event.Watermark, error)
	// Holds lists the holds of an account that are in a state, or in any, behind one in the
	// order of their ids, as they are at a time. Next is where the list goes on; all zeros:
	// it has ended. Hold is one.
	Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, after types.TxID, limit int, now types.Time) (list []event.HoldView, next types.TxID, m event.Watermark, err error)
	Hold(t types.Tenant, id types.TxID, now types.Time) (event.HoldView, bool, error)
	// Changes lists the movements of t whose seq is more than after, at most limit, without
	// a gap.
	Changes(t types.Tenant, after types.Seq, limit int) ([]event.Change, event.Watermark, error)
}

// A Meter counts. Nothing it does may block.
type Meter interface {
	// Endpoint returns functions for one endpoint: answered counts a request that has ended, with its
	// HTTP status (0: no response), busy one that was rejected with 429.
	Endpoint(name, method string) (answered func(took time.Duration, status int, decision []byte), busy func())
	Barred(types.Class, event.RejectReason) // at the gate
	Refused(types.Facet, event.Problem)     // in the place of an answer, to who asked for that part of the node
	Decided(took time.Duration)             // by the node
	Replayed()                              // an outcome was shown again
	TimedOut(event.Problem)                 // at the deadline: Deadline of a read, Unknown of a write; of the node's own
	Panicked()
}

// An Audit keeps who used which key for what. Nothing it does may block.
type Audit interface {
	// Note is called once for each use of a key that changed something, or was refused.
	Note(Use)
}

// A Use is what somebody did with an API key whose secret he knew.
type Use struct {
	Decision string // its id
	Key      types.KeyID
	Tenant   types.Tenant // the key's
	Route    string       // the operationId of the document
	Peer     string       // the other end of the connection
	Status   int          // of HTTP
	Code     string       // of the problem; empty: it was done
	TxID     types.TxID   // of the record that was made; all zeros: none, or none with a name
}

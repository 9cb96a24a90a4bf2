package httpapi

import (
	"context"
	"time"

	"macronode/core/event"
	"macronode/core/words"
)

// A Node decides.
type Node interface {
	// Submit lets a request in and waits for its reply; false when there is no room
	// for it at once, and nothing was decided. Where ctx ends first the reply is
	// Unknown, and the request may still be read by the node: it is not written to
	// any more.
	Submit(ctx context.Context, in *event.Request) (event.Reply, bool)
	// Status is what the node says of itself, without waiting.
	Status() event.Status
	// Journal names the journal that records are of.
	Journal() words.JournalID
}

// Books tell what is durable.
type Books interface {
	// Find returns an API key.
	Find(id words.KeyID) (event.Key, bool)
	// Render appends the answer that the record at p is, with its HTTP status and
	// whose it is; receipt.ErrNone where there is no answer at p, another error where it
	// cannot be read.
	Render(to []byte, p words.Place) (answer []byte, status int, owner words.Tenant, err error)
	// Balance is what an account has of an asset.
	Balance(t words.Tenant, account, asset []byte) event.Balance
	// AwaitSeq waits until a movement of t is counted; false when ctx ends first, or
	// too many wait.
	AwaitSeq(ctx context.Context, t words.Tenant, seq words.Seq) bool
}

// A Meter counts. Nothing it does may block.
type Meter interface {
	// Endpoint counts one endpoint: what was answered, and who was told to come back.
	Endpoint(name, method string) (answered func(took time.Duration, decision []byte), busy func())
	Refused(event.Problem)      // in the place of an answer
	Decided(took time.Duration) // by the node
	Replayed()                  // an outcome was shown again
	TimedOut(event.Problem)     // at the deadline: Deadline of a read, Unknown of a write
	Panicked()
}

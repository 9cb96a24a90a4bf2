// Package wallet is the wallet plane: it decides operations on money and batches of them by its
// ledger, and renders their receipts.
package wallet

import (
	"errors"
	"fmt"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
	"macronode/core/wallet/receipt"
)

// Wallet is the durable state of the wallet plane. Decide and CopyTo are those of the plane; the
// ledger's own are reached through Ledger.
type Wallet struct {
	ledger.Ledger
	plane.NoRefs
}

var _ plane.Plane = (*Wallet)(nil)

// New returns an empty wallet.
func New(l ledger.Limits, seed types.Hash64) *Wallet { return &Wallet{Ledger: ledger.New(l, seed)} }

// ID is the wallet's.
func (*Wallet) ID() types.Plane { return types.PlaneWallet }

// Authorized reports whether the caller's key covers every operation of c.
func (*Wallet) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	return keys.Authorizes(at, c.(*event.Request))
}

const expiryRecordBytes = 64 // of a record that ends a hold, at most

// Cost is that of the request and of the expired holds that its step may end.
func (*Wallet) Cost(c command.Command) command.Cost {
	cost := c.(*event.Request).Cost()
	cost.Bytes += types.MaxExpiriesPerStep * expiryRecordBytes
	return cost
}

// Decide ends the expired holds of the accounts that pay, then decides the operations. If an account
// has more expired holds than one step may end, the request is rejected as busy; a retry goes on.
func (w *Wallet) Decide(at types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	in := c.(*event.Request)
	switch {
	case !w.expireHolds(at, in, f):
		reply.Problem = event.Busy
	case in.Op == event.Batch:
		w.decideBatch(at, in, f, reply)
	default:
		w.decideSingle(at, in, f, reply)
	}
}

// expireHolds ends the expired holds of all accounts that pay, so that none of them counts. It returns
// false if there are more than one step may end.
func (w *Wallet) expireHolds(at types.Time, in *event.Request, f plane.Frame) bool {
	left := types.MaxExpiriesPerStep
	for _, item := range in.Each {
		for len(item.From.Text) > 0 && w.HasExpiredHold(at, in.Tenant, item.From.ID) {
			if left == 0 {
				return false
			}
			left--
			r := f.Record()
			*r = record.Record{}
			w.ExpireHoldOf(at, in.Tenant, item.From.ID, r)
			f.Add()
		}
	}
	return true
}

func (w *Wallet) decideSingle(at types.Time, in *event.Request, f plane.Frame, reply *event.Reply) {
	if why := w.decideItem(at, in, &in.Item, f); why.Stored() {
		reply.Position = f.Add()
	} else {
		setProblem(reply, why, f.Record())
	}
}

// decideItem fills the record of f with the outcome of one operation.
func (w *Wallet) decideItem(at types.Time, in *event.Request, item *event.Item, f plane.Frame) (why event.Problem) {
	r := f.Record()
	*r = record.Record{Op: item.Op, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash,
		From: item.From, To: item.To, Asset: item.Asset, Amount: item.Amount, Nonce: item.Nonce,
		ExpiresAt: item.ExpiresAt, Hold: item.Hold, Ref: item.Ref, Memo: item.Memo}
	used := false
	if len(item.Ref.Text) > 0 {
		var by command.PriorOutcome
		by, used = f.FindRef(in.Tenant, item.Ref.ID, command.PriorOutcome{ID: item.PriorRef})
		r.PriorRef = by.ID
	}
	if used {
		why, r.Nonce = event.RefUsed, 0
	} else {
		why = w.Ledger.Decide(at, r)
	}
	if why != event.None {
		r.Kind, r.Problem, r.Ref = record.Rejected, why, types.Name{}
	}
	return why
}

func setProblem(reply *event.Reply, why event.Problem, r *record.Record) {
	reply.Problem, reply.Nonce = why, 0
	if why == event.NonceAhead {
		reply.Nonce = r.Nonce
	}
}

// decideBatch decides the items in order; each sees the effects of those before it. If an item of an
// atomic batch is rejected, the whole batch is undone, and a rejection that is stored becomes its
// outcome.
func (w *Wallet) decideBatch(at types.Time, in *event.Request, f plane.Frame, reply *event.Reply) {
	head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: in.Tenant, Caller: in.Caller, Key: in.Key,
		Hash: in.Hash, Items: uint16(len(in.Items)), Atomic: in.Atomic}
	r := f.Record()
	f.Savepoint()
	*r = head
	reply.Position = f.Add()
	for i := range in.Items {
		why := w.decideItem(at, in, &in.Items[i], f)
		if why == event.None || !in.Atomic {
			f.Add()
			continue
		}
		if why == event.RefUsed && r.PriorRef.Position().LSN == reply.Position.LSN {
			why = event.BadRequest // an earlier item of this batch used it, and is undone
		}
		f.Undo()
		if !why.Stored() {
			reply.Position, reply.Item = types.Position{}, uint16(i+1)
			setProblem(reply, why, r)
			return
		}
		head.Problem, head.Nonce, head.PriorRef, head.Items = why, r.Nonce, r.PriorRef, uint16(i)
		*r = head
		reply.Position = f.Add()
		return
	}
	f.Commit()
}

// HasTimers reports whether there is an active hold.
func (w *Wallet) HasTimers() bool { return w.Holds() > 0 }

// Expire fills r with the end of the hold that expired first.
func (w *Wallet) Expire(at types.Time, r *record.Record) bool { return w.ExpireNextHold(at, r) }

// Fits reports whether the ledger has room for a movement. The wallet has no kinds of its own range.
func (w *Wallet) Fits(r *record.Record) bool { return r.IsMovement() && w.Ledger.Fits(r) }

// Load adds a row of a dump.
func (w *Wallet) Load(kind uint8, b []byte) error {
	switch err := w.Ledger.Load(kind, b); {
	case errors.Is(err, ledger.ErrRoom):
		return fmt.Errorf("%w: %w", plane.ErrRoom, err)
	case err != nil:
		return fmt.Errorf("%w: %w", plane.ErrRow, err)
	}
	return nil
}

// CopyTo overwrites dst, a wallet, or makes one.
func (w *Wallet) CopyTo(dst plane.Plane) plane.Plane {
	d, ok := dst.(*Wallet)
	if !ok {
		d = new(Wallet)
	}
	w.Ledger.CopyTo(&d.Ledger)
	return d
}

// Render appends the receipt of an outcome.
func (*Wallet) Render(to []byte, s *record.Sealed, index uint16) ([]byte, int, types.Tenant, error) {
	return receipt.Render(to, s, index)
}

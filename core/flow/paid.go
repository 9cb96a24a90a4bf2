// Package flow has the order in which several planes decide together. A flow contains no rule of its own: the
// planes decide, and all their records are one frame, durable together or not at all.
//
//	Reserve ──► hold of the payer ──► upload ──► PaidPut ──► object and capture of the hold
//	                                    └── fails ──► Cancel ──► release of the hold
//
// If a crash interrupts an upload, the hold expires.
//
//	PrepaidEvents ──► transfers of the price ──► usage, and the lines that have paid
//
//	request ──► Credit: may its account pay? ──► served ──► PayRequests ──► usage, and transfers of what the lines owe
package flow

import (
	"errors"
	"math/bits"
	"time"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet"
)

// A Price is what a write of an object costs. The zero value means that writes are free.
type Price struct {
	PerMiB      uint64 // minor units for each started MiB, at least one
	Asset       string
	Payer       string        // account of the tenant that pays
	Beneficiary string        // account of the tenant that is credited
	HoldTTL     time.Duration // after which an interrupted write releases what it reserved
}

// IsFree reports whether writes cost nothing.
func (p Price) IsFree() bool { return p.PerMiB == 0 }

// Of returns the price of an object with a size in bytes.
func (p Price) Of(size uint64) types.Amount {
	started := max(1, (size+1<<20-1)>>20)
	hi, lo := bits.Mul64(started, p.PerMiB)
	return types.Amount{Hi: hi, Lo: lo}
}

// Reserve holds the price of an object before it is uploaded. The position of its record identifies the hold. Its
// problems are PaymentRequired if the available balance of the payer is less than the price, and those of a hold.
type Reserve struct {
	command.Header // its key is unique
	Size           uint64
}

// PaidPut stores an object and captures its price. If the put creates nothing, because the same object is stored
// under the name already, the hold is released. Its problems are those of the put, PaymentExpired if the hold is not
// active any more, AccountFrozen if the payer is, and PaymentRequired if it cannot be captured. Then neither the object nor the capture is recorded.
type PaidPut struct {
	storage.Put
	Hold types.TxID
	Key  types.Name // of the capture; unique
}

// Cancel releases the hold of a write that failed.
type Cancel struct {
	command.Header // its key is unique
	Hold           types.TxID
}

// ErrKey reports a command of a flow without a key.
var ErrKey = errors.New("flow: the command needs a key of its own")

// Plane is that of storage: its scope permits the flow.
func (*Reserve) Plane() types.Plane { return types.PlaneStorage }
func (*Cancel) Plane() types.Plane  { return types.PlaneStorage }

// ByNode returns true: the node releases what a write has reserved, also if the key of the write has ended meanwhile.
func (*Cancel) ByNode() bool { return true }

// ValidateFields returns why c is invalid.
func (c *Reserve) ValidateFields() error {
	if c.Size > storage.MaxObject {
		return storage.ErrSize
	}
	return checkKey(c.Header.Key)
}

// ValidateFields returns why c is invalid.
func (c *PaidPut) ValidateFields() error {
	if err := checkKey(c.Key); err != nil {
		return err
	}
	return c.Put.ValidateFields()
}

// ValidateFields returns why c is invalid.
func (c *Cancel) ValidateFields() error { return checkKey(c.Header.Key) }

func checkKey(k types.Name) error {
	if len(k.Text) == 0 || len(k.Text) > types.MaxKey {
		return ErrKey
	}
	return nil
}

// Seal computes the digests of c, outside of the step.
func (c *Reserve) Seal() { c.Header.Key.ID = digest.Name(c.Header.Key.Text) }

// Seal computes the digests of c, outside of the step.
func (c *PaidPut) Seal() {
	c.Put.Seal()
	c.Key.ID = digest.Name(c.Key.Text)
}

// Seal computes the digests of c, outside of the step.
func (c *Cancel) Seal() { c.Header.Key.ID = digest.Name(c.Header.Key.Text) }

// Paid decides the commands of paid writes. It stands in the place of the storage plane, which authorizes them.
type Paid struct {
	*storage.Plane
	price       Price
	asset       types.Name
	payer       types.Name
	beneficiary types.Name
	request     event.Request // scratch
	wallet      *wallet.Wallet
}

// New returns the flow of a price.
func New(p Price) Paid {
	name := func(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }
	return Paid{price: p, asset: name(p.Asset), payer: name(p.Payer), beneficiary: name(p.Beneficiary)}
}

// Over returns p as the plane that decides c, over the planes of a state: nil if c is not a command of the flow. While
// writes have a price, a Put without a payment is one: it may only repeat what is stored.
func (p *Paid) Over(c command.Command, objects plane.Plane, w *wallet.Wallet) plane.Plane {
	switch c.(type) {
	case *storage.Put:
		if p.price.IsFree() {
			return nil
		}
	case *Reserve, *PaidPut, *Cancel:
	default:
		return nil
	}
	p.Plane, _ = objects.(*storage.Plane)
	if p.wallet = w; p.Plane == nil {
		return nil
	}
	return p
}

// Cost is that of the operation on money, and of the put.
func (p *Paid) Cost(c command.Command) (cost command.Cost) {
	if put, ok := c.(*storage.Put); ok {
		return p.Plane.Cost(put)
	}
	p.request = event.Request{Item: event.Item{From: p.payer, To: p.beneficiary, Asset: p.asset}}
	if put, ok := c.(*PaidPut); ok {
		cost = p.Plane.Cost(&put.Put)
		p.request.Key = put.Key
	} else {
		p.request.Key = c.Head().Key
	}
	money := p.wallet.Cost(&p.request)
	return command.Cost{Rows: cost.Rows + money.Rows, Bytes: cost.Bytes + money.Bytes}
}

// Decide records what becomes of c.
func (p *Paid) Decide(at types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	if p.price.IsFree() {
		reply.Problem = event.BadRequest
		return
	}
	p.request = event.Request{Header: *c.Head(), Item: event.Item{From: p.payer, Asset: p.asset}}
	switch c := c.(type) {
	case *storage.Put:
		if reply.Problem = event.PaymentRequired; p.Keeps(c) {
			reply.Problem = event.None
			p.Plane.Decide(at, c, f, reply)
		}
	case *Reserve:
		p.reserve(at, c, f, reply)
	case *PaidPut:
		p.put(at, c, f, reply)
	case *Cancel:
		p.request.Op, p.request.Hold = event.Release, c.Hold
		p.decideMoney(at, f, reply)
	}
}

func (p *Paid) reserve(at types.Time, c *Reserve, f plane.Frame, reply *event.Reply) {
	in := &p.request
	has, held, next := p.wallet.Balance(at, c.Tenant, p.payer.ID, p.asset.ID)
	available, _ := has.Sub(held)
	in.Op, in.To, in.Amount, in.Nonce, in.ExpiresAt = event.Hold, p.beneficiary, p.price.Of(c.Size), next, at.Add(p.price.HoldTTL)
	if available.Less(in.Amount) {
		reply.Problem = event.PaymentRequired
		return
	}
	p.decideMoney(at, f, reply)
}

// put stores the object first, so that the hold is released if there is nothing new.
func (p *Paid) put(at types.Time, c *PaidPut, f plane.Frame, reply *event.Reply) {
	f.Savepoint()
	keeps := p.Keeps(&c.Put)
	p.Plane.Decide(at, &c.Put, f, reply)
	if reply.Problem != event.None {
		f.Undo()
		return
	}
	in, put := &p.request, reply.Position
	in.Key, in.Hash, in.Hold = c.Key, types.RequestHash{}, c.Hold
	if in.Op = event.Release; !keeps {
		in.Op, in.To, in.Amount = event.Capture, p.beneficiary, p.price.Of(c.Size)
	}
	if p.decideMoney(at, f, reply); reply.Problem != event.None {
		f.Undo()
		reply.Position, reply.Problem = types.Position{}, notCaptured(reply.Problem)
		return
	}
	f.Commit()
	reply.Position = put
}

// notCaptured returns the problem of a put, if the wallet rejects the end of its hold. That a hold has ended says nothing about the
// balance: a client that pays in would be rejected again.
func notCaptured(why event.Problem) event.Problem {
	switch why {
	case event.HoldNotActive:
		return event.PaymentExpired
	case event.AccountFrozen:
		return event.AccountFrozen
	default:
		return event.PaymentRequired
	}
}

func (p *Paid) decideMoney(at types.Time, f plane.Frame, reply *event.Reply) {
	decideMoney(p.wallet, &p.request, at, f, reply)
}

// decideMoney lets a wallet decide. A rejection that it recorded is a problem as well.
func decideMoney(w *wallet.Wallet, in *event.Request, at types.Time, f plane.Frame, reply *event.Reply) {
	w.Decide(at, in, f, reply)
	if r := f.Record(); reply.Problem == event.None && r.Kind == record.Rejected {
		reply.Position, reply.Problem = types.Position{}, r.Problem
	}
}

package httpapi

import (
	"context"
	"crypto/rand"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/storage"
	"macronode/core/types"
)

// A payment is what a write of an object has reserved. The zero value has reserved nothing.
type payment struct {
	hold types.TxID
	size uint64 // of the object
	used bool   // PaidPut has decided about the hold, or may have
}

// isFor reports whether p has reserved the price of an object with a size.
func (p *payment) isFor(size uint64) bool {
	return p.hold != types.TxID{} && p.size == size && !p.used
}

// reserve holds the price of an object with a size, before its content is read.
func (k *call) reserve(size uint64) error {
	if !k.Paid || k.payment.isFor(size) {
		return nil
	}
	k.release()
	reply := k.executeFlow(&flow.Reserve{Header: k.flowHeader(), Size: size})
	if reply.Problem != event.None {
		return problem(reply.Problem)
	}
	k.payment = payment{hold: types.NewTxID(k.Node.Journal(), reply.Position), size: size}
	return nil
}

// pay returns the command that stores an object. If the write has a price, the command captures the reserved
// amount.
func (k *call) pay(put *storage.Put) command.Command {
	if k.payment.hold == (types.TxID{}) {
		put.Seal()
		return put
	}
	k.payment.used = true
	paid := &flow.PaidPut{Put: *put, Hold: k.payment.hold, Key: flow.Key(rand.Text())}
	paid.Seal()
	return paid
}

// settle notes the outcome of the command of pay. A replay captures what the first request reserved, so the new
// reservation is released. One that has expired is released already.
func (k *call) settle(r *event.Reply) {
	mayHaveEnded := r.Problem == event.None || r.Problem == event.OutcomeUnknown || r.Problem == event.PaymentExpired
	if r.Replayed || !mayHaveEnded {
		k.payment.used = false
	}
}

// release releases an unused reservation. If the node stops before, the hold expires.
func (k *call) release() {
	if k.payment.used || k.payment.hold == (types.TxID{}) {
		return
	}
	k.payment.used = true
	by := k.flowHeader()
	by.Caller = 0 // the node: the key may have ended
	if reply := k.executeFlow(&flow.Cancel{Header: by, Hold: k.payment.hold}); reply.Problem != event.None {
		k.Log.Warn("hold of a failed write not released: it expires", "problem", reply.Problem.Code())
	}
}

// executeFlow lets the node decide. A client that leaves does not cancel it.
func (k *call) executeFlow(c interface {
	command.Command
	Seal()
}) event.Reply {
	c.Seal()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.r.Context()), k.Deadline)
	defer cancel()
	began := time.Now()
	reply, taken := k.Node.Execute(ctx, c)
	if !taken {
		return event.Reply{Problem: event.Busy}
	}
	k.Meter.Decided(time.Since(began))
	return reply
}

// flowHeader returns the header of a command with a new idempotency key.
func (k *call) flowHeader() command.Header {
	h := k.commandHeader()
	h.Key = flow.Key(rand.Text())
	return h
}

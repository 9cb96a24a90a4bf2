package httpapi

import (
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// item reads an item of a batch: the members of its operation, and no others.
func (s *saying) item(i *wire.BatchItem) (err error) {
	if s.op = itemOp(i.Op); s.op == 0 {
		return because(event.BadRequest, "op: is not an operation of a batch")
	}
	for _, m := range [...]struct {
		name string
		said bool
	}{
		{"hold_id", i.HoldId != nil}, {"from", i.From != nil}, {"to", i.To != nil}, {"beneficiary", i.Beneficiary != nil},
		{"asset", i.Asset != nil}, {"amount_minor", i.AmountMinor != nil}, {"nonce", i.Nonce != nil},
		{"expires_at", i.ExpiresAt != nil}, {"ref", i.Ref != nil}, {"memo", i.Memo != ""},
	} {
		if m.said && !strings.Contains(has(s.op), " "+m.name+" ") {
			return because(event.BadRequest, m.name+": is not accepted by this operation")
		}
	}
	s.memo = i.Memo
	if i.Nonce != nil {
		s.nonce = *i.Nonce
	}
	if i.ExpiresAt != nil {
		s.until = types.Time(i.ExpiresAt.UnixMilli())
	}
	if s.op == event.Capture || s.op == event.Release {
		if i.HoldId == nil {
			return because(event.BadRequest, "hold_id: is missing")
		}
		if s.hold, err = receipt.ParseHoldID(*i.HoldId); err != nil {
			return because(event.BadRequest, "hold_id: must be hold_ and 32 hexadecimal digits")
		}
	}
	for _, m := range [...]struct {
		to   *string
		said *string
		name string
	}{{&s.from, i.From, "from"}, {&s.to, i.To, "to"}, {&s.to, i.Beneficiary, "beneficiary"}, {&s.asset, i.Asset, "asset"},
		{&s.amount, i.AmountMinor, "amount_minor"}, {&s.ref, i.Ref, "ref"}} {
		if err := may(m.to, m.said, m.name); err != nil {
			return err
		}
	}
	return nil
}

// itemOp is an operation that a batch may have.
func itemOp(said wire.ItemOp) event.Op {
	for op := event.Issue; op <= event.Release; op++ {
		if op.String() == string(said) {
			return op
		}
	}
	return 0
}

package httpapi

import (
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// readItem reads an item of a batch. Members of other operations are rejected.
func (s *operationBody) readItem(i *wire.BatchItem) (err error) {
	if s.op = itemOp(i.Op); s.op == 0 {
		return problemDetail(event.BadRequest, "op: is not an operation of a batch")
	}
	for _, m := range [...]struct {
		name  string
		isSet bool
	}{
		{"hold_id", i.HoldId != nil}, {"from", i.From != nil}, {"to", i.To != nil}, {"beneficiary", i.Beneficiary != nil},
		{"asset", i.Asset != nil}, {"amount_minor", i.AmountMinor != nil}, {"nonce", i.Nonce != nil},
		{"expires_at", i.ExpiresAt != nil}, {"ref", i.Ref != nil}, {"memo", i.Memo != ""},
	} {
		if m.isSet && !strings.Contains(membersOf(s.op), " "+m.name+" ") {
			return problemDetail(event.BadRequest, m.name+": is not accepted by this operation")
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
			return problemDetail(event.BadRequest, "hold_id: is missing")
		}
		if s.hold, err = receipt.ParseHoldID(*i.HoldId); err != nil {
			return problemDetail(event.BadRequest, "hold_id: must be hold_ and 32 hexadecimal digits")
		}
	}
	for _, m := range [...]struct {
		to    *string
		value *string
		name  string
	}{{&s.from, i.From, "from"}, {&s.to, i.To, "to"}, {&s.to, i.Beneficiary, "beneficiary"}, {&s.asset, i.Asset, "asset"},
		{&s.amount, i.AmountMinor, "amount_minor"}, {&s.ref, i.Ref, "ref"}} {
		if err := setOptional(m.to, m.value, m.name); err != nil {
			return err
		}
	}
	return nil
}

// itemOp returns the operation of an item; 0: none.
func itemOp(values wire.ItemOp) event.Op {
	for op := event.Issue; op <= event.Release; op++ {
		if op.String() == string(values) {
			return op
		}
	}
	return 0
}

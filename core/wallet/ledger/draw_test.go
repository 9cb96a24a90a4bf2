package ledger_test

import (
	"math/big"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
	model "macronode/models/ledger"
)

// drawOp draws an operation that passes input validation.
func (w *walk) drawOp() model.Op {
	low := func(n int) int { return min(w.pick(n), w.pick(n), w.pick(n)) } // favour low numbers
	kinds := []string{"issue", "issue", "issue", "issue", "transfer", "transfer", "burn", "hold", "hold", "hold", "hold",
		"capture", "capture", "capture", "release"}
	if w.hoards {
		kinds = []string{"issue", "issue", "transfer", "hold", "hold", "hold", "hold", "hold", "hold", "hold", "capture"}
	}
	if w.pick(20) == 0 {
		kinds = []string{"freeze", "unfreeze", "unfreeze"}
	}
	o := model.Op{At: w.at, Tenant: tenants[low(len(tenants))], Kind: kinds[w.pick(len(kinds))],
		From: parties[low(len(parties))], To: parties[w.pick(len(parties))], Asset: assets[low(len(assets))]}
	if (o.Kind == "capture" || o.Kind == "release") && len(w.model.Active()) == 0 && w.pick(4) > 0 {
		o.Kind = "hold"
	}
	switch o.Kind {
	case "issue":
		o.From = ""
	case "freeze", "unfreeze":
		o.To, o.Asset = "", ""
		return o
	case "burn":
		o.To = ""
	case "hold":
		w.drawHold(&o)
	case "capture", "release":
		return w.drawHoldEnd(o)
	}
	w.separate(&o)
	_, next := w.model.Balance(o.Tenant, o.From, o.Asset)
	if o.Kind != "issue" {
		o.Nonce = next
		switch w.pick(8) {
		case 0:
			o.Nonce++
		case 1:
			o.Nonce = max(1, next-1)
		}
	}
	o.Amount = whole(w.amounts[w.pick(len(w.amounts))])
	if o.Kind != "issue" && w.pick(2) == 0 { // the balance, or a little more or less
		has, _ := w.model.Balance(o.Tenant, o.From, o.Asset)
		o.Amount = w.about(has.Sub(has, w.model.Kept(0, o.Tenant, o.From, o.Asset)))
	}
	if o.Kind == "hold" && w.hoards && w.pick(4) > 0 {
		o.Amount.SetInt64(1)
	}
	return o
}

// about returns n, n+1 or n-1, at least 1.
func (w *walk) about(n *big.Int) *big.Int {
	n = new(big.Int).Add(n, big.NewInt(int64(w.pick(3))-1))
	if n.Sign() <= 0 {
		n.SetInt64(1)
	}
	return n
}

// separate ensures that from and to differ.
func (w *walk) separate(o *model.Op) {
	if o.From == o.To {
		o.To = parties[0]
		if o.From == o.To {
			o.To = parties[1]
		}
	}
}

// drawHold draws the expiry, ID and beneficiary of a hold.
func (w *walk) drawHold(o *model.Op) {
	far := types.Time(types.MaxHoldDuration.Milliseconds())
	o.Until = w.at + []types.Time{1, 2, 3, 8, 8, day / 2, day, far, far - 1, far - 1, far - 1, far + 1, 0}[w.pick(13)]
	o.Until = max(o.Until, 1)
	o.Hold = types.NewTxID(types.JournalID(1+w.pick(3)), types.Position{LSN: types.LSN(1 + len(w.ids)), Index: uint16(w.pick(3))})
	if w.pick(3) > 0 {
		o.To = ""
	}
}

// drawHoldEnd draws the end of a hold, usually an active one.
func (w *walk) drawHoldEnd(o model.Op) model.Op {
	o.Hold = types.NewTxID(9, types.Position{LSN: 9})
	if len(w.ids) > 0 {
		o.Hold = w.ids[w.pick(len(w.ids))]
	}
	if active := w.model.Active(); len(active) > 0 && w.pick(10) > 0 {
		o.Hold = active[w.pick(len(active))]
	}
	h, active := w.model.Hold(o.Hold)
	if active && len(w.model.Active()) < 3 && w.pick(10) == 0 { // at its expiry, or just before; then others expire, too
		w.at = max(w.at, h.Until-types.Time(w.pick(2)))
		o.At = w.at
	}
	if active && w.pick(8) > 0 {
		o.Tenant, o.From, o.Asset = h.Tenant, h.From, h.Asset
		if h.To != "" && w.pick(8) > 0 {
			o.To = h.To
		}
	}
	w.separate(&o)
	o.Amount = whole(w.amounts[w.pick(len(w.amounts))])
	if active && w.pick(3) > 0 {
		o.Amount = w.about(h.Amount)
	}
	if o.Kind == "release" {
		o.To, o.Amount = "", nil
	}
	return o
}

func (w *walk) record(o model.Op) *record.Record {
	name := func(s string) (n types.Name) {
		if s != "" {
			n = types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)}
		}
		return n
	}
	r := &record.Record{Op: ops[o.Kind], Tenant: o.Tenant, Key: name("k"), From: name(o.From), To: name(o.To), Asset: name(o.Asset),
		Nonce: o.Nonce, ExpiresAt: o.Until, Hold: o.Hold}
	if o.Kind == "hold" {
		r.Hold = types.TxID{}
	}
	if o.Amount != nil {
		amount, err := types.ParseAmount(o.Amount.String())
		if err != nil {
			w.Fatalf("%v is not an amount", o.Amount)
		}
		r.Amount = amount
	}
	return r
}

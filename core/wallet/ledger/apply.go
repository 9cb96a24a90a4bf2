package ledger

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// Apply applies the record with an ID. It decides nothing; the results are in the record.
func (l *Ledger) Apply(at types.Time, id types.TxID, r *record.Record) {
	place, known := l.tenants.Find(r.Tenant)
	if !known {
		place = l.tenants.Put(r.Tenant, tenant{})
	}
	_, t := l.tenants.Row(place)
	t.seq = r.Seq
	switch r.Kind {
	case record.Posted:
		l.post(at, r, &t)
	case record.HoldOpened:
		l.openHold(id, r, &t)
	case record.HoldCaptured:
		l.closeHold(r, &t)
		from := holdingKey{l.accountRow(r.Tenant, r.From.ID, &t), l.assetRow(r.Tenant, r.Asset.ID, &t)}
		l.applyDebit(at, from, r, &t)
		l.credit(from.asset, r, &t)
	case record.HoldReleased, record.HoldExpired:
		l.closeHold(r, &t)
	case record.FreezeChanged:
		l.setFrozen(r, &t)
	default:
		types.Assert(false, "ledger: applies what it does not count")
	}
	l.tenants.Set(place, t)
}

// post applies an issue, a transfer or a burn.
func (l *Ledger) post(at types.Time, r *record.Record, t *tenant) {
	place := l.assetRow(r.Tenant, r.Asset.ID, t)
	if r.Op != event.Transfer { // a transfer does not change the supply
		_, kind := l.assets.Row(place)
		if r.Op == event.Burn {
			kind.burned = r.ToBalance
		} else {
			kind.issued, kind.issuedToday, kind.day = r.FromBalance, r.DebitedToday, at.Day()
		}
		l.assets.Set(place, kind)
	}
	if r.Op != event.Issue {
		from := l.accountRow(r.Tenant, r.From.ID, t)
		l.setNonce(from, r.Nonce)
		l.applyDebit(at, holdingKey{from, place}, r, t)
	}
	if r.Op != event.Burn {
		l.credit(place, r, t)
	}
}

// setNonce sets the last used nonce of an account.
func (l *Ledger) setNonce(place uint32, nonce types.Nonce) {
	_, p := l.accounts.Row(place)
	a := p.unpack()
	a.nonce = nonce
	l.accounts.Set(place, a.pack())
}

func (l *Ledger) setFrozen(r *record.Record, t *tenant) {
	place := l.accountRow(r.Tenant, r.From.ID, t)
	_, p := l.accounts.Row(place)
	a := p.unpack()
	a.frozen = r.Op == event.Freeze
	l.accounts.Set(place, a.pack())
}

func (l *Ledger) applyDebit(at types.Time, k holdingKey, r *record.Record, t *tenant) {
	place := l.holdingRow(k, t)
	_, v := l.holdings.Row(place)
	v.balance, v.debitedToday, v.day = r.FromBalance, r.DebitedToday, at.Day()
	l.holdings.Set(place, v)
}

func (l *Ledger) credit(asset uint32, r *record.Record, t *tenant) {
	place := l.holdingRow(holdingKey{l.accountRow(r.Tenant, r.To.ID, t), asset}, t)
	_, v := l.holdings.Row(place)
	v.balance = r.ToBalance
	l.holdings.Set(place, v)
}

// openHold adds a hold to its account.
func (l *Ledger) openHold(id types.TxID, r *record.Record, t *tenant) {
	if _, known := l.holds.rows.Find(id); known {
		return
	}
	of := holdingKey{l.accountRow(r.Tenant, r.From.ID, t), l.assetRow(r.Tenant, r.Asset.ID, t)}
	_, p := l.accounts.Row(of.account)
	a := p.unpack()
	a.nonce = r.Nonce
	a.firstHold = l.holds.add(id, hold{amount: r.Amount, expiresAt: r.ExpiresAt, to: r.To.ID, holding: of}, a.firstHold)
	a.holds++
	t.holds++
	l.accounts.Set(of.account, a.pack())
	l.setHeld(of, r.HeldBalance, t)
}

// closeHold removes a hold, however it ends.
func (l *Ledger) closeHold(r *record.Record, t *tenant) {
	place, known := l.holds.rows.Find(r.Hold)
	if !known {
		return
	}
	_, v := l.holds.rows.Row(place)
	_, p := l.accounts.Row(v.holding.account)
	a := p.unpack()
	a.firstHold = l.holds.remove(place, a.firstHold)
	a.holds--
	t.holds--
	l.accounts.Set(v.holding.account, a.pack())
	l.setHeld(v.holding, r.HeldBalance, t)
}

// setHeld sets the held amount of a holding and updates that of its asset.
func (l *Ledger) setHeld(of holdingKey, now types.Amount, t *tenant) {
	place := l.holdingRow(of, t)
	_, v := l.holdings.Row(place)
	_, kind := l.assets.Row(of.asset)
	rest, _ := kind.held.Sub(v.held) // M6: at most the held amount of the asset
	kind.held, _ = rest.Add(now)
	v.held = now
	l.assets.Set(of.asset, kind)
	l.holdings.Set(place, v)
}

// accountRow, assetRow and holdingRow return the place of a row and create the row if it is missing.
func (l *Ledger) accountRow(of types.Tenant, id types.NameHash, t *tenant) uint32 {
	k := nameKey{of, id}
	at, known := l.accounts.Find(k)
	if !known {
		at = l.accounts.Put(k, packedAccount{})
		l.placement.accounts += k.placeHash(at)
		t.accounts++
	}
	return at
}

func (l *Ledger) assetRow(of types.Tenant, id types.NameHash, t *tenant) uint32 {
	k := nameKey{of, id}
	at, known := l.assets.Find(k)
	if !known {
		at = l.assets.Put(k, asset{})
		l.placement.assets += k.placeHash(at)
		t.assets++
	}
	return at
}

func (l *Ledger) holdingRow(k holdingKey, t *tenant) uint32 {
	at, known := l.holdings.Find(k)
	if !known {
		at = l.holdings.Put(k, holding{})
		t.holdings++
	}
	return at
}

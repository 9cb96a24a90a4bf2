package ledger

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// Apply makes the record with an id so. It decides nothing: what it is told once more,
// it has.
func (l *Ledger) Apply(at words.Time, id words.TxID, r *record.Record) {
	place, known := l.tenants.Find(r.Tenant)
	if !known {
		place = l.tenants.Put(r.Tenant, tenant{})
	}
	_, t := l.tenants.Row(place)
	t.seq = r.Seq
	switch r.Kind {
	case record.Moved:
		l.moved(at, r, &t)
	case record.Held:
		l.opened(id, r, &t)
	case record.Captured:
		l.ended(r, &t)
		from := pair{l.account(r.Tenant, r.From.ID, &t), l.asset(r.Tenant, r.Asset.ID, &t)}
		l.debited(at, from, r, &t)
		l.credited(from.asset, r, &t)
	case record.Released, record.Lapsed:
		l.ended(r, &t)
	case record.Frozen:
		l.frozen(r, &t)
	default:
		words.Assert(false, "ledger: applies what it does not count")
	}
	l.tenants.Set(place, t)
}

// moved is an issue, a transfer or a burn.
func (l *Ledger) moved(at words.Time, r *record.Record, t *tenant) {
	place := l.asset(r.Tenant, r.Asset.ID, t)
	if r.Op != event.Transfer { // which is of what there is
		_, kind := l.assets.Row(place)
		if r.Op == event.Burn {
			kind.burned = r.ToNow
		} else {
			kind.issued, kind.spent, kind.day = r.FromNow, r.Spent, at.Day()
		}
		l.assets.Set(place, kind)
	}
	if r.Op != event.Issue {
		from := l.account(r.Tenant, r.From.ID, t)
		l.paid(from, r.Nonce)
		l.debited(at, pair{from, place}, r, t)
	}
	if r.Op != event.Burn {
		l.credited(place, r, t)
	}
}

// paid notes the nonce that an account has used.
func (l *Ledger) paid(place uint32, nonce words.Nonce) {
	_, p := l.accounts.Row(place)
	a := p.open()
	a.nonce = nonce
	l.accounts.Set(place, a.pack())
}

func (l *Ledger) frozen(r *record.Record, t *tenant) {
	place := l.account(r.Tenant, r.From.ID, t)
	_, p := l.accounts.Row(place)
	a := p.open()
	a.frozen = r.Op == event.Freeze
	l.accounts.Set(place, a.pack())
}

func (l *Ledger) debited(at words.Time, k pair, r *record.Record, t *tenant) {
	place := l.holding(k, t)
	_, v := l.holdings.Row(place)
	v.balance, v.spent, v.day = r.FromNow, r.Spent, at.Day()
	l.holdings.Set(place, v)
}

func (l *Ledger) credited(asset uint32, r *record.Record, t *tenant) {
	place := l.holding(pair{l.account(r.Tenant, r.To.ID, t), asset}, t)
	_, v := l.holdings.Row(place)
	v.balance = r.ToNow
	l.holdings.Set(place, v)
}

// opened adds a hold to those of its account.
func (l *Ledger) opened(id words.TxID, r *record.Record, t *tenant) {
	if _, known := l.holds.rows.Find(id); known {
		return
	}
	of := pair{l.account(r.Tenant, r.From.ID, t), l.asset(r.Tenant, r.Asset.ID, t)}
	_, p := l.accounts.Row(of.account)
	a := p.open()
	a.nonce = r.Nonce
	a.first = l.holds.put(id, hold{amount: r.Amount, until: r.Until, to: r.To.ID, of: of}, a.first)
	a.holds++
	t.holds++
	l.accounts.Set(of.account, a.pack())
	l.kept(of, r.HeldNow, t)
}

// ended lets go of a hold, whichever way it ends.
func (l *Ledger) ended(r *record.Record, t *tenant) {
	place, known := l.holds.rows.Find(r.Hold)
	if !known {
		return
	}
	_, v := l.holds.rows.Row(place)
	_, p := l.accounts.Row(v.of.account)
	a := p.open()
	a.first = l.holds.drop(place, a.first)
	a.holds--
	t.holds--
	l.accounts.Set(v.of.account, a.pack())
	l.kept(v.of, r.HeldNow, t)
}

// kept sets what is held of a holding, and carries it to its asset.
func (l *Ledger) kept(of pair, now words.Amount, t *tenant) {
	place := l.holding(of, t)
	_, v := l.holdings.Row(place)
	_, kind := l.assets.Row(of.asset)
	rest, _ := kind.held.Minus(v.held) // M6: ≤ all that is held
	kind.held, _ = rest.Plus(now)
	v.held = now
	l.assets.Set(of.asset, kind)
	l.holdings.Set(place, v)
}

// account, asset and holding are the places of rows, which are made if there are none.
func (l *Ledger) account(of words.Tenant, id words.ID, t *tenant) uint32 {
	k := named{of, id}
	at, known := l.accounts.Find(k)
	if !known {
		at = l.accounts.Put(k, packed{})
		l.placed.accounts += k.at(at)
		t.accounts++
	}
	return at
}

func (l *Ledger) asset(of words.Tenant, id words.ID, t *tenant) uint32 {
	k := named{of, id}
	at, known := l.assets.Find(k)
	if !known {
		at = l.assets.Put(k, asset{})
		l.placed.assets += k.at(at)
		t.assets++
	}
	return at
}

func (l *Ledger) holding(k pair, t *tenant) uint32 {
	at, known := l.holdings.Find(k)
	if !known {
		at = l.holdings.Put(k, holding{})
		t.holdings++
	}
	return at
}

package trace

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// moves is Move, and every amount is what the one before and the asked one make.
func (m *money) moves(at words.Place, r *record.Record) error {
	if r.Kind == record.Frozen {
		return nil
	}
	of := holding{r.Tenant, string(r.From.Text), string(r.Asset.Text)}
	ended, err := m.ends(at, r, of)
	if err != nil {
		return err
	}
	if r.Kind == record.Lapsed {
		of = ended.of
	}
	if r.Kind == record.Moved && r.Op != event.Issue || r.Kind == record.Held {
		a := account{r.Tenant, of.name}
		if r.Nonce != m.nonce[a]+1 {
			return broken("NonceExact", "%v uses nonce %d after %d", at, r.Nonce, m.nonce[a])
		}
		m.nonce[a] = r.Nonce
	}
	p := m.purses[of]
	if r.Kind != record.Moved {
		if r.Kind == record.Held {
			m.holds[at] = hold{of, r.Amount, r.Until}
			if sum, fits := p.held.Plus(r.Amount); !fits || sum != r.HeldNow {
				return broken("HeldIsSum", "%v: %v and %v are %v", at, p.held, r.Amount, r.HeldNow)
			}
		} else if rest, enough := p.held.Minus(ended.amount); !enough || rest != r.HeldNow {
			return broken("HeldIsSum", "%v: %v less %v are %v", at, p.held, ended.amount, r.HeldNow)
		}
		p.held = r.HeldNow
		if p.has.Less(p.held) {
			return broken("Covered", "%v: %v held of %v", at, p.held, p.has)
		}
		m.purses[of] = p
	}
	if r.Kind == record.Moved || r.Kind == record.Captured {
		return m.pays(at, r, of)
	}
	return nil
}

// ends is a hold that ends: once, in its time, and for no more than it holds.
func (m *money) ends(at words.Place, r *record.Record, of holding) (h hold, err error) {
	if r.Kind != record.Lapsed && r.Kind != record.Captured && r.Kind != record.Released {
		return hold{}, nil
	}
	h, ok := m.holds[r.Hold.Place()]
	delete(m.holds, r.Hold.Place())
	switch due := h.until <= m.at; {
	case !ok || r.Kind != record.Lapsed && h.of != of:
		return h, broken("EndsOnce", "%v ends the hold of %v, active %v", at, r.Hold.Place(), ok)
	case due && r.Kind != record.Lapsed:
		return h, broken("NoneWhenDue", "%v ends at %d what was held until %d", at, m.at, h.until)
	case !due && r.Kind == record.Lapsed:
		return h, broken("NoneBeforeDue", "%v lapses at %d, and is held until %d", at, m.at, h.until)
	case r.Kind == record.Captured && h.amount.Less(r.Amount):
		return h, broken("CapturedWithin", "%v takes %v of %v", at, r.Amount, h.amount)
	}
	return h, nil
}

// pays takes from one side and gives to the other.
func (m *money) pays(at words.Place, r *record.Record, of holding) error {
	a := asset{r.Tenant, of.asset}
	s := m.supply[a]
	if r.Op == event.Issue {
		sum, fits := s.issued.Plus(r.Amount)
		if !fits || sum != r.FromNow {
			return broken("Conservation", "%v: issued %v and %v are %v", at, s.issued, r.Amount, r.FromNow)
		}
		s.issued = sum
		if err := m.spends(at, r, &s.today, m.perDay[1]); err != nil {
			return err
		}
	} else {
		p := m.purses[of]
		rest, enough := p.has.Minus(r.Amount)
		if !enough || rest.Less(p.held) {
			return broken("NonNegative", "%v takes %v of %v, of which %v is held", at, r.Amount, p.has, p.held)
		}
		if rest != r.FromNow {
			return broken("Conservation", "%v: %v less %v is %v", at, p.has, r.Amount, r.FromNow)
		}
		p.has = rest
		if err := m.spends(at, r, &p.today, m.perDay[0]); err != nil {
			return err
		}
		m.purses[of] = p
		s.there, _ = s.there.Minus(r.Amount)
	}
	if r.Op == event.Burn {
		sum, fits := s.burned.Plus(r.Amount)
		if !fits || sum != r.ToNow {
			return broken("Conservation", "%v: burned %v and %v are %v", at, s.burned, r.Amount, r.ToNow)
		}
		s.burned = sum
	} else {
		to := holding{r.Tenant, string(r.To.Text), of.asset}
		if to == of {
			return broken("Conservation", "%v: %s pays himself", at, to.name)
		}
		p := m.purses[to]
		sum, fits := p.has.Plus(r.Amount)
		if !fits || sum != r.ToNow {
			return broken("Conservation", "%v: %v and %v are %v", at, p.has, r.Amount, r.ToNow)
		}
		p.has = sum
		m.purses[to] = p
		s.there, _ = s.there.Plus(r.Amount)
	}
	if all, fits := s.there.Plus(s.burned); !fits || all != s.issued {
		return broken("Conservation", "%v: %v there, %v burned, %v issued", at, s.there, s.burned, s.issued)
	}
	m.supply[a] = s
	return nil
}

// spends is Pay: no day has more than may leave in one.
func (m *money) spends(at words.Place, r *record.Record, today *sent, most words.Amount) error {
	if day := m.at / clockDay; day != today.day {
		*today = sent{day: day}
	}
	sum, fits := today.sum.Plus(r.Amount)
	if today.sum = sum; !fits || most.Less(sum) || sum != r.Spent {
		return broken("DayCeiling", "%v: %v of %v left on day %d, and it says %v", at, sum, most, today.day, r.Spent)
	}
	return nil
}

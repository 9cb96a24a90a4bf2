package trace

import (
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// moves is Move: every amount follows from the state before and the request.
func (m *money) moves(at types.Position, r *record.Record) error {
	if r.Kind == record.FreezeChanged {
		return nil
	}
	of := holding{r.Tenant, string(r.From.Text), string(r.Asset.Text)}
	ended, err := m.ends(at, r, of)
	if err != nil {
		return err
	}
	if r.Kind == record.HoldExpired {
		of = ended.of
	}
	if r.Kind == record.Posted && r.Op != event.Issue || r.Kind == record.HoldOpened {
		a := account{r.Tenant, of.name}
		if r.Nonce != m.nonce[a]+1 {
			return broken("NonceExact", "%v uses nonce %d after %d", at, r.Nonce, m.nonce[a])
		}
		m.nonce[a] = r.Nonce
	}
	p := m.accountState[of]
	if r.Kind != record.Posted {
		if r.Kind == record.HoldOpened {
			m.holds[at] = hold{of, r.Amount, r.ExpiresAt}
			if sum, fits := p.held.Add(r.Amount); !fits || sum != r.HeldBalance {
				return broken("HeldIsSum", "%v: %v and %v are %v", at, p.held, r.Amount, r.HeldBalance)
			}
		} else if rest, enough := p.held.Sub(ended.amount); !enough || rest != r.HeldBalance {
			return broken("HeldIsSum", "%v: %v less %v are %v", at, p.held, ended.amount, r.HeldBalance)
		}
		p.held = r.HeldBalance
		if p.has.Less(p.held) {
			return broken("Covered", "%v: %v held of %v", at, p.held, p.has)
		}
		if err := m.reserves(at, r, &p); err != nil {
			return err
		}
		m.accountState[of] = p
	}
	if r.Kind == record.Posted || r.Kind == record.HoldCaptured {
		return m.pays(at, r, of)
	}
	return nil
}

// ends checks the end of a hold: once, in time, and for at most the held amount.
func (m *money) ends(at types.Position, r *record.Record, of holding) (h hold, err error) {
	if r.Kind != record.HoldExpired && r.Kind != record.HoldCaptured && r.Kind != record.HoldReleased {
		return hold{}, nil
	}
	h, ok := m.holds[r.Hold.Position()]
	delete(m.holds, r.Hold.Position())
	switch due := h.until <= m.at; {
	case !ok || r.Kind != record.HoldExpired && h.of != of:
		return h, broken("EndsOnce", "%v ends the hold of %v, active %v", at, r.Hold.Position(), ok)
	case due && r.Kind != record.HoldExpired:
		return h, broken("NoneWhenDue", "%v ends at %d a hold that expires at %d", at, m.at, h.until)
	case !due && r.Kind == record.HoldExpired:
		return h, broken("NoneBeforeDue", "%v lapses at %d, and is held until %d", at, m.at, h.until)
	case r.Kind == record.HoldCaptured && h.amount.Less(r.Amount):
		return h, broken("CapturedWithin", "%v takes %v of %v", at, r.Amount, h.amount)
	}
	return h, nil
}

// pays debits one side and credits the other.
func (m *money) pays(at types.Position, r *record.Record, of holding) error {
	a := asset{r.Tenant, of.asset}
	s := m.supply[a]
	if r.Op == event.Issue {
		sum, fits := s.issued.Add(r.Amount)
		if !fits || sum != r.FromBalance {
			return broken("Conservation", "%v: issued %v and %v are %v", at, s.issued, r.Amount, r.FromBalance)
		}
		s.issued = sum
		if err := m.spends(at, r, &s.today, m.perDay[1]); err != nil {
			return err
		}
	} else {
		p := m.accountState[of]
		rest, enough := p.has.Sub(r.Amount)
		if !enough || rest.Less(p.held) {
			return broken("NonNegative", "%v takes %v of %v, of which %v is held", at, r.Amount, p.has, p.held)
		}
		if rest != r.FromBalance {
			return broken("Conservation", "%v: %v less %v is %v", at, p.has, r.Amount, r.FromBalance)
		}
		p.has = rest
		if err := m.spends(at, r, &p.today, m.perDay[0]); err != nil {
			return err
		}
		if err := m.reserves(at, r, &p); err != nil {
			return err
		}
		m.accountState[of] = p
		s.there, _ = s.there.Sub(r.Amount)
	}
	if r.Op == event.Burn {
		sum, fits := s.burned.Add(r.Amount)
		if !fits || sum != r.ToBalance {
			return broken("Conservation", "%v: burned %v and %v are %v", at, s.burned, r.Amount, r.ToBalance)
		}
		s.burned = sum
	} else {
		to := holding{r.Tenant, string(r.To.Text), of.asset}
		if to == of {
			return broken("Conservation", "%v: %s pays himself", at, to.name)
		}
		p := m.accountState[to]
		sum, fits := p.has.Add(r.Amount)
		if !fits || sum != r.ToBalance {
			return broken("Conservation", "%v: %v and %v are %v", at, p.has, r.Amount, r.ToBalance)
		}
		p.has = sum
		m.accountState[to] = p
		s.there, _ = s.there.Add(r.Amount)
	}
	if all, fits := s.there.Add(s.burned); !fits || all != s.issued {
		return broken("Conservation", "%v: %v there, %v burned, %v issued", at, s.there, s.burned, s.issued)
	}
	m.supply[a] = s
	return nil
}

// reserves is the daily limit of an account: what left today and what is held are at most the limit. So no capture exceeds it.
func (m *money) reserves(at types.Position, r *record.Record, p *accountState) error {
	var today types.Amount
	if p.today.day == m.at/clockDay {
		today = p.today.sum
	}
	if sum, fits := today.Add(p.held); !fits || m.perDay[0].Less(sum) {
		return broken("DayCeiling", "%v, a %v: %v left today and %v held, of %v", at, r.Op, today, p.held, m.perDay[0])
	}
	return nil
}

// spends is Pay: the daily limit holds.
func (m *money) spends(at types.Position, r *record.Record, today *sent, most types.Amount) error {
	if day := m.at / clockDay; day != today.day {
		*today = sent{day: day}
	}
	sum, fits := today.sum.Add(r.Amount)
	if today.sum = sum; !fits || most.Less(sum) || sum != r.DebitedToday {
		return broken("DayCeiling", "%v: %v of %v spent on day %d, the record has %v", at, sum, most, today.day, r.DebitedToday)
	}
	return nil
}

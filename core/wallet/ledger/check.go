package ledger

import (
	"errors"
	"fmt"

	"macronode/core/types"
)

// Check returns the first invariant that does not hold. It visits every row.
func (l *Ledger) Check() error {
	err := errors.Join(l.tenants.Check(), l.accounts.Check(), l.assets.Check(), l.holdings.Check())
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := errors.Join(l.holds.check(), l.checkRings()); err != nil {
		return err
	}
	if err := errors.Join(l.checkMoney(), l.checkHeld()); err != nil {
		return err
	}
	return l.checkCounts()
}

// checkMoney compares the balances of each asset with the amount issued.
func (l *Ledger) checkMoney() error {
	had := make([]types.Amount, l.assets.Len())
	for i := range l.holdings.Len() {
		k, v := l.holdings.Row(uint32(i))
		sum, ok := had[k.asset].Add(v.balance)
		if had[k.asset] = sum; !ok {
			return errors.New("M1: balances overflow")
		}
	}
	for i := range l.assets.Len() {
		k, s := l.assets.Row(uint32(i))
		sum, ok := had[i].Add(s.burned)
		if !ok || sum != s.issued || types.MaxSupply().Less(s.issued) {
			return fmt.Errorf("M1: tenant %d: issued %v, held and burned %v", k.tenant, s.issued, sum)
		}
	}
	return nil
}

// checkHeld compares the held amounts with the active holds.
func (l *Ledger) checkHeld() error {
	of, all := make([]types.Amount, l.holdings.Len()), make([]types.Amount, l.assets.Len())
	for _, e := range l.holds.heap {
		_, v := l.holds.rows.Row(e.place)
		place, ok := l.holdings.Find(v.holding)
		if !ok {
			return fmt.Errorf("M6: a hold of %v is of no holding", v.holding)
		}
		if of[place], ok = of[place].Add(v.amount); !ok {
			return errors.New("M6: holds overflow")
		}
	}
	for i := range of {
		k, v := l.holdings.Row(uint32(i))
		if of[i] != v.held || v.balance.Less(v.held) {
			return fmt.Errorf("M6: %v holds %v of %v, its holds are of %v", k, v.held, v.balance, of[i])
		}
		all[k.asset], _ = all[k.asset].Add(v.held) // M1: ≤ the balances
	}
	for i := range all {
		if k, s := l.assets.Row(uint32(i)); s.held != all[i] {
			return fmt.Errorf("M6: tenant %d: held %v, its holdings %v", k.tenant, s.held, all[i])
		}
	}
	return nil
}

// checkRings checks the ring of holds of each account.
func (l *Ledger) checkRings() error {
	for i := range l.accounts.Len() {
		_, p := l.accounts.Row(uint32(i))
		a, walked := p.unpack(), uint32(0)
		for at := a.firstHold; at > 0; at = l.holds.next(at, a.firstHold) {
			_, v := l.holds.rows.Row(at - 1)
			last := at != a.firstHold && l.holds.before(at-1, l.holds.links[at-1].before)
			if walked++; v.holding.account != uint32(i) || last || walked > a.holds {
				return fmt.Errorf("M7: hold %d of account %d, at %d, is out of its ring", walked, i, at)
			}
		}
		if walked != a.holds {
			return fmt.Errorf("M7: account %d counts %d holds, its ring has %d", i, a.holds, walked)
		}
	}
	return nil
}

// checkCounts checks the counts of each tenant and the sum over places.
func (l *Ledger) checkCounts() error {
	counts := make([]tenant, l.tenants.Len())
	var noTenant tenant
	of := func(t types.Tenant) *tenant {
		if at, ok := l.tenants.Find(t); ok {
			return &counts[at]
		}
		return &noTenant
	}
	var placed placement
	for i := range l.assets.Len() {
		k, _ := l.assets.Row(uint32(i))
		placed.assets += k.placeHash(uint32(i))
		of(k.tenant).assets++
	}
	for i := range l.accounts.Len() {
		k, p := l.accounts.Row(uint32(i))
		placed.accounts += k.placeHash(uint32(i))
		t := of(k.tenant)
		t.accounts++
		t.holds += p.unpack().holds
	}
	for i := range l.holdings.Len() {
		k, _ := l.holdings.Row(uint32(i))
		owner, _ := l.accounts.Row(k.account)
		of(owner.tenant).holdings++
	}
	if noTenant != (tenant{}) {
		return fmt.Errorf("M4: no tenant has %+v", noTenant)
	}
	if placed != l.placement {
		return fmt.Errorf("M5: placed is %x, has %x", placed, l.placement)
	}
	for i, want := range counts {
		id, t := l.tenants.Row(uint32(i))
		want.seq = t.seq
		if t != want {
			return fmt.Errorf("M4: tenant %d counts %+v, has %+v", id, t, want)
		}
	}
	return nil
}

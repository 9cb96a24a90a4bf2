package metering

import (
	"context"
	"maps"
	"slices"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// An arrearsWatch finds tenants that owe for prepaid usage and from which nothing collects that: a reload or a start has removed their
// terms, or a price.
type arrearsWatch struct {
	collected map[types.Tenant]*flow.Terms // those of the last flush; nil: there was none
	prices    *flow.Terms                  // those of the last flush, and then those before, which name what was removed
	before    *flow.Terms
	owe       map[types.Tenant]bool
}

// Uncollected returns the number of tenants that owe for prepaid usage that nothing collects.
func (m *Recorder) Uncollected() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.arrears.owe)
}

// payArrears pays for usage of which the price is due: it was recorded in the frame of its effect, or when the account had too little.
func (m *Recorder) payArrears(ctx context.Context) {
	collect := m.Collected
	if collect == nil {
		collect = m.Prepaid
	}
	collected := collect()
	for t, terms := range collected {
		owes := false
		m.mu.Lock()
		m.Read(func(b flow.Books) { owes = m.credit.HasPayable(m.Status().At, t, terms, b) })
		m.mu.Unlock()
		if owes {
			m.pay(ctx, accounting.RecordMetered{Header: command.Header{Tenant: t}}, terms) // what it does not pay is due next time
		}
	}
	m.watchArrears(collected)
	m.watchRoom(len(collected) > 0)
}

// watchRoom logs when prepaid tenants have no room for another line, once until they have.
func (m *Recorder) watchRoom(hasTenants bool) {
	if !hasTenants {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Read(func(b flow.Books) {
		isFull := b.Usage.LineShortage(1).Limit != event.NoLimit
		if isFull && !m.isFull {
			m.Log.Warn("no room for another line of prepaid usage: requests of prepaid tenants that need one are rejected; raise accounting.max_prepaid_lines", "lines", b.Usage.LineCount())
		}
		m.isFull = isFull
	})
}

// watchArrears logs which tenants owe what nothing collects any more, once until it is collected. It looks after a start, after a reload,
// and while a tenant owes. Before the node has recovered, nothing is known.
func (m *Recorder) watchArrears(collected map[types.Tenant]*flow.Terms) {
	if m.Prices == nil || m.Status().At == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w, prices := &m.arrears, m.Prices()
	if w.collected != nil && prices == w.prices && maps.Equal(collected, w.collected) && len(w.owe) == 0 {
		return
	}
	if prices != w.prices {
		w.prices, w.before = prices, w.prices
	}
	w.collected = collected
	was := w.owe
	w.owe = make(map[types.Tenant]bool)
	m.Read(func(b flow.Books) {
		all := b.Uncollected(collected)
		for _, t := range slices.Sorted(maps.Keys(all)) {
			w.owe[t] = true
			for _, due := range all[t] {
				if !was[t] {
					price, asset := w.nameOf(due.Price)
					m.Log.Warn("prepaid usage is due, and no entry of accounting.prepaid collects it", "tenant", t, "price", price, "asset", asset, "amount_minor", due.Amount)
				}
			}
		}
	})
}

// nameOf returns the name and the asset of the price of a line, as far as they are known.
func (w *arrearsWatch) nameOf(line types.NameHash) (price, asset string) {
	for _, t := range [...]*flow.Terms{w.prices, w.before} {
		if t == nil {
			continue
		}
		if price, asset, ok := t.Name(line); ok {
			return price, asset
		}
	}
	return "removed", "unknown"
}

package metering

import (
	"context"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/flow"
	"macronode/core/types"
)

// An arrearsWatch finds tenants that owe for prepaid usage and from which nothing collects that: a reload has removed their terms, or a
// price.
type arrearsWatch struct {
	seen map[types.Tenant]*flow.Terms // that collected at the last flush; nil: there was none
	owe  map[types.Tenant]*flow.Terms // by which they owe
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
}

// watchArrears logs which tenants owe what nothing collects any more, once until it is collected. Before the node has recovered, nothing
// is known.
func (m *Recorder) watchArrears(collected map[types.Tenant]*flow.Terms) {
	at := m.Status().At
	if at == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Read(func(b flow.Books) {
		w := &m.arrears
		dueOf := func(t types.Tenant, was *flow.Terms) []flow.Due {
			return m.credit.Uncollected(at, t, was, collected[t], b)
		}
		for t, was := range w.owe {
			if len(dueOf(t, was)) == 0 {
				delete(w.owe, t)
			}
		}
		for t, was := range m.lost(collected, b) {
			all := dueOf(t, was)
			if len(all) == 0 || w.owe[t] != nil {
				continue
			}
			w.owe[t] = was
			for _, due := range all {
				m.Log.Warn("prepaid usage is due, and no entry of accounting.prepaid collects it", "tenant", t, "asset", due.Asset, "amount_minor", due.Amount)
			}
		}
		w.seen = collected
	})
}

// lost returns the terms that collected before, and collect no more or have changed. At the first time it returns the price list for
// each tenant without terms that has lines.
func (m *Recorder) lost(collected map[types.Tenant]*flow.Terms, b flow.Books) map[types.Tenant]*flow.Terms {
	all := make(map[types.Tenant]*flow.Terms)
	if m.arrears.seen == nil {
		if m.Prices == nil {
			return nil
		}
		prices := m.Prices()
		b.EachWithLines(func(t types.Tenant) {
			if collected[t] == nil {
				all[t] = prices
			}
		})
		return all
	}
	for t, was := range m.arrears.seen {
		if collected[t] != was {
			all[t] = was
		}
	}
	return all
}

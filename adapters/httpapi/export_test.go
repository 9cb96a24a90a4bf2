package httpapi

import "macronode/core/types"

// Missing is exported for cases that the fakes cannot produce.
var Missing = missing

// HistoryWaits returns how many large pages and parts of streams wait for a slot.
func (a *API) HistoryWaits() int {
	a.historyReads.mu.Lock()
	defer a.historyReads.mu.Unlock()
	return len(a.historyReads.waits)
}

// TakeHistoryReads takes all slots that a tenant can have, until release is called.
func (a *API) TakeHistoryReads(t types.Tenant) (release func()) {
	n := 0
	for a.historyReads.take(t) {
		n++
	}
	return func() {
		for range n {
			a.historyReads.give(t)
		}
	}
}

package metrics

// Metered counts requests that the node metered, with their outcome.
func (w *Wallet) Metered(outcome string, requests uint64) {
	w.of.counter("metered_requests_total", outcome).Add(float64(requests))
}

// PrepaidRejected counts a request that was rejected because its account cannot pay for it or for its usage events.
func (w *Wallet) PrepaidRejected() { w.of.counter("prepaid_rejected_total").Inc() }

// Usage counts the events of a request: the new ones, those that were recorded before, and of the new ones those that
// came late.
func (w *Wallet) Usage(recorded, duplicate, late uint64) {
	w.of.counter("usage_events_total", "recorded").Add(float64(recorded))
	w.of.counter("usage_events_total", "duplicate").Add(float64(duplicate))
	w.of.counter("late_events_total").Add(float64(late))
}

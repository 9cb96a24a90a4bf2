package httpapi

import "time"

// maxHistoryReads is the number of large pages and parts of streams that are read and rendered at the same time. Each takes a processor,
// and those of many requests together must not keep the node from its work. They are sent without a slot: a slow client keeps none.
const maxHistoryReads = 2

// HistoryReads returns how many large pages and parts of streams are read, and how many may be.
func (a *API) HistoryReads() (depth, limit int) { return a.historyReads.depth() }

// readPage calls f, which reads and renders at most rows rows. If these are more than those of a page without a limit in its query, it
// waits for a slot before, at most until the deadline of the request. f sends nothing.
func (k *call) readPage(rows int, f func() error) error {
	if rows <= defaultPage {
		return f()
	}
	ctx, cancel := k.waiting(time.Until(k.startedAt.Add(k.Deadline)))
	defer cancel()
	if !k.historyReads.await(ctx, k.key.Tenant) {
		if err := k.lossError(); err != nil {
			return err
		}
		return k.rejectFull("history_reads", "As many large pages, exports and event streams are read as may be, or as the tenant leaves to others.")
	}
	defer k.historyReads.give(k.key.Tenant)
	return f()
}

package index

// Depths and limits of the queues.

// Handed is the queue of offered frames that are not folded.
func (x *Indexer) Handed() (depth, limit int) {
	r := x.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, len(r.frames)
}

// Awaited is the queue of readers that wait for progress.
func (x *Indexer) Awaited() (depth, limit int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.waits, x.limits.Waiters
}

// Tails is the queue of frames that are in no table yet, in both tails.
func (x *Indexer) Tails() (depth, limit int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, t := range [...]*tail{x.tail, x.frozen} {
		if t != nil {
			depth += t.frames
		}
	}
	return depth, 2 * x.limits.Frames
}

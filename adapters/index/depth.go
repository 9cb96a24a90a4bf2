package index

// How full is what waits, and how much of it may.

// Handed is of the frames that were handed over and not folded.
func (x *Indexer) Handed() (depth, limit int) {
	r := x.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, len(r.frames)
}

// Awaited is of those who wait for the index to go on.
func (x *Indexer) Awaited() (depth, limit int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.waits, x.limits.Waiters
}

// Tails is of the frames that no table has, in both tails.
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

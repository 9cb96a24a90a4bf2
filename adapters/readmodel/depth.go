package readmodel

// How full is what waits or is kept, and how much of it may.

// Waiting is of the reads that wait for a movement.
func (f *Follower) Waiting() (depth, limit int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.waits, f.room
}

// Recent is of the frames at hand.
func (f *Follower) Recent() (depth, limit int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.recent.len(), len(f.recent.ring)
}

package readmodel

// Depths and limits of the queues and caches.

// Waiting is the queue of reads that wait for a movement.
func (f *Follower) Waiting() (depth, limit int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.waits, f.room
}

// Recent is the cache of recent frames.
func (f *Follower) Recent() (depth, limit int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.recent.len(), len(f.recent.ring)
}

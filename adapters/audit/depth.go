package audit

// Waiting is how many lines wait for the file, and how many may.
func (l *Log) Waiting() (depth, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.limits.Queue
}

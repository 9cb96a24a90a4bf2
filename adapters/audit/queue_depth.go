package audit

// Waiting returns the number of queued lines, and the maximum.
func (l *Log) Waiting() (depth, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.limits.Queue
}

package loop

// Cancellations returns the depth and the limit of the queue of cancellations.
func (k *Dispatcher) Cancellations() (depth, limit int) { return len(k.cancelled), cap(k.cancelled) }

// QueuedEvents is the queue of events from other goroutines; Folds that of durable batches that are not folded.
func (l *Loop) QueuedEvents() (depth, limit int) { return len(l.external), cap(l.external) }
func (l *Loop) Folds() (depth, limit int)        { return len(l.folds), cap(l.folds) }

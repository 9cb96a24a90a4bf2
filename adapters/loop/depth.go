package loop

// How full is what waits, and how much of it may.

// Gone is of the words that nobody waits for a reply any more.
func (k *Desk) Gone() (depth, limit int) { return len(k.gone), cap(k.gone) }

// Late is of what the shell says; Folds of the batches that are durable and not folded.
func (l *Loop) Late() (depth, limit int)  { return len(l.late), cap(l.late) }
func (l *Loop) Folds() (depth, limit int) { return len(l.folds), cap(l.folds) }

package repair

// An InventoryOrder orders the repairs that an inventory plans. Objects of which too little is left come last and are not urgent:
// nothing can be restored, so they must not take the places of others in a full queue, again and again.
type InventoryOrder struct {
	Plan  func(Task)
	Limit int // objects that are held back; more are left to the next inventory
	lost  []Task
}

// Add plans the repair of an object that has some of its copies or shards, fewer than are wanted, or holds it back. needed is how
// many a read needs.
func (o *InventoryOrder) Add(t Task, has, needed int) {
	switch {
	case has >= needed:
		t.Urgent = has == needed
		o.Plan(t)
	case len(o.lost) < o.Limit:
		o.lost = append(o.lost, t)
	}
}

// Close plans the objects that were held back.
func (o *InventoryOrder) Close() {
	for _, t := range o.lost {
		o.Plan(t)
	}
}

package httpapi

// takeLargeSlot takes a slot for the body of k, which may come slowly. It returns the problem if there is none.
func (k *call) takeLargeSlot(detail string) error {
	if !k.largeBodies.take(k.key.Tenant) {
		return k.rejectFull("large_bodies", detail)
	}
	k.hasLargeSlot = true
	return nil
}

// LargeBodies returns how many slots for large bodies are taken, and how many there are.
func (a *API) LargeBodies() (depth, limit int) { return a.largeBodies.depth() }

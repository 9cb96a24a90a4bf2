package httpapi

// LargeBodies returns how many slots for large bodies are taken, and how many there are.
func (a *API) LargeBodies() (depth, limit int) { return len(a.largeBodies), cap(a.largeBodies) }

package httpapi

// How many permits are out, and how many there are.

// LargeBodies is of those who read a large body.
func (a *API) LargeBodies() (depth, limit int) { return len(a.large), cap(a.large) }

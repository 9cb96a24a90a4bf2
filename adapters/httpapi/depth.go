package httpapi

// How many permits are out, and how many there are.

// LargeBodies is of those who read a large body, OpenStreams of those who are sent an
// answer without an end.
func (a *API) LargeBodies() (depth, limit int) { return len(a.large), cap(a.large) }
func (a *API) OpenStreams() (depth, limit int) { return len(a.streams), cap(a.streams) }

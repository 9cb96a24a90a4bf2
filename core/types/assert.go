package types

// InvariantError is the panic value of Assert: a bug in this program, never a mistake of a caller.
type InvariantError string

func (b InvariantError) Error() string { return "broken: " + string(b) }

// Assert panics with an InvariantError unless ok. It is active in production, so its condition must be
// cheap.
func Assert(ok bool, what string) {
	if !ok {
		panic(InvariantError(what))
	}
}

package types

// InvariantError is what Assert panics with: a bug of ours, never a caller's mistake.
type InvariantError string

func (b InvariantError) Error() string { return "broken: " + string(b) }

// Assert panics with Broken unless ok. It stays on in production, so what it asks
// must cost nothing.
func Assert(ok bool, what string) {
	if !ok {
		panic(InvariantError(what))
	}
}

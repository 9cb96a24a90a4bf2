package words

// Broken is what Assert panics with: a bug of ours, never a caller's mistake.
type Broken string

func (b Broken) Error() string { return "broken: " + string(b) }

// Assert panics with Broken unless ok. It stays on in production, so what it asks
// must cost nothing.
func Assert(ok bool, what string) {
	if !ok {
		panic(Broken(what))
	}
}

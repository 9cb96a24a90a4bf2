package world

// drawn answers out of bytes.
type drawn struct{ bytes []byte }

// Drawn answers what bytes say, as many of them a question as it needs, and dully when they
// are at their end: for a fuzzer, which learns from the code that a life reaches which bytes
// lead on.
func Drawn(bytes []byte) Chooser { return &drawn{bytes} }

// Choose takes the next bytes.
func (d *drawn) Choose(_ string, n int) (got int) {
	for most := n - 1; most > 0; most >>= 8 {
		if len(d.bytes) == 0 {
			break
		}
		got, d.bytes = got<<8|int(d.bytes[0]), d.bytes[1:]
	}
	return got % n
}

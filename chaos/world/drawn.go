package world

// drawn chooses from bytes.
type drawn struct{ bytes []byte }

// Drawn chooses from bytes, as many per choice as needed, and 0 after the end. It is for a
// fuzzer, which learns from coverage which bytes reach new code.
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

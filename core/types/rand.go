package types

// Rand is a deterministic random generator: the same seed gives the same numbers.
type Rand struct{ state uint64 }

// NewRand returns a generator with a seed.
func NewRand(seed uint64) Rand { return Rand{state: seed} }

// Uint64n returns a number in [0, n). Its bias is below n/2^64.
func (d *Rand) Uint64n(n uint64) uint64 {
	Assert(n > 0, "types: dice without sides")
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

// HashInto mixes the state of d into h.
func (d Rand) HashInto(h Hash64) Hash64 { return h.Mix(d.state) }

package words

// Dice is chance that can be replayed: the same seed rolls the same numbers. The
// machine that rolls owns its dice; the seed comes from outside.
type Dice struct{ state uint64 }

// NewDice is dice that begin at seed.
func NewDice(seed uint64) Dice { return Dice{state: seed} }

// Below rolls a number in [0, n). Its bias is below n/2^64.
func (d *Dice) Below(n uint64) uint64 {
	Assert(n > 0, "words: dice without sides")
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

// Mix is h after the state of d.
func (d Dice) Mix(h Hash64) Hash64 { return h.Mix(d.state) }

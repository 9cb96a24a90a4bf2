// Package clock is the reference model of core/clock, in whole milliseconds. It is exact if
// readings are a multiple of 20 ms apart.
package clock

// Clock is the time, the last reading, and all readings since the clock is untrusted.
type Clock struct {
	At      int64
	Doubts  bool
	Steps   []int64 // monotonic times of the steps
	Doubted []Reading
	Last    *Reading // nil before the first
}

// Reading is a reading of the machine's clocks.
type Reading struct {
	Mono, Wall int64
	Synced     bool
	Ahead      int64 // of a clock at the pace of Mono
}

// Read advances the clock to a reading.
func (c *Clock) Read(r Reading) int64 {
	if c.Last == nil {
		c.Last = &r
		c.restart(r)
		return c.At
	}
	gone := r.Mono - c.Last.Mono
	c.Last = &r
	slow, even, fast := c.At+gone*95/100, c.At+gone, c.At+gone*105/100
	r.Ahead = r.Wall - even

	incredible := r.Ahead > 10_000
	if c.Doubts {
		incredible = r.Ahead > 500
	}
	if incredible {
		c.At = even
		c.wonder(r)
		return c.At
	}
	c.Doubts, c.Doubted = false, nil
	switch {
	case r.Wall <= slow:
		c.At = slow
	case r.Wall <= fast:
		c.At = r.Wall
	case r.Ahead <= 500 && c.rested(r.Mono):
		c.At = r.Wall
		c.Steps = append(c.Steps, r.Mono)
	default:
		c.At = fast
	}
	return c.At
}

// restart handles the first reading: the length of the pause is unknown.
func (c *Clock) restart(r Reading) {
	away := r.Wall - c.At
	switch {
	case c.At == 0, 0 <= away && away <= 3_600_000:
		c.At = r.Wall
	case away > 3_600_000:
		r.Ahead = away
		c.Doubts, c.Doubted = true, []Reading{r}
	}
}

func (c *Clock) rested(mono int64) bool {
	return len(c.Steps) == 0 || mono-c.Steps[len(c.Steps)-1] >= 60_000
}

// wonder accepts the last reading if all readings of the last minute were steady.
func (c *Clock) wonder(r Reading) {
	began := len(c.Doubted)
	c.Doubts, c.Doubted = true, append(c.Doubted, r)
	if began == 0 {
		return
	}
	start := c.Doubted[0]
	for _, x := range c.Doubted[1:] {
		if !x.Synced || x.Ahead > start.Ahead+1000 || x.Ahead < start.Ahead-1000 {
			start = x
		}
	}
	if r.Mono-start.Mono >= 60_000 {
		c.Accept()
	}
}

// Accept trusts the wall clock, as an operator does.
func (c *Clock) Accept() {
	c.Doubts, c.Doubted = false, nil
	if c.Last != nil && c.Last.Wall > c.At {
		c.At = c.Last.Wall
	}
}

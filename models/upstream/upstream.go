// Package upstream is the twin of core/gateway/upstream, of one upstream: lists of all that was
// ever seen, which are counted anew each time.
package upstream

import "macronode/core/types"

const (
	ms     = 1_000_000
	second = 1000 * ms
)

// Rules are the machine's, times in nanoseconds.
type Rules struct {
	Endpoints, Tries    int
	Share, Spare, Hoard int
	Eject               int
	Out, OutMost        int64
	Least, Part         int
	Rest, RestMost      int64
	Floor, Trials       int
	Fall, Rise          int
}

// A Call is one request.
type Call struct {
	Again bool
	Is    string // "trying", "resting", "answered" or "gone"
	Ill   bool
	At    int   // less than nothing: at none any more
	Tried []int // endpoints, in order; less than nothing: none any more
	Era   int
	Last  bool // it is not tried again
}

// An Endpoint is one.
type Endpoint struct {
	None    bool
	Failed  int // in a row
	Out     bool
	Until   int64
	Strikes int
	Sick    bool
	Checks  []bool // since it last changed or was confirmed
	Proven  bool
}

// A Fact is what a try told.
type Fact struct {
	At   int64
	Good bool
}

// Upstream is one.
type Upstream struct {
	Rules     Rules
	Dice      types.Rand
	Calls     []*Call
	Endpoints []Endpoint
	Next      int
	Saved     int // hundredths
	Seconds   int64
	Circuit   string
	Era       int
	Opened    int
	Strikes   int
	Until     int64
	Facts     []Fact // of this era
}

// New knows nothing yet.
func New(r Rules, d types.Rand) *Upstream {
	u := &Upstream{Rules: r, Dice: d, Endpoints: make([]Endpoint, 16), Saved: 100 * r.Spare, Circuit: "closed"}
	for n := range u.Endpoints {
		u.Endpoints[n].None = n >= r.Endpoints
	}
	return u
}

// Pass ends what is over.
func (u *Upstream) Pass(now int64) {
	for i := range u.Endpoints {
		if e := &u.Endpoints[i]; e.Out && now >= e.Until {
			e.Out, e.Failed = false, 0
		}
	}
	if u.Circuit == "open" && now >= u.Until {
		u.turn("half-open")
	}
	for ; u.Seconds < now/second; u.Seconds++ {
		if u.Saved < 100*u.Rules.Spare {
			u.Saved = min(u.Saved+100, 100*u.Rules.Spare)
		}
	}
}

func (u *Upstream) turn(to string) { u.Circuit, u.Era, u.Facts = to, u.Era+1, nil }

// In counts the calls that are in a state, at an endpoint or at any.
func (u *Upstream) In(is string, at int) (n int) {
	for _, c := range u.Calls {
		if c.Is == is && (at < 0 || c.At == at) {
			n++
		}
	}
	return n
}

// Pick begins a call.
func (u *Upstream) Pick(now int64, again bool) (c *Call, stop string) {
	u.Pass(now)
	u.Saved = min(u.Saved+u.Rules.Share, 100*u.Rules.Hoard)
	c = &Call{Again: again}
	u.Calls = append(u.Calls, c)
	return c, u.Retry(now, c)
}

// Retry begins the next try.
func (u *Upstream) Retry(now int64, c *Call) (stop string) {
	u.Pass(now)
	c.Is = "gone"
	switch {
	case c.Last:
		return "no_healthy_endpoint"
	case u.Circuit == "open":
		return "circuit_open"
	case u.Circuit == "half-open" && u.trials() >= u.Rules.Floor:
		return "circuit_open"
	}
	for _, ask := range []func(n int) bool{
		func(n int) bool { return !u.Endpoints[n].Out && !c.has(n) },
		func(n int) bool { return !u.Endpoints[n].Out },
		func(n int) bool { return !c.has(n) },
		func(int) bool { return true },
	} {
		best := -1
		for i := range u.Endpoints {
			n := (u.Next + i) % len(u.Endpoints)
			if !u.Endpoints[n].None && !u.Endpoints[n].Sick && ask(n) && (best < 0 || u.Busy(n) < u.Busy(best)) {
				best = n
			}
		}
		if best >= 0 {
			c.Is, c.At, c.Era, u.Next = "trying", best, u.Era, (best+1)%len(u.Endpoints)
			c.Tried = append(c.Tried, best)
			return "picked"
		}
	}
	return "no_healthy_endpoint"
}

func (c *Call) has(n int) bool {
	for _, at := range c.Tried {
		if at == n {
			return true
		}
	}
	return false
}

// Busy is how many calls an endpoint has.
func (u *Upstream) Busy(at int) int { return u.In("trying", at) + u.In("answered", at) }

// trials are the tries of a half-open circuit that told nothing yet.
func (u *Upstream) trials() (n int) {
	for _, c := range u.Calls {
		if c.Is == "trying" && c.Era == u.Era {
			n++
		}
	}
	return n
}

// Report hears how a try ended; wait is less than nothing when there is no other, and why
// says why there is none after a failure.
func (u *Upstream) Report(now int64, c *Call, ending string, spent, said bool, patience int64) (wait int64, why string) {
	u.Pass(now)
	was := c.Is
	switch ending {
	case "completed":
		if was == "answered" {
			c.Is = "gone"
		}
		return -1, ""
	case "truncated":
		if was == "answered" {
			if !c.Ill {
				u.ill(now, c)
			}
			c.Is = "gone"
		}
		return -1, ""
	case "abandoned":
		c.Is = "gone"
		return -1, ""
	}
	if was != "trying" {
		return -1, ""
	}
	if ending == "answered" {
		if c.Is = "answered"; c.At < 0 {
			return -1, ""
		}
		u.Endpoints[c.At].Failed, u.Endpoints[c.At].Proven = 0, true
		if c.Era == u.Era {
			u.Facts = append(u.Facts, Fact{now, true})
			if u.Circuit == "half-open" && len(u.Facts) >= u.Rules.Trials {
				u.turn("closed")
				u.Strikes = 0
			}
		}
		return -1, ""
	}
	c.Ill = true
	u.ill(now, c)
	low, high := int64(50*ms), int64(100*ms)
	for range len(c.Tried) - 1 {
		low, high = min(2*low, 2*second), min(2*high, 2*second)
	}
	for _, no := range []struct {
		is  bool
		why string
	}{
		{ending == "timed_out", "deadline"}, {!c.Again, "method_not_idempotent"}, {spent, "body_consumed"}, {said, "response_started"}, {len(c.Tried) >= u.Rules.Tries || c.Last, "max_attempts"},
		{u.Circuit == "open", "circuit_open"}, {patience <= high, "deadline"}, {u.Saved < 100, "retry_budget"},
	} {
		if no.is && why == "" {
			why = no.why
		}
	}
	if why == "" {
		u.Saved -= 100
		c.Is, c.Ill = "resting", false
		return low + int64(u.Dice.Uint64n(uint64(high-low)+1)), ""
	}
	if c.Is = "gone"; ending == "answered_5xx" {
		c.Is = "answered"
	}
	return -1, why
}

func (u *Upstream) ill(now int64, c *Call) {
	if c.At < 0 {
		return
	}
	e := &u.Endpoints[c.At]
	e.Failed++
	if e.Failed >= u.Rules.Eject && !e.Out {
		if now-e.Until > u.Rules.OutMost {
			e.Strikes = 0
		}
		e.Out, e.Until = true, now+doubled(u.Rules.Out, u.Rules.OutMost, e.Strikes)
		e.Strikes++
	}
	if c.Era != u.Era {
		return
	}
	u.Facts = append(u.Facts, Fact{now, false})
	all, bad := 0, 0
	for _, f := range u.Facts {
		if f.At/second > now/second-10 {
			all++
			if !f.Good {
				bad++
			}
		}
	}
	if u.Circuit == "half-open" || all >= u.Rules.Least && 100*bad >= u.Rules.Part*all {
		rest := doubled(u.Rules.Rest, u.Rules.RestMost, u.Strikes)
		rest -= int64(u.Dice.Uint64n(uint64(rest / 2)))
		u.turn("open")
		u.Opened++
		u.Until = now + rest
		u.Strikes++
	}
}

func doubled(d, most int64, times int) int64 {
	for range min(times, 60) {
		d = min(2*d, most)
	}
	return d
}

// Probed hears of a health check.
func (u *Upstream) Probed(now int64, at int, well bool) {
	u.Pass(now)
	e := &u.Endpoints[at]
	if e.None {
		return
	}
	if well {
		e.Proven = true
	}
	if well != e.Sick || u.Rules.Fall == 0 {
		e.Checks = nil
		return
	}
	e.Checks = append(e.Checks, well)
	if e.Sick && len(e.Checks) >= u.Rules.Rise || !e.Sick && len(e.Checks) >= u.Rules.Fall {
		e.Sick, e.Checks = !e.Sick, nil
	}
}

// Package upstream is the reference model of core/gateway/upstream, for one upstream: lists of
// all events, which are counted anew each time.
package upstream

import "macronode/core/types"

const (
	ms     = 1_000_000
	second = 1000 * ms
)

// Rules are the upstream's rules, times in nanoseconds.
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
	By    int // group of callers
	Of    int // caller of the group
	Again bool
	Is    string // "trying", "resting", "answered" or "gone"
	Ill   bool
	At    int   // negative: the endpoint was removed
	Tried []int // endpoints, in order; negative: removed
	Era   int
	Last  bool // it is not retried
}

// An Endpoint is an endpoint of the upstream.
type Endpoint struct {
	None   bool
	Groups [2]Ejection
	Sick   bool
	Checks []bool // health checks since the state last changed or was confirmed
	Proven bool
}

// An Ejection is the state of an endpoint for a group of callers.
type Ejection struct {
	Failed  int // in a row
	Out     bool
	Until   int64
	Strikes int
}

// A Fact is the result of an attempt.
type Fact struct {
	At     int64
	Good   bool
	Of     int  // caller
	Common bool // it is counted with those of other callers
}

// Apart is the number of callers that are counted apart.
const Apart = 7

// Upstream is an upstream.
type Upstream struct {
	Rules     Rules
	Dice      types.Rand
	Calls     []*Call
	Endpoints []Endpoint
	Next      int
	Seconds   int64
	Groups    [2]Group
}

// A Group is the state of the upstream for a group of callers.
type Group struct {
	Saved   int // hundredths
	Circuit string
	Era     int
	Opened  int
	Strikes int
	Until   int64
	Facts   []Fact // of this epoch
	Only    bool   // it is open for one caller only
	Whose   int    // that caller
}

// New returns an upstream without state.
func New(r Rules, d types.Rand) *Upstream {
	u := &Upstream{Rules: r, Dice: d, Endpoints: make([]Endpoint, 16)}
	for by := range u.Groups {
		u.Groups[by] = Group{Saved: 100 * r.Spare, Circuit: "closed"}
	}
	for n := range u.Endpoints {
		u.Endpoints[n].None = n >= r.Endpoints
	}
	return u
}

// Pass handles expired timers.
func (u *Upstream) Pass(now int64) {
	for i := range u.Endpoints {
		for by := range u.Groups {
			if e := &u.Endpoints[i].Groups[by]; e.Out && now >= e.Until {
				e.Out, e.Failed = false, 0
			}
		}
	}
	for by := range u.Groups {
		if g := &u.Groups[by]; g.Circuit == "open" && now >= g.Until {
			g.turn("half-open")
		}
	}
	for ; u.Seconds < now/second; u.Seconds++ {
		for by := range u.Groups {
			if g := &u.Groups[by]; g.Saved < 100*u.Rules.Spare {
				g.Saved = min(g.Saved+100, 100*u.Rules.Spare)
			}
		}
	}
}

func (g *Group) turn(to string) { g.Circuit, g.Era, g.Facts, g.Only = to, g.Era+1, nil, false }

// For returns the state of the circuit for a caller.
func (g *Group) For(of int) string {
	if g.Only && of != g.Whose {
		return "half-open"
	}
	return g.Circuit
}

// In counts the calls in a state, at an endpoint or at any.
func (u *Upstream) In(is string, at int) (n int) {
	for _, c := range u.Calls {
		if c.Is == is && (at < 0 || c.At == at) {
			n++
		}
	}
	return n
}

// Pick begins a call.
func (u *Upstream) Pick(now int64, by, of int, again bool) (c *Call, stop string) {
	u.Pass(now)
	g := &u.Groups[by]
	g.Saved = min(g.Saved+u.Rules.Share, 100*u.Rules.Hoard)
	c = &Call{By: by, Of: of, Again: again}
	u.Calls = append(u.Calls, c)
	return c, u.Retry(now, c)
}

// Retry begins the next attempt.
func (u *Upstream) Retry(now int64, c *Call) (stop string) {
	u.Pass(now)
	c.Is = "gone"
	g := &u.Groups[c.By]
	out := func(n int) bool { return u.Endpoints[n].Groups[c.By].Out }
	switch {
	case c.Last:
		return "no_healthy_endpoint"
	case g.For(c.Of) == "open":
		return "circuit_open"
	case g.For(c.Of) == "half-open" && u.trials(c.By) >= u.Rules.Floor:
		return "circuit_open"
	}
	for _, ask := range []func(n int) bool{
		func(n int) bool { return !out(n) && !c.has(n) },
		func(n int) bool { return !out(n) },
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
			c.Is, c.At, c.Era, u.Next = "trying", best, g.Era, (best+1)%len(u.Endpoints)
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

// Busy returns how many calls an endpoint has.
func (u *Upstream) Busy(at int) int { return u.In("trying", at) + u.In("answered", at) }

// trials counts the half-open attempts of a group without a result.
func (u *Upstream) trials(by int) (n int) {
	for _, c := range u.Calls {
		if c.Is == "trying" && c.By == by && c.Era == u.Groups[by].Era {
			n++
		}
	}
	return n
}

// Report handles the end of an attempt. A negative wait means no retry; why is the reason after a
// failure.
func (u *Upstream) Report(now int64, c *Call, ending string, spent, started bool, patience int64) (wait int64, why string) {
	u.Pass(now)
	was, g := c.Is, &u.Groups[c.By]
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
		u.Endpoints[c.At].Groups[c.By].Failed, u.Endpoints[c.At].Proven = 0, true
		if c.Era == g.Era {
			switch g.For(c.Of) {
			case "closed":
				g.note(now, true, c.Of)
			case "half-open":
				g.Facts = append(g.Facts, Fact{At: now, Good: true})
				if len(g.Facts) >= u.Rules.Trials {
					g.turn("closed")
					g.Strikes = 0
				}
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
		{ending == "timed_out", "deadline"}, {!c.Again, "method_not_idempotent"}, {spent, "body_consumed"}, {started, "response_started"}, {len(c.Tried) >= u.Rules.Tries || c.Last, "max_attempts"},
		{g.For(c.Of) == "open", "circuit_open"}, {patience <= high, "deadline"}, {g.Saved < 100, "retry_budget"},
	} {
		if no.is && why == "" {
			why = no.why
		}
	}
	if why == "" {
		g.Saved -= 100
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
	e, g := &u.Endpoints[c.At].Groups[c.By], &u.Groups[c.By]
	e.Failed++
	if e.Failed >= u.Rules.Eject && !e.Out {
		if now-e.Until > u.Rules.OutMost {
			e.Strikes = 0
		}
		e.Out, e.Until = true, now+doubled(u.Rules.Out, u.Rules.OutMost, e.Strikes)
		e.Strikes++
	}
	if c.Era != g.Era {
		return
	}
	was, alone := g.For(c.Of), false
	switch was {
	case "open": // for its caller
		return
	case "closed":
		if g.note(now, false, c.Of); !u.mustOpen(g.recent(now)) {
			return
		}
		alone = true
		for _, f := range g.recent(now) {
			alone = alone && f.Of == c.Of
		}
	}
	if g.Only {
		g.turn("open")
		return
	}
	rest := doubled(u.Rules.Rest, u.Rules.RestMost, g.Strikes)
	rest -= int64(u.Dice.Uint64n(uint64(rest / 2)))
	if was == "half-open" {
		g.Circuit, g.Only, g.Whose = "open", true, c.Of
	} else {
		g.turn("open")
		g.Only, g.Whose = alone, c.Of
	}
	g.Opened++
	g.Until = now + rest
	g.Strikes++
}

// recent returns the facts of the last ten seconds.
func (g *Group) recent(now int64) (facts []Fact) {
	for _, f := range g.Facts {
		if f.At/second > now/second-10 {
			facts = append(facts, f)
		}
	}
	return facts
}

// note adds a fact of a caller. If as many others as possible are counted apart, it is common.
func (g *Group) note(now int64, good bool, of int) {
	g.Facts = g.recent(now)
	apart := map[int]bool{}
	for _, f := range g.Facts {
		if !f.Common {
			apart[f.Of] = true
		}
	}
	g.Facts = append(g.Facts, Fact{At: now, Good: good, Of: of, Common: !apart[of] && len(apart) == Apart})
}

// mustOpen reports whether enough of all attempts failed, and enough of those that remain without any one caller that is
// counted apart and without those that are common. If there are common ones, some must remain.
func (u *Upstream) mustOpen(facts []Fact) bool {
	failing := func(without func(Fact) bool) bool {
		all, bad, common := 0, 0, false
		for _, f := range facts {
			if common = common || f.Common; without(f) {
				continue
			}
			if all++; !f.Good {
				bad++
			}
		}
		return 100*bad >= u.Rules.Part*all && (all > 0 || !common)
	}
	for _, one := range facts {
		if !failing(func(f Fact) bool { return f.Common || !one.Common && f.Of == one.Of }) {
			return false
		}
	}
	return len(facts) >= u.Rules.Least && failing(func(Fact) bool { return false })
}

func doubled(d, most int64, times int) int64 {
	for range min(times, 60) {
		d = min(2*d, most)
	}
	return d
}

// Probed handles a health check.
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

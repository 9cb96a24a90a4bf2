package upstream

// Change gives an upstream other rules. An endpoint that was there, is there and is not fresh
// keeps its state; any other starts without state, and the calls to it no longer count. If none
// stays, the upstream starts anew and its calls are not retried.
func (u *Upstream) Change(now int64, r Rules, there, fresh [16]bool) {
	u.Pass(now)
	u.Rules = r
	stays, any := 0, false
	for n := range u.Endpoints {
		e := &u.Endpoints[n]
		any = any || there[n] || !e.None
		if there[n] && !e.None && !fresh[n] {
			if stays++; r.Fall == 0 {
				e.Sick, e.Checks = false, nil
			}
			continue
		}
		u.Endpoints[n] = Endpoint{None: !there[n]}
		for _, c := range u.Calls {
			if c.At == n && c.Is != "resting" {
				c.At = -1
			}
			for i, at := range c.Tried {
				if at == n {
					c.Tried[i] = -1
				}
			}
		}
	}
	if !any {
		return
	}
	if stays == 0 {
		for _, c := range u.Calls {
			c.Last = true
		}
	}
	for by := range u.Groups {
		g := &u.Groups[by]
		switch {
		case stays == 0:
			g.turn("closed")
			g.Strikes, g.Saved = 0, 100*r.Spare
		case (g.Circuit == "half-open" || g.Only) && (u.trials(by) > r.Floor || len(g.Facts) >= r.Trials):
			g.turn("half-open")
		}
		g.Saved = min(g.Saved, 100*r.Hoard)
	}
}

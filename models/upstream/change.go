package upstream

// Change gives an upstream other rules. An endpoint that is there, was there and is not
// fresh stays as it is; any other is as if nothing had ever been seen of it, and who is with
// it tells nothing. Where none stays, the upstream is as new, and nothing that was with it
// is tried again.
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
	switch {
	case !any:
		return
	case stays == 0:
		for _, c := range u.Calls {
			c.Last = true
		}
		u.turn("closed")
		u.Strikes, u.Saved = 0, 100*r.Spare
	case u.Circuit == "half-open" && (u.trials() > r.Floor || len(u.Facts) >= r.Trials):
		u.turn("half-open")
	}
	u.Saved = min(u.Saved, 100*r.Hoard)
}

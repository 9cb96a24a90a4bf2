package node

import "macronode/core/types"

// Due returns the earliest instant at which a Tick may change something.
func (n *Node) Due() (due types.Instant, any bool) {
	earlier := func(at types.Instant, if_ bool) {
		if if_ && (!any || at < due) {
			due, any = at, true
		}
	}
	if n.held.Len() > 0 {
		earlier(n.held.At(0).deadline, true)
	}
	earlier(n.flushStarted.Add(n.config.StallThreshold), n.flushOutstanding() && !n.readiness.Has(types.JournalStalled))
	earlier(n.flushStarted.Add(n.config.SyncTimeout), n.flushOutstanding())
	earlier(n.nextSweep, n.sweepDue())
	earlier(n.lastFrameAt.Add(n.config.HeartbeatInterval), n.heartbeatDue())
	earlier(n.readiness.Due())
	earlier(n.clock.NotBefore(n.nextKeyEnd), n.nextKeyEnd > 0)
	earlier(n.admission.Due())
	earlier(n.nextPaced())
	earlier(n.upstreams.Due())
	if !n.recovered {
		return due, any
	}
	if n.drain.Started() {
		earlier(n.drain.Due())
	} else {
		earlier(n.supervisor.Due())
	}
	return due, any
}

// sweepDue reports whether a key may leave the window, or a plane may have something to expire.
func (n *Node) sweepDue() bool {
	if !n.recovered || !n.readiness.AcceptsWrites() {
		return false
	}
	if n.state.Idempotency.Len() > 0 {
		return true
	}
	for p := range n.state.Planes {
		if p.HasTimers() {
			return true
		}
	}
	return false
}

// heartbeatDue reports whether a heartbeat frame is wanted: to prove that the last frame was durable, or
// to record how far the node's clock has gone.
func (n *Node) heartbeatDue() bool {
	return n.recovered && (!n.lastFrameEmpty || n.clock.Ahead()) && n.durable == n.state.LSN && n.readiness.AcceptsWrites()
}

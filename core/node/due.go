package node

import "macronode/core/words"

// Due is the earliest instant at which a Tick may do something: before it, a Tick
// changes nothing.
func (n *Node) Due() (due words.Instant, any bool) {
	earlier := func(at words.Instant, if_ bool) {
		if if_ && (!any || at < due) {
			due, any = at, true
		}
	}
	if n.held.Len() > 0 {
		earlier(n.held.At(0).until, true)
	}
	earlier(n.flushing.Plus(n.config.Stall), n.outstanding() && !n.ready.Has(words.Stalled))
	earlier(n.flushing.Plus(n.config.Fail), n.outstanding())
	earlier(n.sweep, n.sweeps())
	earlier(n.quiet.Plus(n.config.Vouch), n.vouches())
	earlier(n.ready.Due())
	earlier(n.admit.Due())
	earlier(n.paced())
	earlier(n.beyond.Due())
	if !n.booted {
		return due, any
	}
	if n.drain.Begun() {
		earlier(n.drain.Due())
	} else {
		earlier(n.super.Due())
	}
	return due, any
}

// sweeps reports that there are keys which will leave, or holds whose time will be over.
func (n *Node) sweeps() bool {
	return n.booted && (n.state.Idem.Len() > 0 || n.state.Ledger.Holds() > 0) && n.ready.Writes()
}

// vouches reports that the last frame wants a successor that vouches for it, or the
// time a record of how far it has gone.
func (n *Node) vouches() bool {
	return n.booted && (!n.idle || n.clock.Leads()) && n.durable == n.state.LSN && n.ready.Writes()
}

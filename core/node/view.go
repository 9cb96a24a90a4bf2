package node

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/words"
)

// Status is what the node says of itself.
func (n *Node) Status(s *event.Status) {
	v := n.ready.Verdict()
	*s = event.Status{Phase: v.Phase, Ready: v.Ready, ForRead: v.ForRead, Reads: v.Reads, Writes: v.Writes,
		Unmet: n.ready.Unmet(), Ailing: n.ready.Ailing(), LSN: n.state.LSN, Durable: n.durable, Folded: n.folded,
		At: n.clock.Time(), Offset: n.clock.Offset(), Held: uint32(n.held.Len()), Keys: uint32(n.state.Idem.Len()),
		Backlog: n.backlog, Fault: n.fault, Report: n.report}
	s.Forgot, s.Aged = n.state.Idem.Forgot(), n.state.Idem.Aged(s.At)
	s.Indexed, s.Holds = n.indexed, uint32(n.state.Ledger.Holds())
	for c := range words.Children {
		s.Restarts[c] = n.super.Restarts(c)
	}
	for f := range words.Facets {
		s.Out[f] = uint32(n.admit.Out(f))
		for c := range words.Classes {
			s.Queued[f][c] = uint32(n.admit.Queued(f, c))
			s.Saved[c] += n.admit.Saved(f, c)
		}
	}
	s.Awaited = n.ready.Awaited()
	s.Taken, s.Gate = n.admit.Taken(), n.config.Gate
	s.Lined = uint32(n.admit.Lined())
	s.Broken, s.Down = n.beyond.Broken(), n.beyond.Down()
	if n.drain.Begun() {
		s.Phase, s.Ready, s.ForRead = n.drain.Phase(), false, false
	}
	if n.drain.Closed() {
		s.Reads, s.Writes = false, false
	}
	if s.GaveUp = n.gaveUp; s.Phase == words.Stopped {
		s.Report.Aborted += uint64(n.admit.Working())
	}
}

// View is what the specifications speak of: their variables.
type View struct {
	LSN, Durable, Folded words.LSN
	Held                 int
	Keys                 int
	Failed               bool
	Stalled              bool
	Phase                words.Phase
}

// View fills v.
func (n *Node) View(v *View) {
	*v = View{LSN: n.state.LSN, Durable: n.durable, Folded: n.folded, Held: n.held.Len(), Keys: n.state.Idem.Len(),
		Failed: n.ready.Has(words.JournalFailed), Stalled: n.ready.Has(words.Stalled), Phase: n.drain.Phase()}
}

// LSN is the last frame that was begun.
func (n *Node) LSN() words.LSN { return n.state.LSN }

// StateHash identifies what outlives the process: after a crash, recovery must come
// to the value noted at some one LSN between the durable and the last.
func (n *Node) StateHash() words.Hash64 { return n.state.Hash() }

// Hash identifies all of it.
func (n *Node) Hash() words.Hash64 {
	h := n.clock.Mix(n.state.Hash())
	h = n.ready.Mix(h)
	h = n.super.Mix(h)
	h = n.drain.Mix(h)
	h = n.held.Mix(h).Mix(uint64(n.crowd.Hash()))
	h = n.beyond.Mix(n.admit.Mix(h).Mix(uint64(n.quota.Hash())))
	h = h.Mix(uint64(n.durable)).Mix(uint64(n.folded)).Mix(uint64(n.indexed)).Mix(uint64(n.keyAt)).Mix(n.backlog)
	h = h.Mix(uint64(n.flushing)).Mix(uint64(n.quiet)).Mix(uint64(n.sweep)).Mix(uint64(n.waiters))
	h = h.MixBit(n.booted).MixBit(n.idle)
	h = h.Mix(uint64(n.fault)).Mix(n.config.Gate).Mix(uint64(n.config.Pace))
	return h.Mix(n.report.Finished).Mix(n.report.Refused).Mix(n.report.Aborted).Mix(n.gaveUp)
}

// CopyTo overwrites dst, reusing its memory.
func (n *Node) CopyTo(dst *Node) {
	dst.plain = n.plain
	n.state.CopyTo(&dst.state)
	n.quota.CopyTo(&dst.quota)
	n.admit.CopyTo(&dst.admit)
	n.beyond.CopyTo(&dst.beyond)
	n.held.CopyTo(&dst.held)
	n.crowd.CopyTo(&dst.crowd)
	n.heldAt.CopyTo(&dst.heldAt)
	dst.numbers = append(dst.numbers[:0], n.numbers...)
}

// Check returns the invariants that do not hold.
func (n *Node) Check() error {
	if n.folded > n.durable || n.durable > n.state.LSN || n.indexed > n.durable {
		return fmt.Errorf("N1: folded %v, indexed %v, durable %v, last %v", n.folded, n.indexed, n.durable, n.state.LSN)
	}
	replays, crowd, wanted := uint32(0), make([]count, n.crowd.Len()), 0
	for i := range n.held.Len() {
		w := n.held.At(i)
		if i > 0 {
			if before := n.held.At(i - 1); before.reply.After > w.reply.After || before.until > w.until {
				return fmt.Errorf("N2: %+v before %+v", before, w)
			}
		}
		if w.reply.Replayed {
			replays++
		}
		if !w.gone {
			wanted++
			if at, known := n.findHeld(w.reply.Ticket); !known || at != i {
				return fmt.Errorf("N7: the reply to ticket %d is not found", w.reply.Ticket)
			}
		}
		if at, known := n.crowd.Find(w.of); known {
			crowd[at]++
		}
	}
	for i := range crowd {
		if t, waits := n.crowd.Row(uint32(i)); waits != crowd[i] {
			return fmt.Errorf("N5: tenant %d: %d replies are held, counted %d", t, crowd[i], waits)
		}
	}
	if wanted != n.heldAt.Len() {
		return fmt.Errorf("N7: %d replies are found from their tickets, %d are held", n.heldAt.Len(), wanted)
	}
	if replays != n.waiters {
		return fmt.Errorf("N3: %d replays are held, counted %d", replays, n.waiters)
	}
	if (n.backlog == 0) != (n.durable == n.state.LSN) {
		return fmt.Errorf("N4: backlog %d, durable %v, last %v", n.backlog, n.durable, n.state.LSN)
	}
	if at, any := n.paced(); any && at == 0 {
		return errors.New("N6: somebody waits who may go")
	}
	return errors.Join(n.held.Check(), n.crowd.Check(), n.heldAt.Check(), n.quota.Check(), n.admit.Check(), n.beyond.Check(), n.super.Check(), n.ready.Check(), n.drain.Check(), n.state.Check())
}

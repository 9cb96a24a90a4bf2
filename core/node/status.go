package node

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/types"
)

// Status fills s with the state of the node.
func (n *Node) Status(s *event.Status) {
	v := n.readiness.Verdict()
	*s = event.Status{Phase: v.Phase, Ready: v.Ready, ForRead: v.ForRead, Reads: v.Reads, Writes: v.Writes,
		WaitingFor: n.readiness.WaitingFor(), DegradedBy: n.readiness.DegradedBy(), LSN: n.state.LSN, Durable: n.durable, Applied: n.applied,
		At: n.clock.Time(), Offset: n.clock.Offset(), HeldReplies: uint32(n.held.Len()), Keys: uint32(n.state.Idempotency.Len()),
		Backlog: n.backlog, Fault: n.fault, Report: n.report}
	s.Forgot, s.MayHaveForgotten = n.state.Idempotency.ForgottenTo(), n.state.Idempotency.MayHaveForgotten(s.At)
	s.Indexed, s.Holds = n.indexed, uint32(n.state.Wallet.Holds())
	for c := range types.NumServices {
		s.Restarts[c] = n.supervisor.Restarts(c)
	}
	for f := range types.NumFacets {
		s.Permits[f] = uint32(n.admission.Out(f))
		for c := range types.NumClasses {
			s.Queued[f][c] = uint32(n.admission.Queued(f, c))
			s.Deficits[c] += n.admission.Saved(f, c)
		}
	}
	s.AwaitedUpstreams = n.readiness.AwaitedUpstreams()
	s.PermitsRevoked, s.PolicyVersion = n.admission.Taken(), n.config.PolicyVersion
	s.PacedParts = uint32(n.admission.Lined())
	s.OpenCircuits, s.Down = n.upstreams.OpenCircuits(), n.upstreams.Down()
	if n.drain.Started() {
		s.Phase, s.Ready, s.ForRead = n.drain.Phase(), false, false
	}
	s.AdmittedWrites = v.Writes && s.Phase < types.Aborting
	if n.drain.Refusing() {
		s.Reads, s.Writes = false, false
	}
	if s.AbortedReplies = n.abortedReplies; s.Phase == types.Stopped {
		s.Report.Aborted += uint64(n.admission.Working())
	}
}

// SpecView has the variables of the TLA+ specifications.
type SpecView struct {
	LSN, Durable, Folded types.LSN
	Held                 int
	Keys                 int
	Failed               bool
	Stalled              bool
	Phase                types.Phase
}

// SpecView fills v.
func (n *Node) SpecView(v *SpecView) {
	*v = SpecView{LSN: n.state.LSN, Durable: n.durable, Folded: n.applied, Held: n.held.Len(), Keys: n.state.Idempotency.Len(),
		Failed: n.readiness.Has(types.JournalFailed), Stalled: n.readiness.Has(types.JournalStalled), Phase: n.drain.Phase()}
}

// LSN returns the LSN of the last frame.
func (n *Node) LSN() types.LSN { return n.state.LSN }

// StateHash identifies the durable state. After a crash, recovery must reach the value of one LSN between
// the durable one and the last.
func (n *Node) StateHash() types.Hash64 { return n.state.Hash() }

// Hash identifies the whole node.
func (n *Node) Hash() types.Hash64 {
	h := n.clock.HashInto(n.state.Hash())
	h = n.readiness.HashInto(h)
	h = n.supervisor.HashInto(h)
	h = n.drain.HashInto(h)
	h = n.held.HashInto(h).Mix(uint64(n.heldByTenant.Hash()))
	h = n.upstreams.HashInto(n.admission.HashInto(h).Mix(uint64(n.quota.Hash())))
	h = h.Mix(uint64(n.durable)).Mix(uint64(n.applied)).Mix(uint64(n.indexed)).Mix(uint64(n.firstKeyAt)).Mix(n.backlog)
	h = h.Mix(uint64(n.flushStarted)).Mix(uint64(n.lastFrameAt)).Mix(uint64(n.nextSweep)).Mix(uint64(n.nextKeyEnd)).Mix(uint64(n.replayWaiters))
	h = h.MixBool(n.recovered).MixBool(n.lastFrameEmpty)
	h = h.Mix(uint64(n.fault)).Mix(n.config.PolicyVersion).Mix(uint64(n.config.MaxPacingDelay))
	return h.Mix(n.report.Finished).Mix(n.report.Rejected).Mix(n.report.Aborted).Mix(n.abortedReplies)
}

// CopyTo overwrites dst, reusing its memory.
func (n *Node) CopyTo(dst *Node) {
	dst.scalars = n.scalars
	n.state.CopyTo(&dst.state)
	n.quota.CopyTo(&dst.quota)
	n.admission.CopyTo(&dst.admission)
	n.upstreams.CopyTo(&dst.upstreams)
	n.held.CopyTo(&dst.held)
	n.heldByTenant.CopyTo(&dst.heldByTenant)
	n.heldAt.CopyTo(&dst.heldAt)
	dst.numbers = append(dst.numbers[:0], n.numbers...)
}

// Check returns the invariants that do not hold.
func (n *Node) Check() error {
	if n.applied > n.durable || n.durable > n.state.LSN || n.indexed > n.durable {
		return fmt.Errorf("N1: folded %v, indexed %v, durable %v, last %v", n.applied, n.indexed, n.durable, n.state.LSN)
	}
	replays, crowd, wanted := uint32(0), make([]heldCount, n.heldByTenant.Len()), 0
	for i := range n.held.Len() {
		w := n.held.At(i)
		if i > 0 {
			if before := n.held.At(i - 1); before.reply.After > w.reply.After || before.deadline > w.deadline {
				return fmt.Errorf("N2: %+v before %+v", before, w)
			}
		}
		if w.reply.Replayed {
			replays++
		}
		if !w.canceled {
			wanted++
			if at, known := n.findHeld(w.reply.Ticket); !known || at != i {
				return fmt.Errorf("N7: the reply to ticket %d is not found", w.reply.Ticket)
			}
		}
		if at, known := n.heldByTenant.Find(w.tenant); known {
			crowd[at]++
		}
	}
	for i := range crowd {
		if t, waits := n.heldByTenant.Row(uint32(i)); waits != crowd[i] {
			return fmt.Errorf("N5: tenant %d: %d replies are held, counted %d", t, crowd[i], waits)
		}
	}
	if wanted != n.heldAt.Len() {
		return fmt.Errorf("N7: %d replies are found from their tickets, %d are held", n.heldAt.Len(), wanted)
	}
	if replays != n.replayWaiters {
		return fmt.Errorf("N3: %d replays are held, counted %d", replays, n.replayWaiters)
	}
	if (n.backlog == 0) != (n.durable == n.state.LSN) {
		return fmt.Errorf("N4: backlog %d, durable %v, last %v", n.backlog, n.durable, n.state.LSN)
	}
	if at, any := n.nextPaced(); any && at == 0 {
		return errors.New("N6: a request waits that may go")
	}
	if err := n.checkKeys(); err != nil {
		return err
	}
	return errors.Join(n.held.Check(), n.heldByTenant.Check(), n.heldAt.Check(), n.quota.Check(), n.admission.Check(), n.upstreams.Check(), n.supervisor.Check(), n.readiness.Check(), n.drain.Check(), n.state.Check())
}

// checkKeys checks N8.
func (n *Node) checkKeys() error {
	for slot := range n.admission.Slots() {
		key := n.admission.KeyAt(slot)
		if end, ends := n.state.Keys.EndOf(key); key != 0 && ends && (end == 0 || n.nextKeyEnd == 0 || n.nextKeyEnd > end) {
			return fmt.Errorf("N8: slot %d has key %016x, which ends at %v; looked at again at %v", slot, uint64(key), end, n.nextKeyEnd)
		}
	}
	return nil
}

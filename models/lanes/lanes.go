// Package lanes is the reference model of the scheduler of exports: what it may send, and what it must. It shares no
// code with the scheduler, and does not predict its random numbers.
package lanes

import (
	"fmt"

	"macronode/core/types"
)

// Limits are those of the scheduler, in nanoseconds.
type Limits struct {
	Active, Inflight, Tenant, Commands, Failures int
	Weight                                       func(types.Tenant) int
	Window                                       uint64
	Backoff, MaxBackoff, Budget                  int64
}

// A Name identifies what is loaded: a lane, or the redelivery of a position.
type Name struct {
	Lane types.LaneID
	Row  uint64
}

// A Lane is what is known of one that is loaded.
type Lane struct {
	Name
	Cursor, Acked, Head uint64
	Sending             bool
	Asked               bool  // a command is with the node
	Waits               bool  // it may not send before FailedAt + Wait at the latest
	FailedAt            int64 // of the next position
	Wait                int64
	Tries               int
	Permanent           bool // the next position has failed permanently
	Since               int64
	Rejected            bool // after the budget: it is to be quarantined
	Leaving             bool
	Full                bool // the quarantine had no room for the next position
}

// A Board has all lanes that are loaded.
type Board struct {
	Limits  Limits
	Lanes   []*Lane
	Again   bool
	Stopped bool

	Refused   bool // the node could not take the last command
	RefusedAt int64

	down     bool
	failedIn []types.Tenant // the retryable failures in a row, as far as they matter
	downAt   int64          // of the last failure
}

// Find returns a lane, or nil.
func (b *Board) Find(n Name) *Lane {
	for _, l := range b.Lanes {
		if l.Name == n {
			return l
		}
	}
	return nil
}

// Count returns the number of lanes for which is holds.
func (b *Board) Count(is func(*Lane) bool) (n int) {
	for _, l := range b.Lanes {
		if is(l) {
			n++
		}
	}
	return n
}

func sending(l *Lane) bool { return l.Sending }
func asked(l *Lane) bool   { return l.Asked }

// Offer returns whether a lane is loaded.
func (b *Board) Offer(n Name, cursor, head uint64) bool {
	l := b.Find(n)
	switch {
	case l != nil && l.Leaving:
		b.Again = true
		return false
	case l != nil && !l.Asked && (cursor < l.Cursor || cursor > l.Acked):
		b.leave(l)
		return false
	case l != nil:
		l.Head = max(l.Head, head)
		return true
	case head <= cursor:
		return true
	case b.Stopped, len(b.Lanes) == b.Limits.Active:
		b.Again = true
		return false
	}
	b.Lanes = append(b.Lanes, &Lane{Name: n, Cursor: cursor, Acked: cursor, Head: head})
	return true
}

// Reload lets a lane and its redeliveries leave.
func (b *Board) Reload(id types.LaneID) {
	b.Again = true
	for _, l := range b.Lanes {
		if l.Lane == id {
			b.leave(l)
		}
	}
	b.clean()
}

// leave lets a lane leave, unless it has a command.
func (b *Board) leave(l *Lane) {
	b.Again = true
	l.Leaving = l.Leaving || !l.Asked && l.Cursor == l.Acked && !l.Rejected
	b.clean()
}

// sendable reports whether a lane has a position to send, apart from limits and backoff.
func (b *Board) sendable(l *Lane) bool {
	return !l.Sending && !l.Rejected && !l.Leaving && l.Acked < l.Head && l.Acked-l.Cursor < b.Limits.Window
}

func (b *Board) ofTenant(t types.Tenant) int {
	return b.Count(func(l *Lane) bool { return l.Sending && l.Lane.Tenant == t })
}

// mayGrow reports whether a tenant may have another send. Without a limit of its own it leaves room: each send that it leaves to others allows it
// as many as its weight, and the first one is always allowed.
func (b *Board) mayGrow(t types.Tenant) bool {
	has := b.ofTenant(t)
	if b.Limits.Tenant > 0 {
		return has < b.Limits.Tenant
	}
	allowed := 1
	for range b.Limits.Inflight - b.Count(sending) - 1 {
		allowed += b.Limits.Weight(t)
	}
	return has < allowed
}

// Next checks a send: why it is not allowed, or "".
func (b *Board) Next(now int64, n Name, position uint64) string {
	l := b.Find(n)
	switch {
	case b.Stopped:
		return "stopped"
	case l == nil:
		return "a lane that is not loaded"
	case !b.sendable(l):
		return fmt.Sprintf("a lane with nothing to send: %+v", *l)
	case position != l.Acked+1:
		return fmt.Sprintf("position %d, the sink has up to %d", position, l.Acked)
	case b.Count(sending) >= b.Limits.Inflight, !b.mayGrow(n.Lane.Tenant):
		return "too many sends"
	case l.Waits && now <= l.FailedAt:
		return "a retry without a backoff"
	case b.down && (b.Count(sending) > 0 || now <= b.downAt):
		return "more than a probe to a sink that is down"
	}
	l.Sending = true
	return ""
}

// Idle checks that nothing can be sent: why it must be, or "".
func (b *Board) Idle(now int64) string {
	running := b.Count(sending)
	if b.Stopped || running >= b.Limits.Inflight || b.down && (running > 0 || now < b.downAt+b.Limits.MaxBackoff) {
		return ""
	}
	for _, l := range b.Lanes {
		if b.sendable(l) && b.mayGrow(l.Lane.Tenant) && (!l.Waits || now >= l.FailedAt+l.Wait) {
			return fmt.Sprintf("%+v can be sent", *l)
		}
	}
	return ""
}

// Sent applies the result of a send.
func (b *Board) Sent(now int64, n Name, ok, permanent bool) {
	l := b.Find(n)
	l.Sending = false
	if ok || permanent {
		b.down, b.failedIn = false, nil
	} else {
		b.fails(now, n.Lane.Tenant)
	}
	if ok {
		l.Acked++
		l.Waits, l.Tries, l.Permanent, l.Full = false, 0, false, false
		b.clean()
		return
	}
	if permanent && !l.Permanent {
		l.Permanent, l.Since = true, now
	}
	if permanent && now-l.Since >= b.Limits.Budget {
		l.Rejected = true
		l.Waits = false
	} else {
		b.wait(now, l)
	}
	b.clean()
}

// wait begins the backoff of a lane.
func (b *Board) wait(now int64, l *Lane) {
	l.Waits, l.FailedAt, l.Wait = true, now, b.Limits.Backoff
	for range l.Tries {
		l.Wait = min(2*l.Wait, b.Limits.MaxBackoff)
	}
	l.Tries++
}

// fails counts a retryable failure.
func (b *Board) fails(now int64, t types.Tenant) {
	b.failedIn = append(b.failedIn, t)
	several := false
	for _, o := range b.failedIn {
		several = several || o != t
	}
	if several && len(b.failedIn) >= b.Limits.Failures {
		b.down = true
	}
	b.downAt = now
}

// A Command is one for the node.
type Command struct {
	Name     Name
	From, To uint64
	Rejected bool
}

// Ask checks a command: why it is not allowed, or "".
func (b *Board) Ask(now int64, c Command) string {
	l := b.Find(c.Name)
	switch {
	case l == nil:
		return "a lane that is not loaded"
	case l.Asked, l.Leaving, b.Count(asked) >= b.Limits.Commands, b.Refused && now <= b.RefusedAt:
		return "a command too many"
	case c.From != l.Cursor+1, !c.Rejected && c.To != l.Acked, c.Rejected && (c.To != c.From || l.Acked != l.Cursor || !l.Rejected), c.To < c.From:
		return fmt.Sprintf("%+v of %+v", c, *l)
	}
	l.Asked = true
	return ""
}

// Quiet checks that no command is possible: why one must be, or "".
func (b *Board) Quiet(now int64) string {
	if b.Count(asked) >= b.Limits.Commands || b.Refused && now < b.RefusedAt+b.Limits.MaxBackoff {
		return ""
	}
	for _, l := range b.Lanes {
		if !l.Asked && !l.Leaving && (l.Cursor < l.Acked || l.Rejected) {
			return fmt.Sprintf("%+v has a command", *l)
		}
	}
	return ""
}

// Settled applies that a command is recorded.
func (b *Board) Settled(c Command) {
	l := b.Find(c.Name)
	l.Asked, l.Cursor = false, c.To
	if c.Rejected {
		l.Acked, l.Rejected, l.Permanent, l.Waits, l.Tries, l.Full = c.To, false, false, false, 0, false
	}
	b.Refused = false
	b.clean()
}

// Refuse applies that the node could not take a command.
func (b *Board) Refuse(now int64, c Command) {
	b.Find(c.Name).Asked = false
	b.Refused, b.RefusedAt = true, now
}

// Moved applies that the cursor of a lane is elsewhere.
func (b *Board) Moved(c Command) {
	l := b.Find(c.Name)
	l.Asked, l.Leaving = false, true
	b.Again, b.Refused = true, false
	b.clean()
}

// Full applies that the quarantine is full.
func (b *Board) Full(now int64, c Command) {
	l := b.Find(c.Name)
	l.Asked, l.Rejected, l.Full = false, false, true
	b.wait(now, l)
	b.Refused = false
}

// clean unloads the lanes that are done.
func (b *Board) clean() {
	var left []*Lane
	for _, l := range b.Lanes {
		if l.Sending || l.Asked || !l.Leaving && l.Cursor < l.Head {
			left = append(left, l)
		}
	}
	b.Lanes = left
}

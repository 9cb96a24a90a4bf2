package lanes

import "macronode/core/types"

// A CommandKind says which command of core/export a Command is.
type CommandKind uint8

const (
	Settle     CommandKind = iota + 1 // From..To
	Quarantine                        // the position From
	Resolve                           // the position From
)

// A Command is one that the node is to record.
type Command struct {
	Kind     CommandKind
	Lane     types.LaneID
	From, To uint64
	Row      bool // of the redelivery of a quarantined position
	Reason   types.ExportReason
	Status   uint16
}

// An Answer is what became of a command.
type Answer uint8

const (
	Done  Answer = iota + 1 // it is recorded
	Retry                   // the node cannot take it now, or the outcome is not known
	Moved                   // the cursor of the lane is elsewhere, or there is no such lane or row
	Full                    // the quarantine is full
)

// NextCommand returns the next command for the node; false if there is none now. Each is reported to Answered
// once.
func (m *Machine) NextCommand(now types.Instant) (c Command, ok bool) {
	if m.owed.Len() == 0 || m.commands >= m.limits.Commands || now < m.commandAt {
		return c, false
	}
	at, _ := m.owed.Pop()
	k, _ := m.keys.Row(uint32(at))
	l := &m.lanes[at]
	l.owed, l.asked = false, true
	m.commands++
	c = Command{Kind: Settle, Lane: k.lane, From: l.cursor + 1, To: l.acked, Row: k.row > 0}
	switch {
	case l.cursor == l.acked:
		c.Kind, c.To, c.Reason, c.Status = Quarantine, c.From, l.reason, l.status
	case c.Row:
		c.Kind = Resolve
	}
	return c, true
}

// Answered reports what became of a command.
func (m *Machine) Answered(now types.Instant, c Command, a Answer) {
	k := key{lane: c.Lane}
	if c.Row {
		k.row = c.From
	}
	p, known := m.keys.Find(k)
	types.Assert(known && m.lanes[p].asked && m.lanes[p].cursor+1 == c.From, "lanes: the answer of a command that was not given")
	l := &m.lanes[p]
	m.commands--
	l.asked = false
	if a == Retry || a == Full && c.Kind != Quarantine {
		m.commandAt = now.Add(m.backoff(m.refusals))
		m.refusals++
		m.schedule(p)
		return
	}
	m.refusals, m.commandAt = 0, 0
	switch {
	case a == Moved:
		m.leave(p)
		return
	case a == Full:
		l.reason, l.status, l.blocked = 0, 0, true
		m.delay(now, p)
	case c.Kind == Quarantine:
		m.counters.Quarantined++
		l.cursor, l.acked = c.To, c.To
		l.reason, l.status, l.blocked, l.permanent, l.tries = 0, 0, false, false, 0
	default:
		l.cursor = c.To
	}
	m.schedule(p)
}

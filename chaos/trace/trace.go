// Package trace holds every step of a node against the specifications: what was seen
// before, what happened, what is seen after. It shares no decision with core.
//
//	before ──step──► after      life:  specs/drain, with the phases, needs, replies and deadlines
//	                            money: specs/wallet and specs/hold, with the balances, nonces, seqs, keys and holds
//	                            hours: specs/clock, with the time that it says it is
//	                            line:  specs/queue, with who is held, refused and told in turn
//	                            door:  specs/admission and specs/drr, with who is let in, whose turn it is, and every quota
//
// Nothing is searched for: an observed step names the one state that it may lead to, or
// the few. What recovery found is folded first.
package trace

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// A View is what can be seen of a node between two steps.
type View struct{ event.Status }

// A Step is an event and what came of it: of a turn's effects, those of this step alone.
type Step struct {
	Now      types.Now
	In       event.Event
	Replies  []event.Reply
	Verdicts []event.Decision
	Childs   []event.ServiceCommand
	Frame    []byte // the body of the one frame; none is empty
}

// A Broken is a step that the specification does not have.
type Broken struct {
	Rule string // the invariant's or the action's name, as specs has it
	Says string
}

func (b *Broken) Error() string { return b.Rule + ": " + b.Says }

func broken(rule, format string, args ...any) error {
	return &Broken{rule, fmt.Sprintf(format, args...)}
}

// Trace watches one node from its first step on, which is its Boot.
type Trace struct {
	life   life
	money  money
	hours  hours
	line   line
	door   door
	before View
	after  View
	at     marks
}

// marks are where a turn's effects stood before a step.
type marks struct{ frames, replies, verdicts, childs int }

// New watches a node of a configuration. It has seen nothing: Fold what was recovered.
// It remembers every key for ever, so it is for lives that end.
func New(c node.Config) *Trace {
	return &Trace{life: newLife(c), money: newMoney(c), line: newLine(c), door: newDoor(c)}
}

// Fold tells of a frame that recovery found.
func (t *Trace) Fold(body []byte) error {
	if err := t.hours.found(body); err != nil {
		return err
	}
	return t.money.frame(body, nil)
}

// Watch holds one step after the other.
func Watch(t *Trace) func(before, after *View, what *Step) error { return t.step }

func (t *Trace) step(before, after *View, what *Step) error {
	if err := t.life.step(before, after, what); err != nil {
		return err
	}
	if err := t.line.step(before, after, what); err != nil {
		return err
	}
	if err := t.door.step(before, after, what); err != nil {
		return err
	}
	if err := t.hours.step(after, what); err != nil {
		return err
	}
	return t.money.step(before, after, what)
}

// Notes has somebody hear of what a step at the gate met that is rare and easily wrong, and
// that no view shows: what waits, what is shared, what is owed. The words are probes' of
// chaos/sim.
func (t *Trace) Notes(hear func(what string)) { t.door.note, t.door.purses.note = hear, hear }

// Around is the node before the last step, and behind it: until the next one.
func (t *Trace) Around() (before, after *View) { return &t.before, &t.after }

// Before and After stand around each step of n that is watched. Out is the turn's.
func (t *Trace) Before(n *node.Node, out *event.Effects) {
	n.Status(&t.before.Status)
	t.at = marks{len(out.Frames), len(out.Replies), len(out.Decisions), len(out.ServiceCommands)}
}

// After says what the step was that no specification has.
func (t *Trace) After(n *node.Node, now types.Now, in event.Event, out *event.Effects) error {
	n.Status(&t.after.Status)
	s := Step{Now: now, In: in, Replies: out.Replies[t.at.replies:], Verdicts: out.Decisions[t.at.verdicts:], Childs: out.ServiceCommands[t.at.childs:]}
	switch frames := out.Frames[t.at.frames:]; len(frames) {
	case 0:
	case 1:
		s.Frame = out.Body(frames[0])
	default:
		return broken("Emit", "%d frames of one step", len(frames))
	}
	return t.step(&t.before, &t.after, &s)
}

// ticket is whose request an event is; 0: nobody's.
func ticket(in event.Event) types.Ticket {
	switch in := in.(type) { //nolint:gochecksumtype // the others are nobody's
	case *event.Request:
		return in.Ticket
	case *event.FindOutcome:
		return in.Ticket
	case *event.CreateKey:
		return in.Ticket
	case *event.RevokeKey:
		return in.Ticket
	default:
		return 0
	}
}

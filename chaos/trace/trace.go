// Package trace checks every step of a node against the specifications: the state before, the
// event, the state after. It shares no decision with core.
//
//	before ──step──► after      life:        specs/drain, with phases, dependencies, replies and deadlines
//	                            money:       specs/wallet and specs/hold, with balances, nonces, seqs, keys and holds
//	                            clockState:  specs/clock, with the node's time
//	                            line:        specs/queue, with held, rejected and delivered replies
//	                            gate:        specs/admission and specs/drr, with admission, turns and quotas
//	                            grants:      what API keys permit
//	                            trips:       which attempts go to upstreams
//
// No search is needed: an observed step determines the one state that it may lead to, or a few.
// Frames found by recovery are folded first.
package trace

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/types"
)

// A View is the observable state of a node between two steps.
type View struct{ event.Status }

// A Step is an event and its effects, without those of other steps of its turn.
type Step struct {
	Now      types.Now
	In       event.Event
	Replies  []event.Reply
	Verdicts []event.Decision
	Childs   []event.ServiceCommand
	Answers  []event.UpstreamReply
	Frame    []byte // the body of the frame; empty: none

	admitted bool // the event belongs to a request that was admitted and is not finished
}

// A Broken is a step that the specification does not permit.
type Broken struct {
	Rule string // name of the invariant or action in specs
	Text string
}

func (b *Broken) Error() string { return b.Rule + ": " + b.Text }

func broken(rule, format string, args ...any) error {
	return &Broken{rule, fmt.Sprintf(format, args...)}
}

// Trace checks one node from its first step on, which is its start.
type Trace struct {
	life       life
	money      money
	clockState clockState
	line       line
	gate       gate
	grants     grants
	trips      trips
	before     View
	after      View
	at         marks
}

// marks are the lengths of a turn's effects before a step.
type marks struct{ frames, replies, verdicts, childs, answers int }

// New returns a trace of a node with a configuration. Fold the recovered frames first. It keeps
// every key, so it is for bounded runs.
func New(c node.Config) *Trace {
	t := &Trace{life: newLife(c), money: newMoney(c), line: newLine(c), gate: newGate(c), grants: newGrants(), trips: newTrips(c)}
	t.gate.keys = t.grants.keys
	return t
}

// Fold handles a frame that recovery found.
func (t *Trace) Fold(body []byte) error {
	if err := t.clockState.found(body); err != nil {
		return err
	}
	if err := t.grants.frame(body, nil); err != nil {
		return err
	}
	return t.money.frame(body, nil)
}

// Watch returns the check of a step.
func Watch(t *Trace) func(before, after *View, what *Step) error { return t.step }

func (t *Trace) step(before, after *View, what *Step) error {
	if err := t.grants.step(before, what); err != nil {
		return err
	}
	if err := t.trips.step(before, after, what); err != nil {
		return err
	}
	what.admitted = t.gate.admitted(permit(what.In))
	if err := t.life.step(before, after, what); err != nil {
		return err
	}
	if err := t.line.step(before, after, what); err != nil {
		return err
	}
	if err := t.gate.step(before, after, what); err != nil {
		return err
	}
	if err := t.clockState.step(after, what); err != nil {
		return err
	}
	return t.money.step(before, after, what)
}

// Notes sets a callback for rare, error-prone situations at the gate that no view shows: waiting,
// sharing, debt. The texts are probes of chaos/sim.
func (t *Trace) Notes(hear func(what string)) { t.gate.note, t.gate.quotaState.note = hear, hear }

// Around returns the views before and after the last step, until the next one.
func (t *Trace) Around() (before, after *View) { return &t.before, &t.after }

// Before and After enclose each checked step of n. out is that of the turn.
func (t *Trace) Before(n *node.Node, out *event.Effects) {
	n.Status(&t.before.Status)
	t.at = marks{len(out.Frames), len(out.Replies), len(out.Decisions), len(out.ServiceCommands), len(out.UpstreamReplies)}
}

// After returns an error if no specification permits the step.
func (t *Trace) After(n *node.Node, now types.Now, in event.Event, out *event.Effects) error {
	n.Status(&t.after.Status)
	s := Step{Now: now, In: in, Replies: out.Replies[t.at.replies:], Verdicts: out.Decisions[t.at.verdicts:], Childs: out.ServiceCommands[t.at.childs:], Answers: out.UpstreamReplies[t.at.answers:]}
	switch frames := out.Frames[t.at.frames:]; len(frames) {
	case 0:
	case 1:
		s.Frame = out.Body(frames[0])
	default:
		return broken("Emit", "%d frames of one step", len(frames))
	}
	return t.step(&t.before, &t.after, &s)
}

// permit returns the ticket of the admitted request that an event belongs to; 0 if it has none.
func permit(in event.Event) types.Ticket {
	switch in := in.(type) { //nolint:gochecksumtype // the others belong to none
	case *event.Request:
		return in.Permit
	case *event.Execute:
		return in.Command.Head().Permit
	case *event.FindOutcome:
		return in.Permit
	case *event.CreateKey:
		return in.Permit
	case *event.RevokeKey:
		return in.Permit
	default:
		return 0
	}
}

// ticket returns the ticket of an event; 0 if it has none.
func ticket(in event.Event) types.Ticket {
	switch in := in.(type) { //nolint:gochecksumtype // the others have no ticket
	case *event.Request:
		return in.Ticket
	case *event.Execute:
		return in.Command.Head().Ticket
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

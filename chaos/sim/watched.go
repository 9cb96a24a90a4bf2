package sim

import (
	"errors"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// watched is the node, checked after each step of a turn.
type watched struct{ *World }

func (w watched) Step(now types.Now, in event.Event, out *event.Effects) {
	frames, replies, verdicts := len(out.Frames), len(out.Replies), len(out.Decisions)
	w.Steps++
	before, after := w.trace.Around()
	w.trace.Before(w.node, out)
	w.node.Step(now, in, out)
	if err := w.trace.After(w.node, now, in, out); err != nil {
		w.untraced(err)
	}
	if w.checks == 0 || len(out.Frames) > frames || w.Steps%w.checks == 0 {
		if err := w.node.Check(); err != nil {
			w.fail("check "+label(err), "%v", err)
		}
	}
	if len(out.Frames) > frames+1 {
		w.fail("two-frames-a-step", "one step, %d frames", len(out.Frames)-frames)
	}
	var answered *record.Header
	if len(out.Frames) > frames {
		h, _, err := record.Open(out.Body(out.Frames[frames]))
		if err != nil || h.LSN != w.node.LSN() {
			w.fail("frame-number", "frame %v: %v", h.LSN, err)
		}
		w.promise.appended(h.LSN, w.node.StateHash(), int(h.Count))
		answered = &h
	}
	w.stepped(in, answered)
	if body := []byte(nil); len(w.planes) > 0 {
		if answered != nil {
			body = out.Body(out.Frames[frames])
		}
		for _, p := range w.planes {
			p.stepped(w.World, in, body)
		}
		w.exportsStepped(in, body)
	}
	if g, ok := in.(*event.ApplyPolicy); ok {
		w.changed(g, out.Decisions[verdicts:])
	}
	w.decidedAtGate(in, out.Decisions[verdicts:])
	w.outlived(in, out.Replies[replies:], &before.Status, &after.Status)
	w.sees(&step{in, &before.Status, &after.Status, answered != nil, out.Replies[replies:]})
	if r, ok := in.(*event.Request); ok {
		w.promise.decided(r.Ticket, w.node.LSN())
	}
}

// outlived counts an answer for a key after its TTL that the node had evicted.
func (w *World) outlived(in event.Event, replies []event.Reply, before, after *event.Status) {
	r, ok := in.(*event.Request)
	if !ok || len(replies) == 0 || !replies[0].Replayed || replies[0].Ticket != r.Ticket {
		return
	}
	if of := replies[0].Position.LSN; of <= before.Forgot && w.audit.ats[of].Add(limits().Idempotency.TTL) <= after.At {
		w.fail("key-without-end", "%s is shown %v at %d, which is of %d", r.Key.Text, replies[0].Position, after.At, w.audit.ats[of])
	}
}

// untraced reports a step that no specification permits.
func (w *World) untraced(err error) {
	rule := "trace"
	if b := (*trace.Broken)(nil); errors.As(err, &b) {
		rule += " " + b.Rule
	}
	w.fail(rule, "%v", err)
}

func (w watched) Due() (types.Instant, bool) { return w.node.Due() }
func (w watched) Status(s *event.Status)     { w.node.Status(s) }

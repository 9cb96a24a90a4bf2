package sim

import (
	"fmt"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/types"
)

// A lane is who did something, or to whom it was done.
type lane int

const (
	nobody lane = iota - 1
	clients
	decider // the node
	journal
	disk
	follows
	indexes
	lanes
)

func (l lane) String() string {
	return [lanes]string{"clients", "node", "journal", "disk", "follower", "index"}[l]
}

// tone is how a happening looks.
type tone int

const (
	plain   tone = iota
	told         // somebody outside knows something now
	trouble      // the world is unkind
	again        // a recovery
	wrong        // a rule is broken
	tones
)

// happening is one thing that was done. from is who brought it about, or nobody.
type happening struct {
	lane, from lane
	tone       tone
	says       []string
}

// beat is a move, and all that happened in it.
type beat struct {
	name          string
	at            types.Now
	before, after node.SpecView
	all           []happening
}

// story is a life as it is told afterwards.
type story struct{ beats []beat }

// listen makes w tell its story.
func (w *World) listen() *story {
	w.story = &story{}
	before := w.disk.Told
	w.disk.Told = func(op, name string) {
		if before != nil {
			before(op, name)
		}
		switch op {
		case "read", "size", "open", "list", "free":
			return // what changes nothing would hide what does
		}
		w.tell(disk, nobody, plain, "%s", strings.TrimSpace(op+" "+strings.TrimLeft(name, "0")))
	}
	return w.story
}

// begin opens a beat.
func (s *story) begin(w *World, name string) {
	b := beat{name: name, at: w.now}
	if w.node != nil {
		w.node.SpecView(&b.before)
	}
	s.beats = append(s.beats, b)
}

// end closes it, with what it has changed.
func (s *story) end(w *World) {
	if len(s.beats) == 0 {
		return
	}
	b := &s.beats[len(s.beats)-1]
	if b.at.Mono = w.now.Mono; w.node != nil {
		w.node.SpecView(&b.after)
	}
}

// beat is one move, told when somebody listens.
func (w *World) beat(name string, move func()) {
	if w.story == nil {
		move()
		return
	}
	w.story.begin(w, name)
	defer w.story.end(w)
	move()
}

// tell notes what happened, if somebody listens. What one lane does in a row is one
// happening.
func (w *World) tell(l, from lane, t tone, format string, args ...any) {
	if w.story == nil || len(w.story.beats) == 0 || w.err != nil && t != wrong {
		return
	}
	b := &w.story.beats[len(w.story.beats)-1]
	says := fmt.Sprintf(format, args...)
	if n := len(b.all); n > 0 && from == nobody && b.all[n-1].lane == l && b.all[n-1].tone == t {
		b.all[n-1].says = append(b.all[n-1].says, says)
		return
	}
	b.all = append(b.all, happening{l, from, t, []string{says}})
}

// stepped tells what a step did.
func (w *World) stepped(in event.Event, frame *record.Header) {
	if w.story == nil {
		return
	}
	from := nobody
	if asked(in) {
		from = clients
	}
	w.tell(decider, from, plain, "%s", heard(in))
	if frame != nil {
		w.tell(journal, decider, plain, "frame %v, %d records", frame.LSN, frame.Count)
	}
}

// asked reports that somebody outside wants in.
func asked(in event.Event) bool {
	_, request := in.(*event.Request)
	_, enrol := in.(*event.CreateKey)
	_, revoke := in.(*event.RevokeKey)
	return request || enrol || revoke
}

// heard is what an event says.
func heard(in event.Event) string {
	switch in := in.(type) {
	case *event.Request:
		return fmt.Sprintf("decides %s: %v", in.Key.Text, in.Op)
	case *event.Execute:
		return fmt.Sprintf("decides %s of %v", in.Command.Head().Key.Text, in.Command.Plane())
	case *event.CreateKey:
		return fmt.Sprintf("makes key %d", in.Key.ID)
	case *event.RevokeKey:
		return fmt.Sprintf("ends key %d", in.Key)
	case *event.FindOutcome:
		return fmt.Sprintf("finds %s", in.Key.Text)
	case *event.Admit:
		return "somebody arrives"
	case *event.ReserveBytes:
		return "somebody has more of a body"
	case *event.Finish:
		return "somebody is settled"
	case *event.UpstreamQuery:
		return "somebody asks about upstreams"
	case event.HealthChecked:
		return "an endpoint was looked at"
	case *event.ApplyPolicy:
		return fmt.Sprintf("hears of gate %d", in.Policy.Version)
	case event.Recovered:
		return fmt.Sprintf("begins, %d frames beyond", in.Recovery.TailFrames)
	case event.Durable:
		return fmt.Sprintf("hears: durable to %v", in.Upto)
	case event.Applied:
		return fmt.Sprintf("hears: folded to %v", in.Upto)
	case event.Indexed:
		return fmt.Sprintf("hears: indexed to %v", in.Upto)
	case event.FlushFailed:
		return fmt.Sprintf("hears: %v from %v on", in.Fault, in.From)
	case event.Cancel:
		return "hears that one left"
	case event.ServiceUp:
		return fmt.Sprintf("child %d is up", in.Service)
	case event.ServiceDown:
		return fmt.Sprintf("child %d is down", in.Service)
	case event.DiskFree:
		return fmt.Sprintf("hears: %d bytes free", in.Bytes)
	case event.FrameUnreadable:
		return "hears: a frame could not be read"
	case event.ConfigReloaded:
		return fmt.Sprintf("a configuration was read, and refused: %v", in.Failed)
	case event.Signal:
		return fmt.Sprintf("signal %d", in.Kind)
	case event.Tick:
		return "tick"
	}
	return ""
}

// changes says how b differs from a.
func changes(a, b node.SpecView) (all []string) {
	note := func(what string, was, is any) {
		if was != is {
			all = append(all, fmt.Sprintf("%s %v → %v", what, was, is))
		}
	}
	note("last", a.LSN, b.LSN)
	note("durable", a.Durable, b.Durable)
	note("folded", a.Folded, b.Folded)
	note("held", a.Held, b.Held)
	note("keys", a.Keys, b.Keys)
	note("failed", a.Failed, b.Failed)
	note("stalled", a.Stalled, b.Stalled)
	note("phase", a.Phase, b.Phase)
	return all
}

func clock(at types.Instant) string {
	return fmt.Sprintf("%.3f s", time.Duration(at).Seconds())
}

// asks is what in wants, in short.
func asks(in *event.Request) string {
	if in.Op == event.Batch {
		return fmt.Sprintf("batch of %d, atomic %v", len(in.Items), in.Atomic)
	}
	s := in.Op.String()
	if len(in.Asset.Text) > 0 && !in.Amount.IsZero() {
		s += fmt.Sprintf(" %v %s", in.Amount, in.Asset.Text)
	}
	if len(in.From.Text) > 0 {
		s += fmt.Sprintf(" from %s", in.From.Text)
	}
	if len(in.To.Text) > 0 {
		s += fmt.Sprintf(" to %s", in.To.Text)
	}
	if in.Nonce > 0 {
		s += fmt.Sprintf(", nonce %d", in.Nonce)
	}
	return s
}

// answers is what r says, in short.
func answers(r event.Reply) string {
	switch {
	case r.Problem != event.None:
		return r.Problem.Code()
	case r.Replayed:
		return fmt.Sprintf("replayed, of %v", r.Position)
	}
	return fmt.Sprintf("its record is %v", r.Position)
}

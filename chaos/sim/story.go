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

// A lane is a participant.
type lane int

const (
	noLane lane = iota - 1
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

// tone is the kind of an event, which sets its colour.
type tone int

const (
	plain        tone = iota
	answeredTone      // a client got an answer
	trouble           // a fault
	again             // a recovery
	wrong             // a violated rule
	tones
)

// happening is an event. from is its cause, if it has one.
type happening struct {
	lane, from lane
	tone       tone
	text       []string
}

// beat is a move with its events.
type beat struct {
	name          string
	at            types.Now
	before, after node.SpecView
	all           []happening
}

// recording is the record of a run.
type recording struct{ beats []beat }

// listen makes w record its story.
func (w *World) listen() *recording {
	w.recording = &recording{}
	before := w.disk.OnOperation
	w.disk.OnOperation = func(op, name string) {
		if before != nil {
			before(op, name)
		}
		switch op {
		case "read", "size", "open", "list", "free":
			return // without an effect
		}
		w.tell(disk, noLane, plain, "%s", strings.TrimSpace(op+" "+strings.TrimLeft(name, "0")))
	}
	return w.recording
}

// begin starts a beat.
func (s *recording) begin(w *World, name string) {
	b := beat{name: name, at: w.now}
	if w.node != nil {
		w.node.SpecView(&b.before)
	}
	s.beats = append(s.beats, b)
}

// end ends a beat, with its changes.
func (s *recording) end(w *World) {
	if len(s.beats) == 0 {
		return
	}
	b := &s.beats[len(s.beats)-1]
	if b.at.Mono = w.now.Mono; w.node != nil {
		w.node.SpecView(&b.after)
	}
}

// beat makes a move, and records it if a story is recorded.
func (w *World) beat(name string, move func()) {
	if w.recording == nil {
		move()
		return
	}
	w.recording.begin(w, name)
	defer w.recording.end(w)
	move()
}

// tell records an event. Consecutive events of one lane are merged.
func (w *World) tell(l, from lane, t tone, format string, args ...any) {
	if w.recording == nil || len(w.recording.beats) == 0 || w.err != nil && t != wrong {
		return
	}
	b := &w.recording.beats[len(w.recording.beats)-1]
	text := fmt.Sprintf(format, args...)
	if n := len(b.all); n > 0 && from == noLane && b.all[n-1].lane == l && b.all[n-1].tone == t {
		b.all[n-1].text = append(b.all[n-1].text, text)
		return
	}
	b.all = append(b.all, happening{l, from, t, []string{text}})
}

// stepped records a step.
func (w *World) stepped(in event.Event, frame *record.Header) {
	if w.recording == nil {
		return
	}
	from := noLane
	if asked(in) {
		from = clients
	}
	w.tell(decider, from, plain, "%s", heard(in))
	if frame != nil {
		w.tell(journal, decider, plain, "frame %v, %d records", frame.LSN, frame.Count)
	}
}

// asked reports whether an event is a request from outside.
func asked(in event.Event) bool {
	_, request := in.(*event.Request)
	_, enrol := in.(*event.CreateKey)
	_, revoke := in.(*event.RevokeKey)
	return request || enrol || revoke
}

// heard describes an event.
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
	case event.ObjectFiles:
		return fmt.Sprintf("files of objects: unreadable %v, unwritable %v", in.Unreadable, in.Unwritable)
	case event.FrameUnreadable:
		return "hears: a frame could not be read"
	case event.ProviderHealth:
		return fmt.Sprintf("providers of objects: %d have failed, copies missing %v, objects lost %v", in.Failed, in.Lacking, in.Lost)
	case event.SegmentsArchived:
		return fmt.Sprintf("segments were archived, and could not be: %v", in.Failed)
	case event.ConfigReloaded:
		return fmt.Sprintf("a configuration was read, and refused: %v", in.Failed)
	case event.Signal:
		return fmt.Sprintf("signal %d", in.Kind)
	case event.Tick:
		return "tick"
	}
	return ""
}

// changes returns the differences of two views.
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

// asks describes a request.
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

// answers describes a reply.
func answers(r event.Reply) string {
	switch {
	case r.Problem != event.None:
		return r.Problem.Code()
	case r.Replayed:
		return fmt.Sprintf("replayed, of %v", r.Position)
	}
	return fmt.Sprintf("its record is %v", r.Position)
}

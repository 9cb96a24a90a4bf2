package trace_test

import (
	"errors"
	"testing"
	"time"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// TestRestartTime: the time after a start is that of Clock's Crash; any other time is rejected.
func TestRestartTime(t *testing.T) {
	const last = types.Time(1_700_000_000_000)
	for _, c := range []struct {
		away  time.Duration // time that has passed by the machine's clock
		seen  time.Duration // accepted time; 0: the node's
		rule  string
		doubt bool
	}{
		{away: 0},
		{away: time.Minute},
		{away: time.Hour},
		{away: time.Hour + time.Millisecond, doubt: true},
		{away: -time.Hour},
		{away: -time.Hour, seen: -time.Minute, rule: "NotBehindFrames"},
		{away: 2 * time.Hour, seen: 2 * time.Hour, rule: "RestartWithinGap", doubt: true},
		{away: time.Minute, seen: time.Second, rule: "Crash"},
	} {
		frame := record.Begin(nil, 1, last)
		st := state.New(config().State, 1)
		if err := st.Fold(frame, nil); err != nil {
			t.Fatal(err)
		}
		now := types.Now{Mono: 7, Wall: last.Add(c.away), Synced: true}
		n, watched := node.New(config(), st, now.Mono, types.NewRand(1)), trace.New(config())
		if err := watched.Fold(frame); err != nil {
			t.Fatal(err)
		}
		var out event.Effects
		var before, after trace.View
		n.Status(&before.Status)
		boot := event.Recovered{Recovery: event.Recovery{Journal: 9}}
		n.Step(now, boot, &out)
		n.Status(&after.Status)
		s := trace.Step{Now: now, In: boot, Replies: out.Replies, Childs: out.ServiceCommands, Frame: out.Body(out.Frames[0])}
		if c.seen != 0 {
			shift(&after, &s, after.Offset-c.away+c.seen)
		}
		err := trace.Watch(watched)(&before, &after, &s)
		if b := (*trace.Broken)(nil); errors.As(err, &b) && b.Rule != c.rule || (err == nil) != (c.rule == "") {
			t.Errorf("away %v, seen %v: %v, want %q", c.away, c.seen, err, c.rule)
		}
		if doubts := after.DegradedBy.Has(types.ClockUntrusted); doubts != c.doubt {
			t.Errorf("away %v: doubted %v", c.away, doubts)
		}
	}
}

// shift changes the time after a step, in its frame too.
func shift(v *trace.View, s *trace.Step, by time.Duration) bool {
	v.Offset -= by
	v.At = types.Time((time.Duration(s.Now.Wall)*time.Millisecond - v.Offset) / time.Millisecond)
	return true
}

// sure removes the distrust from a view, if nothing else depends on it.
func sure(v *trace.View) bool {
	conditions := v.DegradedBy.Without(types.ClockUntrusted)
	if conditions == 0 && v.Phase == types.Degraded {
		return false
	}
	v.DegradedBy = conditions
	return true
}

// untimely are runs that Clock does not permit.
func untimely() map[string]illegal {
	return map[string]illegal{
		"time that goes back": {"NeverBack", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.At == b.At && shift(v, s, -time.Millisecond)
		}},
		"time that runs": {"Rate", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && shift(v, s, 2*time.Second)
		}},
		"time stands still": {"Rate", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && v.At-b.At == 400 && shift(v, s, -200*time.Millisecond)
		}},
		"time that leads of its own": {"NoLeadOfItsOwn", func(b, v *trace.View, s *trace.Step) bool {
			return b.LSN > 0 && v.Offset == 0 && v.At-b.At == 400 && shift(v, s, 10*time.Millisecond)
		}},
		"a second step within a minute": {"StepsAreRare", func(b, v *trace.View, s *trace.Step) bool {
			return v.Offset > 60*time.Millisecond && v.Offset <= 400*time.Millisecond && v.At > b.At && v.At-b.At < 500 && shift(v, s, v.Offset)
		}},
		"far, and not doubted": {"FarIsDoubted", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Offset > 10*time.Second && v.DegradedBy.Has(types.ClockUntrusted) && !b.DegradedBy.Has(types.ClockUntrusted)
			return ok && sure(v)
		}},
		"believed too early": {"BelievedLate", func(b, v *trace.View, s *trace.Step) bool {
			ok := v.Offset > 15*time.Second && v.DegradedBy.Has(types.ClockUntrusted) && b.DegradedBy.Has(types.ClockUntrusted)
			return ok && sure(v) && shift(v, s, v.Offset)
		}},
		"a doubt without end": {"Settles", func(b, v *trace.View, s *trace.Step) bool {
			ok := isA[event.Tick](s) && b.DegradedBy.Has(types.ClockUntrusted) && !v.DegradedBy.Has(types.ClockUntrusted) && b.Offset > 20*time.Second
			if ok {
				v.DegradedBy = v.DegradedBy.With(types.ClockUntrusted)
				shift(v, s, -v.Offset-b.Offset)
				v.At = types.Time((time.Duration(s.Now.Wall)*time.Millisecond - b.Offset) / time.Millisecond)
				v.Offset = b.Offset
			}
			return ok
		}},
		"accepted, and still doubted": {"Accept", func(b, v *trace.View, s *trace.Step) bool {
			in, ok := s.In.(event.Signal)
			ok = ok && in.Kind == event.AcceptClock && b.Offset > time.Second
			return ok && shift(v, s, v.Offset-b.Offset)
		}},
		"a day that takes more": {"DayCeiling", func(_, _ *trace.View, s *trace.Step) bool {
			return edit(s, func(r *record.Record) bool {
				ok := r.Kind == record.Posted
				if ok {
					r.DebitedToday, _ = r.DebitedToday.Add(types.MinorUnits(1))
				}
				return ok
			})
		}},
		"a frame with a later time": {"Vouch", func(_, _ *trace.View, s *trace.Step) bool {
			return reframe(s, func(h *record.Header) { h.At++ })
		}},
		"another time than the clock's": {"Read", func(_, v *trace.View, _ *trace.Step) bool { v.At++; return true }},
		"a frame of yesterday": {"NotBehindFrames", func(before, _ *trace.View, s *trace.Step) bool {
			return before.LSN > 0 && reframe(s, func(h *record.Header) { h.At = 1 })
		}},
	}
}

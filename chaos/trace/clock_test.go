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
	"macronode/core/words"
)

// TestRestart: what a start makes of the machine's clock is Clock's Crash; and what it
// might make of it otherwise is refused.
func TestRestart(t *testing.T) {
	const last = words.Time(1_700_000_000_000)
	for _, c := range []struct {
		away  time.Duration // what the machine says has gone by
		seen  time.Duration // what the node is seen to believe; 0: what it does
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
		now := words.Now{Mono: 7, Wall: last.Plus(c.away), Synced: true}
		n, watched := node.New(config(), st, now.Mono, words.NewDice(1)), trace.New(config())
		if err := watched.Fold(frame); err != nil {
			t.Fatal(err)
		}
		var out event.Effects
		var before, after trace.View
		n.Status(&before.Status)
		boot := event.Boot{Found: event.Recovery{Journal: 9}}
		n.Step(now, boot, &out)
		n.Status(&after.Status)
		s := trace.Step{Now: now, In: boot, Replies: out.Replies, Childs: out.Childs, Frame: out.Body(out.Frames[0])}
		if c.seen != 0 {
			shift(&after, &s, after.Offset-c.away+c.seen)
		}
		err := trace.Watch(watched)(&before, &after, &s)
		if b := (*trace.Broken)(nil); errors.As(err, &b) && b.Rule != c.rule || (err == nil) != (c.rule == "") {
			t.Errorf("away %v, seen %v: %v, want %q", c.away, c.seen, err, c.rule)
		}
		if doubts := after.Ailing.Has(words.ClockDoubted); doubts != c.doubt {
			t.Errorf("away %v: doubted %v", c.away, doubts)
		}
	}
}

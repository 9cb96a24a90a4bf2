package loop_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/types"
)

// A doorman is a node that does nothing but let so many in, in the order in which they
// came, and refuse those of class anon.
type doorman struct {
	permits int
	waits   []types.Ticket
	out     map[types.Ticket]bool
	parts   []types.Ticket // asked for: each is told of at the next step
	passed  int
	most    int
	fates   [event.NumCompletions]int
	pause   chan struct{} // it steps on when that is closed; nil: at once
	stop    bool
	wrong   string
}

func (d *doorman) Step(_ types.Now, in event.Event, out *event.Effects) {
	for _, t := range d.parts {
		out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Bytes: 1})
		d.passed++
	}
	d.parts = d.parts[:0]
	switch in := in.(type) {
	case *event.ReserveBytes:
		if !d.out[in.Ticket] {
			d.wrong = "asks for a part, and is not out"
		}
		d.parts = append(d.parts, in.Ticket)
	case *event.Admit:
		if in.Class == types.ClassAnon {
			out.Decisions = append(out.Decisions, event.Decision{Ticket: in.Ticket, Problem: event.Busy})
			return
		}
		d.waits = append(d.waits, in.Ticket)
	case *event.Finish:
		if !d.out[in.Ticket] {
			d.wrong = "settled, and not out"
		}
		delete(d.out, in.Ticket)
		if d.fates[in.Completion]++; d.pause != nil {
			<-d.pause
		}
	case event.Signal:
		d.stop = true
	}
	for len(d.waits) > 0 && len(d.out) < d.permits {
		t := d.waits[0]
		d.waits = d.waits[1:]
		for other := range d.out {
			if other.Slot() == t.Slot() {
				d.wrong = "a slot is used twice at once"
			}
		}
		d.out[t] = true
		d.most = max(d.most, len(d.out))
		out.Decisions = append(out.Decisions, event.Decision{Ticket: t})
	}
}

func (d *doorman) Due() (types.Instant, bool) { return 0, false }
func (d *doorman) Status(s *event.Status) {
	if d.stop {
		s.Phase = types.Stopped
	}
}

// gated runs a loop around d; end stops it.
func gated(t *testing.T, d *doorman, gate loop.Door) (g *loop.Gate, end func()) {
	t.Helper()
	d.out = map[types.Ticket]bool{}
	k := loop.NewDesk(loop.Door{1, 1, 1}, gate, 1)
	l := loop.New(d, new(diary), new(diary), k, loop.Ports{Child: func(event.ServiceCommand) {}}, 8)
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
	return k.Gate, func() {
		t.Helper()
		l.Say(t.Context(), event.Signal{Kind: event.Drain})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d.wrong != "" || len(d.out) != 0 || len(d.waits) != 0 {
			t.Errorf("%s; %d are out, %d wait", d.wrong, len(d.out), len(d.waits))
		}
		for c := range types.NumClasses {
			if g := k.Gate; g.In(c) != 0 {
				t.Errorf("%d of %v are in", g.In(c), c)
			}
		}
	}
}

// TestGate: many come, go, are refused, and leave before they were told anything; all
// slots and all permits come back, and no permit was given twice.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorman{permits: 3}
		g, end := gated(t, d, loop.Door{2, 8, 4})
		var wg sync.WaitGroup
		var went, full, left, refused, parts atomic.Int64
		for i := range 64 {
			wg.Go(func() {
				dice := types.NewRand(uint64(i))
				for range 100 {
					ctx, stop := context.WithTimeout(t.Context(), time.Duration(dice.Uint64n(3))*time.Millisecond)
					in := event.Admit{Class: types.Class(dice.Uint64n(3))}
					v, ok := g.Arrive(ctx, in)
					late := ctx.Err() != nil
					stop()
					switch {
					case !ok && late:
						left.Add(1)
					case !ok:
						full.Add(1)
					case v.Problem != event.None:
						refused.Add(1)
					default:
						went.Add(1)
						time.Sleep(time.Duration(dice.Uint64n(2)) * time.Millisecond) // at work
						streams(t, g, v.Ticket, &dice, &parts)
						g.Settle(v.Ticket, 1, event.CompletionDone)
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		end()
		if went.Load() == 0 || full.Load() == 0 || left.Load() == 0 || refused.Load() == 0 || d.most != 3 || parts.Load() == 0 || int64(d.passed) <= parts.Load() {
			t.Errorf("%d went, %d found no slot, %d left, %d were refused; %d at once", went.Load(), full.Load(), left.Load(), refused.Load(), d.most)
		}
	})
}

// streams asks for parts of both bodies at once; sometimes nobody waits for the word.
func streams(t *testing.T, g *loop.Gate, ticket types.Ticket, dice *types.Rand, parts *atomic.Int64) {
	var both sync.WaitGroup
	for range dice.Uint64n(3) {
		most := time.Duration(dice.Uint64n(2)) * time.Millisecond
		both.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), most)
			defer stop()
			if v, ok := g.Stream(ctx, ticket, 1); ok && (v.Ticket != ticket || v.Bytes != 1) {
				t.Errorf("%v is told %+v", ticket, v)
			} else if ok {
				parts.Add(1)
			}
		})
	}
	both.Wait()
}

// TestNobodyHearsAnothersPart: who left while a part of his was asked for is settled behind it, and
// whoever has the slot then hears nothing of that; nor does one who is settled ask for more.
func TestNobodyHearsAnothersPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorman{permits: 9}
		g, end := gated(t, d, loop.Door{0, 1, 0})
		for i := range 3 {
			v, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassAuthed})
			if !ok || v.Bytes != 0 {
				t.Fatalf("%d: %+v %v", i, v, ok)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			if _, told := g.Stream(ctx, v.Ticket, 1); told {
				t.Fatal("told before the next step")
			}
			if _, told := g.Stream(t.Context(), v.Ticket, 1); told {
				t.Fatal("asks twice at once")
			}
			stop()
			g.Settle(v.Ticket, 0, event.CompletionDone)
			synctest.Wait()
			if _, told := g.Stream(t.Context(), v.Ticket, 1); told {
				t.Fatal("settled, and asks for more")
			}
		}
		if depth, limit := g.Settled(); depth != 0 || limit != 2*g.Size() {
			t.Errorf("%d of %d words", depth, limit)
		}
		end()
	})
}

// TestALateWordIsNobodys: a word about a part that comes when the slot is another's is not his verdict.
func TestALateWordIsNobodys(t *testing.T) {
	g := loop.NewGate(loop.Door{0, 1, 0})
	var last types.Ticket
	for range 2 {
		at, ok := g.Enter(event.Admit{Class: types.ClassAuthed})
		if !ok {
			t.Fatal("no room")
		}
		if last != 0 {
			g.Deliver(event.Decision{Ticket: last, Bytes: 1})
		}
		if v, told := g.Hear(at); told {
			t.Fatalf("hears %+v", v)
		}
		in := g.Comes().(*event.Admit)
		g.Deliver(event.Decision{Ticket: in.Ticket})
		if v, told := g.Hear(at); !told || v.Ticket != in.Ticket {
			t.Fatalf("hears %+v, %v", v, told)
		}
		last = in.Ticket
		g.Settle(last, 0, event.CompletionDone)
		g.Free([]event.Event{g.Comes()})
	}
}

// TestGateIsFull: who finds no slot of its class is told at once, and others are not kept
// out by that.
func TestGateIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, end := gated(t, &doorman{permits: 9}, loop.Door{1, 1, 0})
		v, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassAuthed})
		if !ok {
			t.Fatal("no room for the first")
		}
		if _, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassAuthed}); ok {
			t.Error("room for two")
		}
		other, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassInternal})
		if !ok || g.In(types.ClassAuthed) != 1 || g.Limit(types.ClassAuthed) != 1 || g.Size() != 2 {
			t.Errorf("%v, %d of %d", ok, g.In(types.ClassAuthed), g.Limit(types.ClassAuthed))
		}
		g.Settle(v.Ticket, 0, event.CompletionDone)
		g.Settle(other.Ticket, 0, event.CompletionDone)
		synctest.Wait()
		again, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassAuthed})
		if !ok || again.Ticket == v.Ticket || again.Ticket.Slot() != v.Ticket.Slot() {
			t.Errorf("%v %v after %v", again.Ticket, ok, v.Ticket)
		}
		g.Settle(again.Ticket, 0, event.CompletionDone)
		synctest.Wait()
		end()
	})
}

// TestTheLastWordsAreHeard: what was said of those who left before the node stopped is stepped, each
// with what became of it, however many they are and whatever else comes in the same turn.
func TestTheLastWordsAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 21 // a turn takes 8
		d := &doorman{permits: all, pause: make(chan struct{})}
		g, end := gated(t, d, loop.Door{0, all, 0})
		var in []types.Ticket
		for range all {
			v, ok := g.Arrive(t.Context(), event.Admit{Class: types.ClassAuthed})
			if !ok {
				t.Fatal("no room")
			}
			in = append(in, v.Ticket)
		}
		for i, ticket := range in {
			g.Settle(ticket, 0, event.Completion(i)%event.NumCompletions)
			synctest.Wait() // the first one is being stepped
		}
		time.AfterFunc(time.Second, func() { close(d.pause) })
		end()
		if d.fates != [event.NumCompletions]int{all / 3, all / 3, all / 3} {
			t.Errorf("%v", d.fates)
		}
	})
}

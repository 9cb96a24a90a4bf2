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

// admitNode is a node that admits a number of requests in the order of arrival, and rejects those of class anon.
type admitNode struct {
	permits int
	waits   []types.Ticket
	out     map[types.Ticket]bool
	parts   []types.Ticket // reserved parts: decided at the next step
	passed  int
	most    int
	fates   [event.NumCompletions]int
	pause   chan struct{} // steps continue when it is closed; nil: at once
	stop    bool
	wrong   string
}

func (d *admitNode) Step(_ types.Now, in event.Event, out *event.Effects) {
	for _, t := range d.parts {
		out.Decisions = append(out.Decisions, event.Decision{Ticket: t, Bytes: 1})
		d.passed++
	}
	d.parts = d.parts[:0]
	switch in := in.(type) {
	case *event.ReserveBytes:
		if !d.out[in.Ticket] {
			d.wrong = "a part of a request that is not admitted"
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

func (d *admitNode) Due() (types.Instant, bool) { return 0, false }
func (d *admitNode) Status(s *event.Status) {
	if d.stop {
		s.Phase = types.Stopped
	}
}

// runAdmission runs a loop around d; end stops it.
func runAdmission(t *testing.T, d *admitNode, gate loop.ClassLimits) (g *loop.Admission, end func()) {
	t.Helper()
	d.out = map[types.Ticket]bool{}
	k := loop.NewDispatcher(loop.ClassLimits{1, 1, 1}, gate, 1)
	l := loop.New(d, new(recorder), new(recorder), k, loop.Ports{ServiceCommand: func(event.ServiceCommand) {}}, 8)
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
	return k.Admission, func() {
		t.Helper()
		l.Send(t.Context(), event.Signal{Kind: event.Drain})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d.wrong != "" || len(d.out) != 0 || len(d.waits) != 0 {
			t.Errorf("%s; %d are out, %d wait", d.wrong, len(d.out), len(d.waits))
		}
		for c := range types.NumClasses {
			if g := k.Admission; g.InFlight(c) != 0 {
				t.Errorf("%d of %v are in", g.InFlight(c), c)
			}
		}
	}
}

// TestSlotsAndPermitsReturn: many requests arrive, finish, are rejected, or are abandoned. All
// slots and permits return, and no permit is given twice.
func TestSlotsAndPermitsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &admitNode{permits: 3}
		g, end := runAdmission(t, d, loop.ClassLimits{2, 8, 4})
		var wg sync.WaitGroup
		var went, full, left, refused, parts atomic.Int64
		for i := range 64 {
			wg.Go(func() {
				dice := types.NewRand(uint64(i))
				for range 100 {
					ctx, stop := context.WithTimeout(t.Context(), time.Duration(dice.Uint64n(3))*time.Millisecond)
					in := event.Admit{Class: types.Class(dice.Uint64n(3))}
					v, ok := g.Admit(ctx, in, nil)
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
						time.Sleep(time.Duration(dice.Uint64n(2)) * time.Millisecond) // handle the request
						reserveConcurrently(t, g, v.Ticket, &dice, &parts)
						g.Finish(v.Ticket, 1, event.CompletionDone)
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

// reserveConcurrently reserves bytes of both bodies at once; some callers do not wait.
func reserveConcurrently(t *testing.T, g *loop.Admission, ticket types.Ticket, dice *types.Rand, parts *atomic.Int64) {
	var both sync.WaitGroup
	for range dice.Uint64n(3) {
		most := time.Duration(dice.Uint64n(2)) * time.Millisecond
		both.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), most)
			defer stop()
			if v, ok := g.ReserveBytes(ctx, ticket, 1); ok && (v.Ticket != ticket || v.Bytes != 1) {
				t.Errorf("%v got %+v", ticket, v)
			} else if ok {
				parts.Add(1)
			}
		})
	}
	both.Wait()
}

// TestPartIsNotDeliveredToNextUser: if a request ends with a part outstanding, it is finished
// after the part, and the next user of the slot gets no decision on it. A finished request cannot
// reserve.
func TestPartIsNotDeliveredToNextUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &admitNode{permits: 9}
		g, end := runAdmission(t, d, loop.ClassLimits{0, 1, 0})
		for i := range 3 {
			v, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil)
			if !ok || v.Bytes != 0 {
				t.Fatalf("%d: %+v %v", i, v, ok)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			if _, replied := g.ReserveBytes(ctx, v.Ticket, 1); replied {
				t.Fatal("decided before the next step")
			}
			stop()
			g.Finish(v.Ticket, 0, event.CompletionDone)
			synctest.Wait()
			if _, replied := g.ReserveBytes(t.Context(), v.Ticket, 1); replied {
				t.Fatal("a finished request reserves more")
			}
		}
		if depth, limit := g.Updates(); depth != 0 || limit != 2*g.Size() {
			t.Errorf("%d of %d words", depth, limit)
		}
		end()
	})
}

// TestReservationOutlivesItsCaller: a caller that does not wait for its reservation leaves it to the
// next one, which reserves nothing; the one after that reserves again. A second reservation is refused before the first is decided.
func TestReservationOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &admitNode{permits: 9}
		g, end := runAdmission(t, d, loop.ClassLimits{0, 2, 0})
		v, _ := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil)
		for i := range 3 {
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			if _, replied := g.ReserveBytes(ctx, v.Ticket, 1); replied {
				t.Fatal("decided before the next step")
			}
			stop()
			if g.Reserve(v.Ticket, 1) {
				t.Fatal("a second reservation before the decision")
			}
			other, _ := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil) // a step, which decides
			if got, replied := g.ReserveBytes(t.Context(), v.Ticket, 1); !replied || got.Ticket != v.Ticket || got.Bytes != 1 || d.passed != i+1 {
				t.Errorf("%+v, %v; %d were decided", got, replied, d.passed)
			}
			g.Finish(other.Ticket, 0, event.CompletionDone)
		}
		g.Finish(v.Ticket, 0, event.CompletionDone)
		synctest.Wait()
		end()
	})
}

// TestLatePartDecisionIsIgnored: a decision on a part that arrives after the slot was reused is
// not the decision of the new request.
func TestLatePartDecisionIsIgnored(t *testing.T) {
	g := loop.NewAdmission(loop.ClassLimits{0, 1, 0})
	var last types.Ticket
	for range 2 {
		at, ok := g.Enter(event.Admit{Class: types.ClassAuthed})
		if !ok {
			t.Fatal("no room")
		}
		if last != 0 {
			g.Deliver(event.Decision{Ticket: last, Bytes: 1})
		}
		if v, replied := g.PollDecision(at); replied {
			t.Fatalf("hears %+v", v)
		}
		in := g.NextEvent().(*event.Admit)
		g.Deliver(event.Decision{Ticket: in.Ticket})
		if v, replied := g.PollDecision(at); !replied || v.Ticket != in.Ticket {
			t.Fatalf("hears %+v, %v", v, replied)
		}
		last = in.Ticket
		g.Finish(last, 0, event.CompletionDone)
		g.FreeFinished([]event.Event{g.NextEvent()})
	}
}

// TestFullAdmissionRejectsAtOnce: without a slot of its class, a request is rejected at once; other
// classes are not affected.
func TestFullAdmissionRejectsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, end := runAdmission(t, &admitNode{permits: 9}, loop.ClassLimits{1, 1, 0})
		v, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil)
		if !ok {
			t.Fatal("no room for the first")
		}
		if _, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil); ok {
			t.Error("room for two")
		}
		other, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassInternal}, nil)
		if !ok || g.InFlight(types.ClassAuthed) != 1 || g.Limit(types.ClassAuthed) != 1 || g.Size() != 2 {
			t.Errorf("%v, %d of %d", ok, g.InFlight(types.ClassAuthed), g.Limit(types.ClassAuthed))
		}
		g.Finish(v.Ticket, 0, event.CompletionDone)
		g.Finish(other.Ticket, 0, event.CompletionDone)
		synctest.Wait()
		again, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil)
		if !ok || again.Ticket == v.Ticket || again.Ticket.Slot() != v.Ticket.Slot() {
			t.Errorf("%v %v after %v", again.Ticket, ok, v.Ticket)
		}
		g.Finish(again.Ticket, 0, event.CompletionDone)
		synctest.Wait()
		end()
	})
}

// TestEndsBeforeStopAreHandled: the ends of requests that finished before the node stopped are
// handled, each with its outcome, however many there are and whatever else is in the same turn.
func TestEndsBeforeStopAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 21 // a turn handles 8
		d := &admitNode{permits: all, pause: make(chan struct{})}
		g, end := runAdmission(t, d, loop.ClassLimits{0, all, 0})
		var in []types.Ticket
		for range all {
			v, ok := g.Admit(t.Context(), event.Admit{Class: types.ClassAuthed}, nil)
			if !ok {
				t.Fatal("no room")
			}
			in = append(in, v.Ticket)
		}
		for i, ticket := range in {
			g.Finish(ticket, 0, event.Completion(i)%event.NumCompletions)
			synctest.Wait() // the first one is being handled
		}
		time.AfterFunc(time.Second, func() { close(d.pause) })
		end()
		if d.fates != [event.NumCompletions]int{all / 3, all / 3, all / 3} {
			t.Errorf("%v", d.fates)
		}
	})
}

// noHolder is a request that is in progress.
type noHolder struct{}

func (noHolder) LosePermit(event.RejectReason) {}

// TestGiveWayReachesHolder: Deliver returns the holder of a permit that was given to another request; a decision on a part of it that
// is outstanding stays outstanding. There is none of a request that has ended, nor of a later one of the slot.
func TestGiveWayReachesHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := loop.NewAdmission(loop.ClassLimits{0, 0, 1})
		admit := func(holder loop.Holder) types.Ticket {
			admitted := make(chan event.Decision)
			go func() {
				v, _ := g.Admit(t.Context(), event.Admit{Class: types.ClassAnon}, holder)
				admitted <- v
			}()
			synctest.Wait()
			if g.Deliver(event.Decision{Ticket: g.NextEvent().(*event.Admit).Ticket}) != nil {
				t.Error("a request gives way when it is admitted")
			}
			return (<-admitted).Ticket
		}
		gaveWay := func(of types.Ticket) bool {
			return g.Deliver(event.Decision{Ticket: of, Reason: event.RejectGaveWay, Problem: event.Busy}) != nil
		}
		first := admit(noHolder{})
		if !g.Reserve(first, 7) {
			t.Fatal("a part cannot be reserved")
		}
		if !gaveWay(first) {
			t.Error("there is no holder")
		}
		if v, replied := g.PollReserved(first); replied {
			t.Errorf("the part got %+v", v)
		}
		_ = g.Deliver(event.Decision{Ticket: first, Reason: event.RejectQueueTimeout, Problem: event.Busy})
		if v, replied := g.PollReserved(first); !replied || v.Reason != event.RejectQueueTimeout {
			t.Errorf("the part got %+v", v)
		}
		g.Finish(first, 0, event.CompletionDone)
		if gaveWay(first) {
			t.Error("a request that has ended gives way")
		}
		g.FreeFinished([]event.Event{g.NextEvent(), g.NextEvent()})
		second := admit(noHolder{})
		if gaveWay(first) {
			t.Error("a later request of the slot gives way")
		}
		g.Finish(second, 0, event.CompletionDone)
		g.FreeFinished([]event.Event{g.NextEvent()})
		if gaveWay(admit(nil)) {
			t.Error("there is a holder")
		}
	})
}

// TestEndedKeyReachesHolder: the decision that a key has ended rejects a request that waits, and takes the permit of an admitted one: its
// holder hears it once, also if the caller has not read that it was admitted. Then a part that waits gets a decision of its own.
func TestEndedKeyReachesHolder(t *testing.T) {
	ended := func(of types.Ticket) event.Decision {
		return event.Decision{Ticket: of, Reason: event.RejectKeyEnded, Problem: event.Unauthorized}
	}
	g := loop.NewAdmission(loop.ClassLimits{0, 1, 0})
	in := event.Admit{Class: types.ClassAuthed, Key: 7}
	first, _ := g.Enter(in)
	waits := g.NextEvent().(*event.Admit).Ticket
	if g.Deliver(ended(waits)) != nil {
		t.Error("a request that waits has no permit to lose")
	}
	if v, ok := g.PollDecision(first); !ok || v != ended(waits) {
		t.Errorf("the request that waits gets %+v, %v", v, ok)
	}
	synctest.Test(t, func(t *testing.T) {
		g := loop.NewAdmission(loop.ClassLimits{0, 1, 0})
		answered := make(chan event.Decision, 1)
		go func() {
			v, _ := g.Admit(t.Context(), in, noHolder{})
			answered <- v
		}()
		synctest.Wait()
		ticket := g.NextEvent().(*event.Admit).Ticket
		_ = g.Deliver(event.Decision{Ticket: ticket})
		if g.Deliver(ended(ticket)) == nil {
			t.Error("the holder does not hear of it")
		}
		if v := <-answered; v.Reason != event.Admitted {
			t.Errorf("it was admitted, and got %+v", v)
		}
		if !g.Reserve(ticket, 7) {
			t.Fatal("a part cannot be reserved")
		}
		if g.Deliver(ended(ticket)) != nil {
			t.Error("the holder hears of it twice")
		}
		if v, replied := g.PollReserved(ticket); !replied || v != ended(ticket) {
			t.Errorf("the part got %+v, %v", v, replied)
		}
		g.Finish(ticket, 0, event.CompletionDone)
		if g.Deliver(ended(ticket)) != nil {
			t.Error("a request that has ended has a holder")
		}
	})
}

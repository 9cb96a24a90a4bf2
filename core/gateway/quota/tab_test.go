package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/gateway/quota"
	"macronode/core/types"
	model "macronode/models/quota"
)

const places = 4 // of requests that are in

func (w *twins) place() int { return rapid.IntRange(0, places-1).Draw(w.T, "place") }

func verdictOf(m model.Told) quota.Result {
	return quota.Result{Refused: m.Refused, Rule: uint8(m.Rule), Left: uint32(min(m.Left, 1<<32-1)), Reset: m.Reset, RetryAfter: m.Retry, Shadow: bitsOf(m.Shadow)}
}

// upload lets a request in and parts of its body, and beside it another of the same caller.
func (w *twins) upload(*rapid.T) {
	who := w.drawWho()
	w.enters(w.place(), who)
	for range 6 {
		w.body(w.T)
	}
	w.enters(w.place(), who)
}

// enter lets a request in, with a tab; some of them are refused after all.
func (w *twins) enter(*rapid.T) { w.enters(w.place(), w.drawWho()) }

func (w *twins) enters(place int, who quota.Subject) {
	if w.twin.Tabs[place] != nil {
		return
	}
	bytes := rapid.SampledFrom([]uint64{0, 0, 1, 2, 99, 1 << 20}).Draw(w.T, "first")
	held := false
	for _, t := range w.twin.Tabs {
		held = held || t != nil && t.Held > 0
	}
	v, o := w.live.Admit(w.now, uint32(place), who, bytes), w.other.Admit(w.now, uint32(place), who, bytes)
	if want := verdictOf(w.twin.Enter(w.now, place, model.Who(who), bytes)); v != want || o != want {
		w.Fatalf("at %d %+v enters with %d bytes: %+v and %+v, the twin says %+v", w.now, who, bytes, v, o, want)
	}
	if v.Refused {
		return
	}
	if held {
		w.saw["came beside what is held"]++
	}
	if rapid.IntRange(0, 3).Draw(w.T, "refused after all") == 0 {
		w.undo(place)
		return
	}
	if got, want := w.live.ChargeInstance(w.now, uint32(place)), bitsOf(w.twin.Go(w.now, place)); got != want {
		w.Fatalf("goes with shadows %b, the twin says %b", got, want)
	}
	w.other.ChargeInstance(w.now, uint32(place))
}

// undo gives back at once, or a little later.
func (w *twins) undo(place int) {
	w.saw["undone"]++
	if rapid.Bool().Draw(w.T, "later") {
		w.pass(w.T)
	}
	w.live.Undo(w.now, uint32(place))
	w.other.Undo(w.now, uint32(place))
	w.twin.Undo(w.now, place)
}

// body books a part of a body, or goes on with one that is held.
func (w *twins) body(*rapid.T) {
	place := w.place()
	t := w.twin.Tabs[place]
	if t == nil {
		return
	}
	if t.Held == 0 {
		w.book(place)
		return
	}
	if bytes := t.Held; rapid.IntRange(0, 3).Draw(w.T, "dropped") == 0 {
		w.saw["dropped"]++
		w.live.ReleasePart(w.now, uint32(place), bytes)
		w.other.ReleasePart(w.now, uint32(place), bytes)
		w.twin.Drop(w.now, place, bytes)
		return
	}
	w.letGo(place, t.Held)
}

func (w *twins) letGo(place int, bytes uint64) {
	w.live.GrantPart(uint32(place))
	w.other.GrantPart(uint32(place))
	w.twin.Let(place)
	w.live.ChargeInstancePart(w.now, uint32(place), bytes)
	w.other.ChargeInstancePart(w.now, uint32(place), bytes)
	w.twin.Draw(w.now, place, bytes)
}

func (w *twins) book(place int) {
	bytes := rapid.SampledFrom([]uint64{1, 2, 3, 99, 1 << 16}).Draw(w.T, "part")
	most := rapid.SampledFrom([]time.Duration{0, 7, time.Second, time.Hour}).Draw(w.T, "most")
	wait, v := w.live.ReservePart(w.now, uint32(place), bytes, most)
	other, o := w.other.ReservePart(w.now, uint32(place), bytes, most)
	wants, m := w.twin.Book(w.now, place, bytes, most)
	if want := verdictOf(m); wait != wants || other != wants || v != want || o != want {
		w.Fatalf("at %d %d bytes of %d: %v %+v and %v %+v, the twin says %v %+v", w.now, bytes, place, wait, v, other, o, wants, want)
	}
	switch {
	case v.Refused:
		w.saw["refused a part"]++
	case wait > 0:
		w.saw["held"]++
	default:
		w.letGo(place, bytes)
	}
}

// settle ends a request that had less than it was charged, or more.
func (w *twins) settle(*rapid.T) {
	place := w.place()
	t := w.twin.Tabs[place]
	if t == nil {
		return
	}
	bytes := rapid.OneOf(rapid.Uint64Range(0, t.Had), rapid.Uint64Range(t.Had, t.Had+200)).Draw(w.T, "really")
	if bytes < t.Had {
		w.saw["given back"]++
	} else if bytes > t.Had {
		w.saw["owed"]++
	}
	w.live.Finish(w.now, uint32(place), bytes)
	w.other.Finish(w.now, uint32(place), bytes)
	w.twin.Settle(w.now, place, bytes)
}

// TestGivenBack: who enters and is refused after all, or settles for nothing, has left
// everything as if he had never come.
func TestGivenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t, map[string]int{})
		l := quota.Limits{Peers: 8, Keys: 8, Tenants: 8, Slots: places}
		for i := range w.rules { // of a shadow there is no end of what is owed but a day's
			w.rules[i].Shadow = false
		}
		came, never := quota.New(w.rules, l, 1), quota.New(w.rules, l, 1)
		for range 20 {
			w.pass(t)
			who, bytes := w.drawWho(), w.drawBytes()
			came.Charge(w.now, who, 0)
			if !came.Admit(w.now, 0, who, bytes).Refused {
				came.Undo(w.now, 0)
			}
			who, bytes = w.drawWho(), w.drawBytes()
			if a, b := came.Take(w.now, who, bytes), never.Take(w.now, who, bytes); a != b {
				t.Fatalf("%+v, and %+v where nobody came in vain", a, b)
			}
		}
	})
}

// TestStreamsAreWithin: bodies of one tenant that stream, beside small requests, some of which
// are given up midway: from the start on, what has gone is never more than burst + rate·t and
// one part for each request of those that were ever in at once.
func TestStreamsAreWithin(t *testing.T) {
	const part = 64
	most := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		r := quota.Rule{Scope: types.ScopeTenant, Unit: types.UnitBytes, Classes: quota.AllClasses, Every: time.Second,
			Rate: rapid.SampledFrom([]uint64{3, 1000}).Draw(t, "rate"), Burst: rapid.SampledFrom([]uint64{1, part, 5 * part}).Draw(t, "burst")}
		q := quota.New([]quota.Rule{r}, quota.Limits{Tenants: 1, Slots: places}, 1)
		type body struct {
			in, waits bool
			went, ask uint64
			at        types.Instant
		}
		var all [places]body
		now, went, atOnce := types.Instant(0), uint64(0), 0
		goes := func(b *body, n uint64) {
			b.went, went = b.went+n, went+n
			in := 0
			for _, b := range all {
				if b.in {
					in++
				}
			}
			atOnce = max(atOnce, in)
			over := int64(went) - int64(r.Burst+uint64(now)*r.Rate/uint64(r.Every))
			if most = max(most, over); over > int64(part*atOnce) {
				t.Fatalf("%d went, %d beyond what there is, at most %d are in at once", went, over, atOnce)
			}
		}
		for range 200 {
			place := rapid.IntRange(0, places-1).Draw(t, "place")
			b := &all[place]
			switch {
			case !b.in:
				first := uint64(rapid.IntRange(0, part).Draw(t, "first"))
				if !q.Admit(now, uint32(place), quota.Subject{Key: 1, Tenant: 1}, first).Refused {
					*b = body{in: true}
					goes(b, first)
				}
			case rapid.IntRange(0, 9).Draw(t, "ends") == 0:
				q.Finish(now, uint32(place), b.went)
				*b = body{}
			case b.waits && b.at <= now:
				q.GrantPart(uint32(place))
				b.waits = false
				goes(b, b.ask)
			case !b.waits:
				b.ask = uint64(rapid.IntRange(1, part).Draw(t, "part"))
				wait, v := q.ReservePart(now, uint32(place), b.ask, time.Hour)
				if v.Refused {
					continue
				}
				if b.waits, b.at = wait > 0, now.Add(wait); !b.waits {
					goes(b, b.ask)
				}
			}
			if rapid.Bool().Draw(t, "time") {
				now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond)
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if most == 0 {
		t.Error("nobody ever had more than burst and rate: the bound was not tried")
	}
}

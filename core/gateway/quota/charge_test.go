package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/gateway/quota"
	"macronode/core/types"
	model "macronode/models/quota"
)

const places = 4 // of requests in progress

func (w *walk) place() int { return rapid.IntRange(0, places-1).Draw(w.T, "place") }

func resultOf(m model.Result) quota.Result {
	return quota.Result{Refused: m.Refused, Rule: uint8(m.Rule), Left: uint32(min(m.Left, 1<<32-1)), Reset: m.Reset, RetryAfter: m.Retry, Shadow: bitsOf(m.Shadow)}
}

// upload admits a request and parts of its body, and another request of the same caller.
func (w *walk) upload(*rapid.T) {
	caller := w.drawSubject()
	w.admit(w.place(), caller)
	for range 6 {
		w.body(w.T)
	}
	w.admit(w.place(), caller)
}

// admitRandom admits a request with a charge; some are rejected afterwards.
func (w *walk) admitRandom(*rapid.T) { w.admit(w.place(), w.drawSubject()) }

func (w *walk) admit(place int, caller quota.Subject) {
	if w.reference.Charges[place] != nil {
		return
	}
	bytes := rapid.SampledFrom([]uint64{0, 0, 1, 2, 99, 1 << 20}).Draw(w.T, "first")
	held := false
	for _, t := range w.reference.Charges {
		held = held || t != nil && t.Held > 0
	}
	v, o := w.live.Admit(w.now, uint32(place), caller, bytes), w.other.Admit(w.now, uint32(place), caller, bytes)
	if want := resultOf(w.reference.Enter(w.now, place, model.Subject(caller), bytes)); v != want || o != want {
		w.Fatalf("at %d %+v enters with %d bytes: %+v and %+v, the model has %+v", w.now, caller, bytes, v, o, want)
	}
	if v.Refused {
		return
	}
	if held {
		w.saw["admitted beside held bytes"]++
	}
	if rapid.IntRange(0, 3).Draw(w.T, "refused after all") == 0 {
		w.undo(place)
		return
	}
	if got, want := w.live.ChargeInstance(w.now, uint32(place)), bitsOf(w.reference.Go(w.now, place)); got != want {
		w.Fatalf("spends with shadows %b, the model has %b", got, want)
	}
	w.other.ChargeInstance(w.now, uint32(place))
}

// undo gives the charge back, at once or a little later.
func (w *walk) undo(place int) {
	w.saw["undone"]++
	if rapid.Bool().Draw(w.T, "later") {
		w.pass(w.T)
	}
	w.live.Undo(w.now, uint32(place))
	w.other.Undo(w.now, uint32(place))
	w.reference.Undo(w.now, place)
}

// body reserves a part of a body, or grants one that is held.
func (w *walk) body(*rapid.T) {
	place := w.place()
	t := w.reference.Charges[place]
	if t == nil {
		return
	}
	if t.Held == 0 {
		w.reserve(place)
		return
	}
	if bytes := t.Held; rapid.IntRange(0, 3).Draw(w.T, "dropped") == 0 {
		w.saw["dropped"]++
		w.live.ReleasePart(w.now, uint32(place), bytes)
		w.other.ReleasePart(w.now, uint32(place), bytes)
		w.reference.Drop(w.now, place, bytes)
		return
	}
	w.grant(place, t.Held)
}

func (w *walk) grant(place int, bytes uint64) {
	w.live.GrantPart(uint32(place))
	w.other.GrantPart(uint32(place))
	w.reference.Let(place)
	w.live.ChargeInstancePart(w.now, uint32(place), bytes)
	w.other.ChargeInstancePart(w.now, uint32(place), bytes)
	w.reference.Draw(w.now, place, bytes)
}

func (w *walk) reserve(place int) {
	bytes := rapid.SampledFrom([]uint64{1, 2, 3, 99, 1 << 16}).Draw(w.T, "part")
	most := rapid.SampledFrom([]time.Duration{0, 7, time.Second, time.Hour}).Draw(w.T, "most")
	wait, v := w.live.ReservePart(w.now, uint32(place), bytes, most)
	other, o := w.other.ReservePart(w.now, uint32(place), bytes, most)
	wants, m := w.reference.Book(w.now, place, bytes, most)
	if want := resultOf(m); wait != wants || other != wants || v != want || o != want {
		w.Fatalf("at %d %d bytes of %d: %v %+v and %v %+v, the model has %v %+v", w.now, bytes, place, wait, v, other, o, wants, want)
	}
	switch {
	case v.Refused:
		w.saw["refused a part"]++
	case wait > 0:
		w.saw["held"]++
	default:
		w.grant(place, bytes)
	}
}

// finish finishes a request that used fewer bytes than charged, or more.
func (w *walk) finish(*rapid.T) {
	place := w.place()
	t := w.reference.Charges[place]
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
	w.reference.Settle(w.now, place, bytes)
}

// TestUndoRestoresEverything: a request that is admitted and undone, or finishes with 0 bytes,
// leaves every counter unchanged.
func TestUndoRestoresEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, map[string]int{})
		l := quota.Limits{Peers: 8, Keys: 8, Tenants: 8, Slots: places}
		for i := range w.rules { // the debt of a shadow rule is bounded by MaxDebt only
			w.rules[i].Shadow = false
		}
		came, never := quota.New(w.rules, l, 1), quota.New(w.rules, l, 1)
		for range 20 {
			w.pass(t)
			caller, bytes := w.drawSubject(), w.drawBytes()
			came.Charge(w.now, caller, 0)
			if !came.Admit(w.now, 0, caller, bytes).Refused {
				came.Undo(w.now, 0)
			}
			caller, bytes = w.drawSubject(), w.drawBytes()
			if a, b := came.Take(w.now, caller, bytes), never.Take(w.now, caller, bytes); a != b {
				t.Fatalf("%+v, but %+v without the undone request", a, b)
			}
		}
	})
}

// TestPacedBodiesStayWithinRate: bodies of one tenant are paced beside small requests, and some
// are abandoned midway. From the start, the bytes passed are at most burst + rate·t and one part
// for each request in progress at once.
func TestPacedBodiesStayWithinRate(t *testing.T) {
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
				t.Fatalf("%d passed, %d above the bound, at most %d in progress at once", went, over, atOnce)
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
		t.Error("no subject used more than burst and rate: the bound was not tested")
	}
}

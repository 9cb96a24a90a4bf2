package idempotency_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/idempotency"
	"macronode/core/types"
	model "macronode/models/idempotency"
)

func key(t types.Tenant, name string) idempotency.Key {
	return idempotency.Key{Tenant: t, Name: digest.Name([]byte(name))}
}

// spell returns the model's word for an outcome.
func spell(found bool, err error) string {
	switch {
	case errors.Is(err, idempotency.ErrConflict) && found:
		return "conflict"
	case errors.Is(err, idempotency.ErrFull):
		return "full"
	case errors.Is(err, idempotency.ErrTenantLimit):
		return "share"
	case errors.Is(err, idempotency.ErrReserved):
		return "reserved"
	case errors.Is(err, idempotency.ErrTooMany):
		return "too many"
	case err != nil:
		return err.Error()
	case found:
		return "held"
	}
	return "new"
}

// chance returns a number below n.
type chance func(n int) int

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// walk is a window, its reference model, and a window with another seed that gets the same calls.
type walk struct {
	tb
	pick   chance
	limits idempotency.Limits
	live   idempotency.Window
	model  model.State
	folded idempotency.Window
	copied idempotency.Window
	last   types.Position
	mark   types.LSN // of the index
	at     types.Time
	open   bool      // the last frame may get another key
	gone   types.LSN // forgotten up to
	saw    map[string]int
}

func newWalk(t tb, pick chance) *walk {
	l := idempotency.Limits{Keys: 1 + pick(9), PerTenant: 1 + pick(5), Tenants: 1 + pick(3), TTL: time.Duration(pick(5)) * time.Second,
		MinRetention: time.Duration(pick(3)) * time.Second}
	seed := types.Hash64(pick(1 << 30))
	return &walk{tb: t, pick: pick, limits: l, live: idempotency.New(l, seed), folded: idempotency.New(l, seed+1), copied: idempotency.New(idempotency.Limits{}, 0),
		model: model.State{Keys: l.Keys, Share: l.PerTenant, Tenants: l.Tenants, TTL: l.TTL, Trail: l.MinRetention}, at: 1_000_000, saw: map[string]int{}}
}

// index returns what the index has for a key when it has all frames up to mark.
func (w *walk) index(t types.Tenant, name string, ref bool, mark types.LSN) (was command.PriorOutcome) {
	for _, k := range w.model.All {
		if k.Tenant == t && k.Name == name && k.Ref == ref && k.Place.LSN <= mark {
			was = command.PriorOutcome{Hash: k.Asked, ID: types.NewTxID(3, k.Place), At: k.At}
		}
	}
	return was
}

// ask looks up a key, and stores it if it is new and fits, in the open frame or a later one. Some
// requests use a ref as well.
func (w *walk) ask() {
	tenant, name, asked := types.Tenant(1+w.pick(4)), string(rune('a'+w.pick(4))), types.RequestHash{byte(w.pick(2))}
	mark, wants, rows := w.mark-min(w.mark, types.LSN(w.pick(3))), w.pick(3) == 0, 1
	id, found, err := w.live.Resolve(key(tenant, name), asked, w.index(tenant, name, false, mark), w.at)
	got := spell(found, err)
	if fresh := w.live.IndexReadIsFresh(mark, w.at, wants); got == "new" && !fresh {
		got = "again"
	} else if fresh != w.model.Fresh(mark, w.at, wants) {
		w.Fatalf("%v at %d: fresh %v, unlike the model", mark, w.at, fresh)
	}
	want, at := w.model.Look(tenant, name, asked, mark, w.at)
	if want == "new" && !w.model.Fresh(mark, w.at, wants) {
		want = "again"
	}
	if got != want || id.Position() != at {
		w.Fatalf("%d %s: %s at %v, the model has %s at %v", tenant, name, got, id.Position(), want, at)
	}
	w.saw[want]++
	if want != "new" {
		return
	}
	ref := string(rune('r' + w.pick(3)))
	if wants {
		if rows = 2; w.used(tenant, ref, mark) {
			w.saw["used"]++
			return
		}
	}
	err, why := w.live.Admit(tenant, rows), w.model.Admit(tenant, rows)
	if got := spell(false, err); err != nil && got != why || err == nil && why != "" {
		w.Fatalf("%d %s: %v, the model has %q", tenant, name, err, why)
	}
	if fits := w.live.Fits(tenant, rows); fits != (why != "full") {
		w.Fatalf("%d: fits %v, the model has %q", tenant, fits, why)
	}
	if why != "" {
		w.saw[why]++
		return
	}
	w.place()
	w.remember(model.Seen{Tenant: tenant, Name: name, Asked: asked, Place: w.last, At: w.at})
	if wants {
		w.remember(model.Seen{Tenant: tenant, Name: ref, Ref: true, Place: w.last, At: w.at})
	}
}

// used compares the window and the model for a ref.
func (w *walk) used(t types.Tenant, ref string, mark types.LSN) bool {
	k := key(t, ref)
	k.Ref = true
	id, used := w.live.FindRef(k, w.index(t, ref, true, mark))
	last, any := w.model.Truth(t, ref, true, mark)
	if used != any || id.ID.Position() != last.Place {
		w.Fatalf("%d %s: used %v by %v, the model has %v by %v", t, ref, used, id.ID.Position(), any, last.Place)
	}
	return used
}

func (w *walk) remember(k model.Seen) {
	w.model.Remember(k)
	asked := k.Asked
	for _, window := range []*idempotency.Window{&w.live, &w.folded} {
		name := key(k.Tenant, k.Name)
		name.Ref = k.Ref
		window.Remember(name, command.PriorOutcome{Hash: asked, ID: types.NewTxID(3, k.Place), At: k.At})
	}
}

// report stores refs of low priority in a frame, if they fit.
func (w *walk) report() {
	tenant, rows := types.Tenant(1+w.pick(4)), 1+w.pick(3)
	why := w.model.AdmitLowPriority(tenant, rows)
	if err := w.live.AdmitLowPriority(tenant, rows); err == nil && why != "" || err != nil && spell(false, err) != why {
		w.Fatalf("%d refs of %d: %v, the model has %q", rows, tenant, err, why)
	}
	if why != "" {
		w.saw["events: "+why]++
		return
	}
	w.place()
	for n := range rows {
		w.remember(model.Seen{Tenant: tenant, Name: fmt.Sprintf("event %d %d", w.last, n), Ref: true, Place: w.last, At: w.at})
	}
	w.saw["events: new"]++
}

// undo stores keys and undoes that.
func (w *walk) undo() {
	was, m := w.live.Hash(), w.live.Savepoint()
	for n := range w.pick(3) {
		if t := types.Tenant(1 + w.pick(4)); w.live.Fits(t, 1) {
			at := types.Position{LSN: w.last.LSN + 1, Index: uint16(n)}
			w.live.Remember(key(t, string(rune('U'+n))), command.PriorOutcome{ID: types.NewTxID(3, at), At: w.at})
		}
	}
	if w.live.Undo(m); w.live.Hash() != was {
		w.Fatalf("it is not taken back: %x, was %x", w.live.Hash(), was)
	}
}

// place picks the frame of the next outcome: the open frame, or a later one.
func (w *walk) place() {
	if w.pick(3) == 0 && w.open {
		w.last.Index++
		return
	}
	w.last = types.Position{LSN: w.last.LSN + 1 + types.LSN(w.pick(2))}
	w.at += types.Time(500 * w.pick(3))
	w.open = true
}

// sweep evicts what is evictable.
func (w *walk) sweep() {
	most, at := w.pick(4), max(w.at, w.at+types.Time(500*w.pick(10)-w.pick(2)))
	upto, any := w.live.Evictable(at, w.mark, most)
	if want, some := w.model.Spare(at, w.mark, most); upto != want || any != some {
		w.Fatalf("at %d: evictable to %v %v, the model has %v %v", at, upto, any, want, some)
	}
	for _, h := range w.model.Held {
		if any && h.Place.LSN <= upto && (h.Place.LSN > w.mark || h.At.Add(w.limits.MinRetention) > at) {
			w.Fatalf("at %d: %s of %d would be forgotten to %v", at, h.Name, h.At, upto)
		}
	}
	if !any {
		w.saw["kept"]++
		return
	}
	w.saw["expired"]++
	w.at = at
	w.forget(upto)
}

func (w *walk) forget(upto types.LSN) {
	w.open = false
	w.model.Forget(upto)
	was := w.live.Hash()
	w.live.Forget(upto)
	if upto <= w.gone && w.live.Hash() != was {
		w.Fatalf("forgetting to %v changed the mark %v", upto, w.gone)
	}
	w.gone = max(w.gone, upto)
	w.folded.Forget(upto)
}

func (w *walk) copy() {
	w.live.CopyTo(&w.copied)
	w.live, w.copied = w.copied, w.live // continue with the copy
}

// step makes one random call and compares.
func (w *walk) step() {
	left := w.copied.Hash()
	switch w.pick(14) {
	case 12, 13:
		w.report()
	case 0, 1:
		w.sweep()
	case 2:
		w.copy()
		left = w.copied.Hash()
		if left != w.live.Hash() {
			w.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&w.live, &w.copied))
		}
	case 4:
		w.mark += types.LSN(w.pick(int(w.last.LSN-w.mark) + 1))
	case 5:
		w.undo()
	case 3:
		if w.last.LSN > 0 {
			w.forget(types.LSN(1 + w.pick(int(w.last.LSN))))
		}
	default:
		w.ask()
	}
	if w.copied.Hash() != left {
		w.Fatalf("a copy changed with its original")
	}
	if err := errors.Join(w.live.Check(), w.copied.Check()); err != nil {
		w.Fatalf("%v", err)
	}
	if w.live.Len() != len(w.model.Held) || w.folded.Hash() != w.live.Hash() {
		w.Fatalf("%d keys are held, the model has %d; hashes %x and %x", w.live.Len(), len(w.model.Held), w.live.Hash(), w.folded.Hash())
	}
	for _, h := range w.model.Held {
		k := key(h.Tenant, h.Name)
		k.Ref = h.Ref
		if was, found := w.live.Find(k, command.PriorOutcome{}, w.at); !found || was.Hash != h.Asked || was.ID.Position() != h.Place {
			w.Fatalf("%s of %d is %v %v, the model has %v", h.Name, h.Tenant, was, found, h.Place)
		}
	}
}

// TestMatchesModel compares the window with its reference model under random calls.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		t.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step() }})
	})
}

// TestModelCoversEveryOutcome: the random walks produce every outcome often.
func TestModelCoversEveryOutcome(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(120) {
		dice := types.NewRand(seed)
		w := newWalk(t, func(n int) int { return int(dice.Uint64n(uint64(n))) })
		for range 150 {
			w.step()
		}
		for what, n := range w.saw {
			saw[what] += n
		}
	}
	for _, what := range []string{"new", "held", "conflict", "again", "used", "full", "share", "expired", "kept",
		"events: new", "events: too many", "events: reserved", "events: share", "events: full"} {
		if saw[what] < 20 {
			t.Errorf("%q was returned %d times: %v", what, saw[what], saw)
		}
	}
	t.Log(saw)
}

// TestNearlyFullBelowAnEighth: less than an eighth of the window is free, not exactly an eighth.
func TestNearlyFullBelowAnEighth(t *testing.T) {
	w := idempotency.New(idempotency.Limits{Keys: 32, PerTenant: 32, Tenants: 1, TTL: time.Hour}, 1)
	for n := range 32 {
		if want := 32-n < 4; w.NearlyFull() != want {
			t.Errorf("tight with %d of 32 left: %v", 32-n, !want)
		}
		w.Remember(idempotency.Key{Tenant: 1, Name: types.NameHash{byte(n)}}, command.PriorOutcome{ID: types.NewTxID(1, types.Position{LSN: types.LSN(n + 1)}), At: 1})
	}
}

// TestWindowTakesPrecedenceOverIndex: for a key in the window, the answer of the index is
// ignored.
func TestWindowTakesPrecedenceOverIndex(t *testing.T) {
	w, k := idempotency.New(idempotency.Limits{Keys: 2, PerTenant: 2, Tenants: 1, TTL: time.Hour}, 1), idempotency.Key{Tenant: 1}
	held := command.PriorOutcome{ID: types.NewTxID(1, types.Position{LSN: 2}), At: 2}
	w.Remember(k, held)
	if got, ok := w.Find(k, command.PriorOutcome{ID: types.NewTxID(1, types.Position{LSN: 1}), At: 1}, 3); !ok || got != held {
		t.Errorf("%+v, %v", got, ok)
	}
}

package idem_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/flip"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/words"
	model "macronode/models/idem"
)

func key(t words.Tenant, name string) idem.Key {
	return idem.Key{Tenant: t, Name: digest.Name([]byte(name))}
}

// spell is the twin's words for the machine's.
func spell(found bool, err error) string {
	switch {
	case errors.Is(err, idem.ErrConflict) && found:
		return "conflict"
	case errors.Is(err, idem.ErrFull):
		return "full"
	case errors.Is(err, idem.ErrShare):
		return "share"
	case err != nil:
		return err.Error()
	case found:
		return "held"
	}
	return "new"
}

// chance picks one of n.
type chance func(n int) int

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// twins are a window, its dumb twin, and a window of another seed that remembers and
// forgets the same.
type twins struct {
	tb
	pick   chance
	limits idem.Limits
	live   idem.Window
	model  model.State
	folded idem.Window
	copied idem.Window
	last   words.Place
	mark   words.LSN // of the index
	at     words.Time
	open   bool      // the last frame may get another key
	gone   words.LSN // forgotten
	saw    map[string]int
}

func newTwins(t tb, pick chance) *twins {
	l := idem.Limits{Keys: 1 + pick(6), Share: 1 + pick(4), Tenants: 1 + pick(3), TTL: time.Duration(pick(5)) * time.Second,
		Trail: time.Duration(pick(3)) * time.Second}
	seed := words.Hash64(pick(1 << 30))
	return &twins{tb: t, pick: pick, limits: l, live: idem.New(l, seed), folded: idem.New(l, seed+1), copied: idem.New(idem.Limits{}, 0),
		model: model.State{Keys: l.Keys, Share: l.Share, Tenants: l.Tenants, TTL: l.TTL, Trail: l.Trail}, at: 1_000_000, saw: map[string]int{}}
}

// index is what the index says of a key when it has all frames up to mark.
func (w *twins) index(t words.Tenant, name string, ref bool, mark words.LSN) (was event.Seen) {
	for _, k := range w.model.All {
		if k.Tenant == t && k.Name == name && k.Ref == ref && k.Place.LSN <= mark {
			was = event.Seen{Asked: k.Asked, ID: words.NewTxID(3, k.Place), At: k.At}
		}
	}
	return was
}

// ask looks a key up, and remembers it where it is new and there is room: in the frame
// of the one before, or in a later one. Some want a ref as well.
func (w *twins) ask() {
	tenant, name, asked := words.Tenant(1+w.pick(4)), string(rune('a'+w.pick(4))), words.Asked{byte(w.pick(2))}
	mark, wants, rows := w.mark-min(w.mark, words.LSN(w.pick(3))), w.pick(3) == 0, 1
	id, found, err := w.live.Look(key(tenant, name), asked, w.index(tenant, name, false, mark), w.at)
	got := spell(found, err)
	if fresh := w.live.Fresh(mark, w.at, wants); got == "new" && !fresh {
		got = "again"
	} else if fresh != w.model.Fresh(mark, w.at, wants) {
		w.Fatalf("%v at %d: fresh %v, the twin says otherwise", mark, w.at, fresh)
	}
	want, at := w.model.Look(tenant, name, asked, mark, w.at)
	if want == "new" && !w.model.Fresh(mark, w.at, wants) {
		want = "again"
	}
	if got != want || id.Place() != at {
		w.Fatalf("%d %s: %s at %v, the twin says %s at %v", tenant, name, got, id.Place(), want, at)
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
		w.Fatalf("%d %s: %v, the twin says %q", tenant, name, err, why)
	}
	if fits := w.live.Fits(tenant, rows); fits != (why != "full") {
		w.Fatalf("%d: fits %v, the twin says %q", tenant, fits, why)
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

// used holds the machine and its twin to one opinion of a ref.
func (w *twins) used(t words.Tenant, ref string, mark words.LSN) bool {
	k := key(t, ref)
	k.Ref = true
	id, used := w.live.Used(k, w.index(t, ref, true, mark).ID)
	last, any := w.model.Truth(t, ref, true, mark)
	if used != any || id.Place() != last.Place {
		w.Fatalf("%d %s: used %v by %v, the twin says %v by %v", t, ref, used, id.Place(), any, last.Place)
	}
	return used
}

func (w *twins) remember(k model.Seen) {
	w.model.Remember(k)
	asked := k.Asked
	for _, window := range []*idem.Window{&w.live, &w.folded} {
		name := key(k.Tenant, k.Name)
		name.Ref = k.Ref
		window.Remember(name, event.Seen{Asked: asked, ID: words.NewTxID(3, k.Place), At: k.At})
	}
}

// undo remembers what is then taken back.
func (w *twins) undo() {
	was, m := w.live.Hash(), w.live.Mark()
	for n := range w.pick(3) {
		if t := words.Tenant(1 + w.pick(4)); w.live.Fits(t, 1) {
			at := words.Place{LSN: w.last.LSN + 1, Index: uint16(n)}
			w.live.Remember(key(t, string(rune('U'+n))), event.Seen{ID: words.NewTxID(3, at), At: w.at})
		}
	}
	if w.live.Undo(m); w.live.Hash() != was {
		w.Fatalf("it is not taken back: %x, was %x", w.live.Hash(), was)
	}
}

// place is where the next outcome stands: in the frame of the one before, when that is
// still open, or in a later frame.
func (w *twins) place() {
	if w.pick(3) == 0 && w.open {
		w.last.Index++
		return
	}
	w.last = words.Place{LSN: w.last.LSN + 1 + words.LSN(w.pick(2))}
	w.at += words.Time(500 * w.pick(3))
	w.open = true
}

// sweep forgets what has had its time. Nothing is forgotten before.
func (w *twins) sweep() {
	most, at := w.pick(4), max(w.at, w.at+words.Time(500*w.pick(10)-w.pick(2)))
	upto, any := w.live.Spare(at, w.mark, most)
	if want, some := w.model.Spare(at, w.mark, most); upto != want || any != some {
		w.Fatalf("at %d: spare to %v %v, the twin says %v %v", at, upto, any, want, some)
	}
	for _, h := range w.model.Held {
		if any && h.Place.LSN <= upto && (h.Place.LSN > w.mark || h.At.Plus(w.limits.Trail) > at) {
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

func (w *twins) forget(upto words.LSN) {
	w.open = false
	w.model.Forget(upto)
	was := w.live.Hash()
	w.live.Forget(upto)
	if upto <= w.gone && w.live.Hash() != was {
		w.Fatalf("forgetting to %v changed what was forgotten to %v", upto, w.gone)
	}
	w.gone = max(w.gone, upto)
	w.folded.Forget(upto)
}

func (w *twins) copy() {
	w.live.CopyTo(&w.copied)
	w.live, w.copied = w.copied, w.live // what was copied stays behind, and lives
}

// step does one of them, and holds that both have the same.
func (w *twins) step() {
	left := w.copied.Hash()
	switch w.pick(12) {
	case 0, 1:
		w.sweep()
	case 2:
		w.copy()
		left = w.copied.Hash()
		if left != w.live.Hash() {
			w.Fatalf("a copy has another hash: %s", flip.Apart(&w.live, &w.copied))
		}
	case 4:
		w.mark += words.LSN(w.pick(int(w.last.LSN-w.mark) + 1))
	case 5:
		w.undo()
	case 3:
		if w.last.LSN > 0 {
			w.forget(words.LSN(1 + w.pick(int(w.last.LSN))))
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
		w.Fatalf("%d keys are held, the twin holds %d; hashes %x and %x", w.live.Len(), len(w.model.Held), w.live.Hash(), w.folded.Hash())
	}
	for _, h := range w.model.Held {
		k := key(h.Tenant, h.Name)
		k.Ref = h.Ref
		if was, found := w.live.Find(k, event.Seen{}, w.at); !found || was.Asked != h.Asked || was.ID.Place() != h.Place {
			w.Fatalf("%s of %d is %v %v, the twin says %v", h.Name, h.Tenant, was, found, h.Place)
		}
	}
}

// TestAgrees walks a window and its twin through the same random life.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		t.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step() }})
	})
}

// TestAgreesOnAll: of the lives that everybody walks, none of the answers is missing.
func TestAgreesOnAll(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(120) {
		dice := words.NewDice(seed)
		w := newTwins(t, func(n int) int { return int(dice.Below(uint64(n))) })
		for range 150 {
			w.step()
		}
		for what, n := range w.saw {
			saw[what] += n
		}
	}
	for _, what := range []string{"new", "held", "conflict", "again", "used", "full", "share", "expired", "kept"} {
		if saw[what] < 20 {
			t.Errorf("%q was said %d times: %v", what, saw[what], saw)
		}
	}
	t.Log(saw)
}

// TestTight: less than an eighth of the room is left, and not just an eighth.
func TestTight(t *testing.T) {
	w := idem.New(idem.Limits{Keys: 32, Share: 32, Tenants: 1, TTL: time.Hour}, 1)
	for n := range 32 {
		if want := 32-n < 4; w.Tight() != want {
			t.Errorf("tight with %d of 32 left: %v", 32-n, !want)
		}
		w.Remember(idem.Key{Tenant: 1, Name: words.ID{byte(n)}}, event.Seen{ID: words.NewTxID(1, words.Place{LSN: words.LSN(n + 1)}), At: 1})
	}
}

// TestTheWindowKnowsBest: of a key that it holds the index is not heard, whatever that says.
func TestTheWindowKnowsBest(t *testing.T) {
	w, k := idem.New(idem.Limits{Keys: 2, Share: 2, Tenants: 1, TTL: time.Hour}, 1), idem.Key{Tenant: 1}
	held := event.Seen{ID: words.NewTxID(1, words.Place{LSN: 2}), At: 2}
	w.Remember(k, held)
	if got, ok := w.Find(k, event.Seen{ID: words.NewTxID(1, words.Place{LSN: 1}), At: 1}, 3); !ok || got != held {
		t.Errorf("%+v, %v", got, ok)
	}
}

package idem_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/digest"
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
	at     words.Time
	open   bool      // the last frame may get another key
	gone   words.LSN // forgotten
	saw    map[string]int
}

func newTwins(t tb, pick chance) *twins {
	l := idem.Limits{Keys: 1 + pick(6), Share: 1 + pick(4), Tenants: 1 + pick(3), TTL: time.Duration(pick(5)) * time.Second}
	seed := words.Hash64(pick(1 << 30))
	return &twins{tb: t, pick: pick, limits: l, live: idem.New(l, seed), folded: idem.New(l, seed+1), copied: idem.New(idem.Limits{}, 0),
		model: model.State{Keys: l.Keys, Share: l.Share, Tenants: l.Tenants, TTL: l.TTL}, saw: map[string]int{}}
}

// ask looks a key up, and remembers it where it is new and there is room: in the frame
// of the one before, or in a later one.
func (w *twins) ask() {
	tenant, name, asked := words.Tenant(1+w.pick(4)), string(rune('a'+w.pick(4))), words.Asked{byte(w.pick(2))}
	place, found, err := w.live.Look(key(tenant, name), asked)
	want, at := w.model.Look(tenant, name, asked)
	if got := spell(found, err); got != want || place != at {
		w.Fatalf("%d %s: %s at %v, the twin says %s at %v", tenant, name, got, place, want, at)
	}
	w.saw[want]++
	if want != "new" {
		return
	}
	err, why := w.live.Admit(tenant), w.model.Admit(tenant)
	if got := spell(false, err); err != nil && got != why || err == nil && why != "" {
		w.Fatalf("%d %s: %v, the twin says %q", tenant, name, err, why)
	}
	if fits := w.live.Fits(tenant); fits != (why != "full") {
		w.Fatalf("%d: fits %v, the twin says %q", tenant, fits, why)
	}
	if why != "" {
		w.saw[why]++
		return
	}
	w.place()
	w.model.Remember(model.Seen{Tenant: tenant, Name: name, Asked: asked, Place: w.last, At: w.at})
	for _, window := range []*idem.Window{&w.live, &w.folded} {
		window.Remember(key(tenant, name), idem.Seen{Asked: asked, Place: w.last, At: w.at})
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
	upto, any := w.live.Expired(at, most)
	if want, some := w.model.Expired(at, most); upto != want || any != some {
		w.Fatalf("at %d: expired to %v %v, the twin says %v %v", at, upto, any, want, some)
	}
	for _, h := range w.model.Held {
		if any && h.Place.LSN <= upto && h.At.Plus(w.limits.TTL) > at {
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
			w.Fatalf("a copy hashes to %x, not to %x", w.live.Hash(), left)
		}
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
		if place, found, err := w.live.Look(key(h.Tenant, h.Name), h.Asked); !found || err != nil || place != h.Place {
			w.Fatalf("%s of %d is %v %v %v, the twin says %v", h.Name, h.Tenant, place, found, err, h.Place)
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
	for seed := range uint64(60) {
		dice := words.NewDice(seed)
		w := newTwins(t, func(n int) int { return int(dice.Below(uint64(n))) })
		for range 150 {
			w.step()
		}
		for what, n := range w.saw {
			saw[what] += n
		}
	}
	for _, what := range []string{"new", "held", "conflict", "full", "share", "expired", "kept"} {
		if saw[what] < 20 {
			t.Errorf("%q was said %d times: %v", what, saw[what], saw)
		}
	}
	t.Log(saw)
}

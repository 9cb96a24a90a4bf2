package explore

import (
	"reflect"
	"testing"
	"unsafe"

	"macronode/ci/hashcoverage"
	"macronode/core/event"
)

// busy returns a world with something in every place.
func busy(t *testing.T) *World {
	t.Helper()
	w := Open(scopes()[1].plan)
	p := w.last
	for _, q := range []*queue{&w.late, &w.folds} {
		for range 6 {
			q.push(word{what: durable, page: p, bytes: 3})
		}
	}
	for i := range w.clients {
		w.clients[i].want.page, w.clients[i].asked, w.clients[i].wish = p, p, w.h.wishes[0]
	}
	for i := range w.facts {
		w.facts[i].page = p
	}
	return w
}

// TestHashCoversEveryField of a world. core/node tests the hash of its node.
func TestHashCoversEveryField(t *testing.T) {
	w := busy(t)
	hashcoverage.Every(t, w, w.Hash,
		"h: what all worlds of a scope share", "node: held to it in its own room",
		"last: a page, see below", "handed: a page", "wrote: a page", "safe: a page", "folded: a page", "mark: a page", "table: a page",
		"late.words[].page: a page", "folds.words[].page: a page", "late.count: a length, see below", "folds.count: a length",
		"clients[].want.page: a page", "clients[].asked: a page", "clients[].wish: see below", "facts[].page: a page")
}

// TestHashCoversPages: every page and every length.
func TestHashCoversPages(t *testing.T) {
	w := busy(t)
	other, was := w.last.before, w.Hash()
	pages := 0
	var into func(v reflect.Value, path string)
	into = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				into(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.Array:
			for i := range v.Len() {
				into(v.Index(i), path)
			}
		case reflect.Pointer:
			if v.Type() != reflect.TypeFor[*page]() {
				return
			}
			pages++
			at := (**page)(unsafe.Pointer(v.UnsafeAddr()))
			one := *at
			for _, now := range []*page{other, nil} {
				if *at = now; w.Hash() == was {
					t.Errorf("%s is not in the hash", path)
				}
			}
			*at = one
		}
	}
	into(reflect.ValueOf(w).Elem(), "world")
	if pages != 7+6+6+4+maxKeys {
		t.Errorf("%d pages were looked at", pages)
	}
	for what, change := range map[string]func(*World){
		"a word more": func(w *World) { w.late.pop() },
		"a batch":     func(w *World) { w.folds.pop() },
		"a wish":      func(w *World) { w.clients[1].wish = w.h.wishes[1] },
		"no wish":     func(w *World) { w.clients[0].wish = nil },
		"the node":    func(w *World) { w.node.Step(w.now, event.DiskFree{Bytes: 0}, &w.h.out) },
		"its life":    func(w *World) { w.life = dead },
	} {
		var again World
		w.CopyTo(&again)
		if again.Hash() != was {
			t.Fatal("a copy has another hash")
		}
		if change(&again); again.Hash() == was {
			t.Errorf("%s is not in the hash", what)
		}
		if w.Hash() != was {
			t.Errorf("%s: a change of a copy changed the world", what)
		}
	}
}

// TestHashTellsRequestsApart: the hash of a client covers its request by key, nonce and amount.
func TestHashTellsRequestsApart(t *testing.T) {
	for _, s := range scopes() {
		type mark struct{ key, nonce, amount uint64 }
		seen := map[mark]*wish{}
		for _, all := range newShared(s.plan).scripts {
			for _, w := range all {
				m := mark{uint64(w.key), uint64(w.r.Nonce), w.r.Amount.Lo}
				if one := seen[m]; one != nil && one != w {
					t.Errorf("%s: %v looks like %v", s.name, w, one)
				}
				seen[m] = w
			}
		}
	}
}

// TestActionsAreAtomic lists what each action changes: an action with two changes would hide the
// crash between them.
func TestActionsAreAtomic(t *testing.T) {
	counts := map[act]int{}
	for _, s := range scopes() {
		w := Open(s.plan)
		for range 200 {
			all := w.Enabled(nil)
			if len(all) == 0 {
				break
			}
			a := all[(len(all)-1)-len(counts)%len(all)]
			was := *w
			if err := w.Do(a); err != nil {
				t.Fatal(err)
			}
			counts[a.kind()]++
			moved := 0
			for _, m := range []bool{was.last != w.last, was.wrote != w.wrote, was.safe != w.safe, was.folded != w.folded, was.clients != w.clients} {
				if m {
					moved++
				}
			}
			asks := a.kind() == actAsk || a.kind() == actPass || a.kind() == actJump || a.kind() == actListen || a.kind() == actDrain
			crash := a.kind() == actPower || a.kind() == actKill || a.kind() == actBoot
			if !asks && !crash && moved > 1 {
				t.Errorf("%v moves %d things", a.kind(), moved)
			}
		}
	}
	for _, a := range []act{actAsk, actHear, actWrite, actSync, actFold, actListen, actRead, actBoot} {
		if counts[a] == 0 {
			t.Errorf("%v was never done", a)
		}
	}
}

// TestImpossibleFaultsAreDetected: with a fault that a correct environment does not have, a scope
// must fail; otherwise the explorer detects nothing.
func TestImpossibleFaultsAreDetected(t *testing.T) {
	for what, c := range map[string]struct {
		scope string
		lie   lies
		rules string
	}{
		"a sync without effect":            {"the same key twice, and power", lies{sync: true}, "X2"},
		"answers before the disk has them": {"the same key twice, and power", lies{early: true}, "X1"},
	} {
		for _, s := range scopes() {
			if s.name != c.scope {
				continue
			}
			s.plan.lies = c.lie
			r := Run(Open(s.plan), Scope{Room: s.room})
			if r.Found == nil || rule(r.Found.Err) != c.rules {
				t.Errorf("%s: found %v", what, r.Found)
				continue
			}
			t.Logf("%s, after %d transitions:\n%v", what, r.Transitions, r.Found)
		}
	}
}

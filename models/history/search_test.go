package history_test

import (
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"macronode/core/types"
	"macronode/models/history"
)

var (
	histories = flag.Int("histories", 12_000, "how many are drawn; every second one is spoiled")
	first     = flag.Uint64("first", 1, "the seed of the first")
)

// TestMatchesSearch compares the certificate with two searches that share no code with it:
// whether any order explains a history, and whether the order of the journal does.
//
//	G1  the certificate agrees with the second search
//	G2  a history that no order explains is never certified
//	G3  a history that was not spoiled is certified
//	G4  where the searches differ, the first shows another order, which explains the history
func TestMatchesSearch(t *testing.T) {
	saw := map[string]int{}
	for n := range *histories {
		seed := *first + uint64(n)
		dice := types.NewRand(seed)
		s, name := draw(&dice), "true"
		for n%2 == 1 && name == "true" {
			l := lies[dice.Uint64n(uint64(len(lies)))]
			if l.tell(&s, &dice) {
				name = l.name
			}
		}
		some, shown := anyOrder(s)
		own, f := ownOrder(s), s.certify()
		where := fmt.Sprintf("%s (-first %d -histories 1): %v", name, seed, f)
		switch {
		case (f == nil) != own:
			t.Fatalf("G1: the journal's own order explains it: %v; %s\n%+v", own, where, s)
		case f == nil && !some:
			t.Fatalf("G2: no order explains it; %s\n%+v", where, s)
		case f != nil && name == "true":
			t.Fatalf("G3: %s\n%+v", where, s)
		case some && !own:
			if why := s.holds(shown); why != "" {
				t.Fatalf("G4: the order that was found: %s; %s\n%+v", why, where, s)
			}
			saw["wrong, but another order explains it"]++
			saw[name+": wrong"]++
		case f != nil:
			saw[name+": refused"]++
			saw["refused by both"]++
		default:
			saw["certified by both"]++
		}
		if f != nil {
			saw["fault: "+f.Why.String()]++
		}
	}
	if *histories < 10_000 {
		return // rare kinds are sampled
	}
	for _, l := range lies {
		if n := saw[l.name+": refused"] + saw[l.name+": wrong"]; n < 30 {
			t.Errorf("%s: seen through %d times only", l.name, n)
		}
	}
	for _, what := range []string{"wrong, but another order explains it", "refused by both", "certified by both"} {
		if saw[what] < 500 {
			t.Errorf("%s: %d only", what, saw[what])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(saw)) {
		t.Logf("%6d  %s", saw[what], what)
	}
	t.Logf("evidence: history.agreed = %d, no difference", *histories)
}

// anyOrder reports whether any order explains s, and returns one. A call without an answer may
// have happened at any later time, or not at all.
func anyOrder(s execution) (explained bool, order []int) {
	model := porcupine.Model{
		Init: func() any { return bank{} },
		Step: func(state, in, _ any) (bool, any) {
			b, i := state.(bank), in.(int)
			got, _ := b.Step(types.Position{}, &s.ops[i].Ask)
			return !answered(&s.ops[i]) || got == s.ops[i].Answer, b
		},
		Hash: hash[bank](),
	}
	result, info := porcupine.CheckOperationsVerbose(model, s.search(func(int) bool { return true }), 0)
	if result != porcupine.Ok {
		return false, nil
	}
	return true, info.PartialLinearizations()[0][0]
}

// place is a position in the journal, and the state of the bank there.
type place struct {
	bank
	next    int // entry
	changed int // the last entry that changed something, from 1
}

// ownOrder reports whether the order of the journal explains s. It is a search in which each step
// must be the next entry, independent of the certificate.
func ownOrder(s execution) bool {
	has := func(i int) bool {
		return answered(&s.ops[i]) || s.ops[i].Kind == history.Write && slices.ContainsFunc(s.journal, func(e record) bool { return e.Key == s.ops[i].Key })
	}
	model := porcupine.Model{
		Init: func() any { return place{} },
		Step: func(state, in, _ any) (bool, any) {
			p, i := state.(place), in.(int)
			if i == len(s.ops) {
				return p.next == len(s.journal), p
			}
			ok := p.step(s, i)
			return ok, p
		},
		Hash: hash[place](),
	}
	ops := append(s.search(has), porcupine.Operation{Input: len(s.ops), Call: int64(history.Never), Return: int64(history.Never)})
	return porcupine.CheckOperationsTimeout(model, ops, 0) == porcupine.Ok
}

// step makes an operation at p, and reports whether it belongs there and its answer matches.
func (p *place) step(s execution, i int) bool {
	op := &s.ops[i]
	if op.Kind == history.Read {
		saw := sees(s.journal, op.Place)
		got, _ := p.Step(op.Place, &op.Ask)
		return p.changed <= saw && saw <= p.next && got == op.Answer
	}
	if p.next == len(s.journal) {
		return false
	}
	e := s.journal[p.next]
	if e.Key != op.Key || answered(op) && e.Place != op.Place || p.next > 0 && !behind(e.Place, s.journal[p.next-1].Place) {
		return false
	}
	got, changed := p.Step(op.Place, &op.Ask)
	if p.next++; changed {
		p.changed = p.next
	}
	return !answered(op) || got == op.Answer
}

// search returns s in the form of the search, without operations that did not happen.
func (s execution) search(has func(int) bool) (ops []porcupine.Operation) {
	for i, op := range s.ops {
		if has(i) {
			ops = append(ops, porcupine.Operation{ClientId: int(op.Key.Client), Input: i, Call: int64(op.Call), Return: int64(op.Return)})
		}
	}
	return ops
}

// holds returns what is wrong with an order that should explain s and is not that of the journal.
func (s execution) holds(order []int) string {
	var b bank
	if len(order) != len(s.ops) {
		return "not all of them"
	}
	for n, i := range order {
		op := &s.ops[i]
		if got, _ := b.Step(op.Place, &op.Ask); answered(op) && got != op.Answer {
			return fmt.Sprintf("op %d is answered otherwise", i)
		}
		for _, j := range order[:n] {
			if s.ops[j].Call > op.Return {
				return fmt.Sprintf("op %d before %d", j, i)
			}
		}
	}
	var p place
	for _, i := range order {
		in := slices.ContainsFunc(s.journal, func(e record) bool { return e.Key == s.ops[i].Key })
		if (answered(&s.ops[i]) || in && s.ops[i].Kind == history.Write) && !p.step(s, i) {
			return ""
		}
	}
	if p.next < len(s.journal) {
		return ""
	}
	return "it is the journal's"
}

// hash returns the hash of a state, stable within this process.
func hash[S comparable]() func(any) uint64 {
	seed := maphash.MakeSeed()
	return func(state any) uint64 { return maphash.Comparable(seed, state.(S)) }
}

package drr_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/ci/transcript"
	"macronode/core/gateway/drr"
	"macronode/core/types"
	model "macronode/models/drr"
)

const quantum = 100

func limits(places int) drr.Limits {
	return drr.Limits{Places: places, Queue: places, Class: [types.NumClasses]int{places, places, places}, Flow: places,
		Quantum: quantum, Weights: [types.NumClasses]uint64{10, 5, 1}}
}

var classes = map[string]types.Class{"internal": types.ClassInternal, "authed": types.ClassAuthed, "anon": types.ClassAnon}

func TestTranscript(t *testing.T) {
	var q drr.Queue
	transcript.Play(t, "testdata/turns", func(w []string) string {
		number := func(i int) int {
			n, err := strconv.Atoi(w[i])
			if err != nil {
				t.Fatalf("%q: %v", w, err)
			}
			return n
		}
		out := ""
		switch w[0] {
		case "new": // internal authed anon, then the bounds of queue, class and flow
			l := limits(32)
			l.Weights = [types.NumClasses]uint64{uint64(number(1)), uint64(number(2)), uint64(number(3))}
			l.Queue, l.Flow = number(4), number(6)
			l.Class = [types.NumClasses]int{number(5), number(5), number(5)}
			q = drr.New(l, 1)
		case "offer": // class flow cost place…
			for i := 4; i < len(w); i++ {
				if err := q.Offer(types.Flow{Class: classes[w[1]], ID: uint64(number(2))}, uint32(number(i)), uint64(number(3))); err != nil {
					out += fmt.Sprintf("%s: %v\n", w[i], err)
				}
			}
		case "serve":
			var order []string
			for range number(1) {
				place, ok := q.Next()
				if !ok {
					order = append(order, "none")
					break
				}
				order = append(order, strconv.Itoa(int(place)))
			}
			out = strings.Join(order, " ") + "\n"
		case "drop":
			q.Drop(uint32(number(1)))
		case "correct":
			q.Correct(types.Flow{Class: classes[w[1]], ID: uint64(number(2))}, int64(number(3)))
		case "ahead":
			out = fmt.Sprintf("%d\n", q.Ahead(types.Flow{Class: classes[w[1]], ID: uint64(number(2))}))
		default:
			t.Fatalf("no such word: %s", w[0])
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		return out
	})
}

// name returns the error as the model names it.
func name(err error) string {
	for e, n := range map[error]string{drr.ErrWeight: "weight", drr.ErrFull: "full", drr.ErrClass: "class", drr.ErrFlow: "flow"} {
		if errors.Is(err, e) {
			return n
		}
	}
	return ""
}

// TestMatchesModel makes random calls to the queue and to its model.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const places = 12
		l := limits(places)
		l.Queue, l.Flow = rapid.IntRange(1, places).Draw(t, "queue"), rapid.IntRange(1, 5).Draw(t, "flow")
		for c := range l.Weights {
			l.Weights[c] = rapid.Uint64Range(0, 3).Draw(t, "weight")
			l.Class[c] = rapid.IntRange(1, places).Draw(t, "class")
		}
		if rapid.Bool().Draw(t, "shares") {
			l.Shares = shares(t)
		}
		q, spare := drr.New(l, 1), drr.New(limits(3), 2)
		used, names := map[uint32]types.Flow{}, map[uint32]types.Flow{}
		m := model.Queue{Most: l.Queue, Class: l.Class, Flow: l.Flow, Quantum: quantum, ClassShare: l.Shares.Class, FlowShare: l.Shares.Flow}
		for c, w := range l.Weights {
			m.Weight[c] = int64(w)
		}
		flow := func(t *rapid.T) types.Flow {
			return types.Flow{Class: types.Class(rapid.IntRange(0, int(types.NumClasses)-1).Draw(t, "class")), ID: rapid.Uint64Range(1, 3).Draw(t, "of")}
		}
		offer := func(t *rapid.T) {
			place := rapid.Uint32Range(0, places-1).Draw(t, "place")
			if _, inUse := used[place]; inUse || q.Queued(place) {
				return
			}
			f, cost := flow(t), rapid.Uint64Range(1, l.Quantum).Draw(t, "cost")
			err := q.Offer(f, place, cost)
			if want := m.Offer(f, place, int64(cost)); name(err) != want {
				t.Fatalf("offer %v at %d: %v, the model has %q", f, place, err, want)
			} else if err == nil {
				names[place] = f
			}
		}
		next := func(t *rapid.T) {
			place, ok := q.Next()
			if want, any := m.Next(); place != want || ok != any {
				t.Fatalf("next: %d, %v, the model has %d, %v", place, ok, want, any)
			} else if ok && l.Shares.Flow > 0 {
				used[place] = names[place]
			}
		}
		many := func(f func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				for range 6 {
					f(t)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"offer": offer, "offer again": many(offer), "offer more": many(offer), "next": next, "next again": many(next),
			"drop": func(t *rapid.T) {
				place := rapid.Uint32Range(0, places-1).Draw(t, "place")
				if waits := q.Queued(place); waits {
					q.Drop(place)
					if !m.Drop(place) {
						t.Fatalf("%d was queued, not so in the model", place)
					}
				}
			},
			"take": func(t *rapid.T) {
				place := rapid.Uint32Range(0, places-1).Draw(t, "place")
				if !q.Queued(place) {
					return
				}
				if q.First(place) != m.First(place) {
					t.Fatalf("%d is the first of its flow: %v, the model says no", place, q.First(place))
				}
				if f := names[place]; l.Shares.Flow > 0 {
					if q.Left(f.Class) <= 0 || q.Uses(f) >= l.Shares.Flow {
						return
					}
					used[place] = f
				}
				q.Take(place)
				if !m.Take(place) {
					t.Fatalf("%d was queued, not so for the model", place)
				}
			},
			"correct": func(t *rapid.T) {
				for range 3 {
					f, by := flow(t), rapid.Int64Range(-2*quantum, 2*quantum).Draw(t, "by")
					q.Correct(f, by)
					m.Correct(f, by)
				}
			},
			"return": func(t *rapid.T) {
				place := rapid.Uint32Range(0, places-1).Draw(t, "place")
				if f, ok := used[place]; ok {
					q.Return(f)
					m.Return(f)
					delete(used, place)
				}
			},
			"evict": func(t *rapid.T) {
				place, any := q.Evict()
				if want, ok := m.Evict(); place != want || any != ok {
					t.Fatalf("evicted is %d, %v, the model has %d, %v", place, any, want, ok)
				}
			},
			"change": func(t *rapid.T) { change(t, &q, &m, &l) },
			"copy": func(t *rapid.T) { // the copy lives on, what was copied is spoilt
				q.CopyTo(&spare)
				if q.HashInto(0) != spare.HashInto(0) {
					t.Fatal("a copy has another hash")
				}
				for range places {
					q.Next()
				}
				q, spare = spare, q
			},
			"": func(t *rapid.T) {
				if err := q.Check(); err != nil {
					t.Fatal(err)
				}
				if q.Ready() != m.Ready() {
					t.Fatalf("ready is %v, the model has %v", q.Ready(), m.Ready())
				}
				if q.InUse() != m.Uses(types.ClassInternal) {
					t.Fatalf("%d are in use, the model has %d", q.InUse(), m.Uses(types.ClassInternal))
				}
				for c := range types.NumClasses {
					if q.Of(c) != m.Len(c) {
						t.Fatalf("%d of class %v are queued, the model has %d", q.Of(c), c, m.Len(c))
					}
				}
			},
		})
	})
}

// shares draws small shares.
func shares(t *rapid.T) (s drr.Shares) {
	s.Flow = rapid.IntRange(1, 4).Draw(t, "flow share")
	for c := range s.Class {
		s.Class[c] = rapid.IntRange(0, 6).Draw(t, "class share")
	}
	return s
}

// TestSharesInUse: a class and a flow use at most their share, and others are served while they wait.
func TestSharesInUse(t *testing.T) {
	l := limits(64)
	l.Shares = drr.Shares{Class: [types.NumClasses]int{10, 9, 5}, Flow: 2}
	q := drr.New(l, 1)
	place := uint32(0)
	serve := func(c types.Class, flows int) (served int) {
		for f := range flows {
			for range 4 {
				if err := q.Offer(types.Flow{Class: c, ID: uint64(f)}, place, 1); err != nil {
					t.Fatal(err)
				}
				place++
			}
		}
		for {
			if _, ok := q.Next(); !ok {
				return served
			}
			served++
		}
	}
	if n := serve(types.ClassAnon, 1); n != 2 {
		t.Errorf("a flow has %d in use, its share is 2", n)
	}
	if n := serve(types.ClassAnon, 5); n != 3 {
		t.Errorf("anon has %d more in use, its share leaves it 3", n)
	}
	if n := serve(types.ClassAuthed, 3); n != 4 {
		t.Errorf("authed has %d in use, its share and what anon has leave it 4", n)
	}
	if n := serve(types.ClassInternal, 1); n != 1 {
		t.Errorf("internal has %d in use, one was kept for it", n)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	q.Return(types.Flow{Class: types.ClassAnon, ID: 0})
	if _, ok := q.Next(); !ok {
		t.Error("one was returned, and nobody goes")
	}
}

// TestShares: a backlogged class or flow is served by its weight, within a bound that does not grow, whatever its
// items cost.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits(64)
		type caller struct {
			flow types.Flow
			cost *rapid.Generator[uint64]
			got  uint64
		}
		var callers []*caller
		for c := range types.NumClasses {
			l.Weights[c] = rapid.Uint64Range(1, 4).Draw(t, "weight")
			for of := range rapid.IntRange(1, 3).Draw(t, "flows") {
				callers = append(callers, &caller{flow: types.Flow{Class: c, ID: uint64(of)}, cost: rapid.Uint64Range(1, rapid.Uint64Range(1, quantum).Draw(t, "dearest"))})
			}
		}
		q, byPlace, costs := drr.New(l, 7), map[uint32]*caller{}, map[uint32]uint64{}
		offer := func(c *caller, place uint32) {
			byPlace[place], costs[place] = c, c.cost.Draw(t, "cost")
			if err := q.Offer(c.flow, place, costs[place]); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range callers {
			offer(c, uint32(2*i))
			offer(c, uint32(2*i+1))
		}
		for range rapid.IntRange(1, 600).Draw(t, "served") {
			place, ok := q.Next()
			if !ok {
				t.Fatal("nobody, and all wait")
			}
			byPlace[place].got += costs[place]
			offer(byPlace[place], place)
		}
		var class [types.NumClasses]float64
		for _, c := range callers {
			class[c.flow.Class] += float64(c.got)
		}
		for c := range class {
			for d := range class {
				a, b := class[c]/float64(l.Weights[c]), class[d]/float64(l.Weights[d])
				if math.Abs(a-b) > 3*quantum {
					t.Fatalf("classes %v and %v were served %v and %v a weight", types.Class(c), types.Class(d), a, b)
				}
			}
		}
		for _, a := range callers {
			for _, b := range callers {
				if a.flow.Class == b.flow.Class && max(a.got, b.got)-min(a.got, b.got) > 3*quantum {
					t.Fatalf("%v was served %d, %v %d", a.flow, a.got, b.flow, b.got)
				}
			}
		}
	})
}

// TestNoFlowStarves: while others come and go and each class refills before each turn, every waiting flow is
// served within a turn of each class (kubernetes-95259).
func TestNoFlowStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits(8)
		for c := range l.Weights {
			l.Weights[c] = rapid.Uint64Range(1, 3).Draw(t, "weight")
		}
		q := drr.New(l, 1)
		mine := types.Class(rapid.IntRange(0, int(types.NumClasses)-1).Draw(t, "mine"))
		if err := q.Offer(types.Flow{Class: mine, ID: 9}, 7, rapid.Uint64Range(1, quantum).Draw(t, "mine")); err != nil {
			t.Fatal(err)
		}
		most, cheapest := uint64(0), uint64(quantum)
		for range 1000 {
			for c := range types.NumClasses {
				if place := uint32(c); !q.Queued(place) {
					cost := rapid.Uint64Range(quantum/4, quantum).Draw(t, "cost")
					cheapest = min(cheapest, cost)
					if err := q.Offer(types.Flow{Class: c, ID: 1}, place, cost); err != nil {
						t.Fatal(err)
					}
				}
			}
			if place, _ := q.Next(); place == 7 {
				return
			}
			if most++; most > 2*3*3*quantum/cheapest {
				t.Fatalf("%d others were served, of at least %d each", most, cheapest)
			}
		}
	})
}

func TestMisuse(t *testing.T) {
	for what, misuse := range map[string]func(*drr.Queue){
		"twice":          func(q *drr.Queue) { _ = q.Offer(types.Flow{}, 1, 1) },
		"no cost":        func(q *drr.Queue) { _ = q.Offer(types.Flow{}, 2, 0) },
		"too dear":       func(q *drr.Queue) { _ = q.Offer(types.Flow{}, 2, quantum+1) },
		"drop nothing":   func(q *drr.Queue) { q.Drop(2) },
		"return nothing": func(q *drr.Queue) { q.Return(types.Flow{}) },
	} {
		t.Run(what, func(t *testing.T) {
			q := drr.New(limits(4), 1)
			if err := q.Offer(types.Flow{}, 1, 1); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if _, broken := recover().(types.InvariantError); !broken {
					t.Error("nobody minds")
				}
			}()
			misuse(&q)
		})
	}
}

// BenchmarkTurns: an item is queued and one is served, while 256 flows wait.
func BenchmarkTurns(b *testing.B) {
	l := limits(512)
	q := drr.New(l, 1)
	for i := range uint32(256) {
		if err := q.Offer(types.Flow{Class: types.Class(i % 3), ID: uint64(i)}, i, 1+uint64(i)%quantum); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		place, _ := q.Next()
		if q.Offer(types.Flow{Class: types.Class(place % 3), ID: uint64(place)}, place, 1+uint64(place)%quantum) != nil {
			b.Fatal("no room")
		}
	}
}

// TestAheadCountsItemsServedBefore: if each item costs a quantum, at most Ahead items are served before a new one,
// and exactly as many if its class has no other flow.
func TestAheadCountsItemsServedBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits(24)
		for c := range l.Weights {
			l.Weights[c] = rapid.Uint64Range(1, 3).Draw(t, "weight")
		}
		q := drr.New(l, 1)
		flows, place := rapid.IntRange(1, 3).Draw(t, "flows"), uint32(0)
		draw := func() types.Flow {
			return types.Flow{Class: types.Class(rapid.IntRange(0, int(types.NumClasses)-1).Draw(t, "class")), ID: uint64(rapid.IntRange(1, flows).Draw(t, "flow"))}
		}
		offer := func(f types.Flow) {
			if err := q.Offer(f, place, l.Quantum); err != nil {
				t.Fatal(err)
			}
			place++
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			if rapid.IntRange(0, 3).Draw(t, "serve") == 0 {
				q.Next()
			} else {
				offer(draw())
			}
		}
		f := draw()
		ahead, mine, served := q.Ahead(f), place, 0
		offer(f)
		for at, ok := q.Next(); at != mine; at, ok = q.Next() {
			if served++; !ok {
				t.Fatal("the item is not served")
			}
		}
		if served > ahead || flows == 1 && served != ahead {
			t.Fatalf("%d are served before it, Ahead says %d", served, ahead)
		}
	})
}

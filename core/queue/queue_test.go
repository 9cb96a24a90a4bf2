package queue_test

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/queue"
	"macronode/core/types"
	model "macronode/models/queue"
)

type item int

func (i item) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(i)) }

func TestTranscript(t *testing.T) {
	policies := map[string]queue.Policy{"reject": queue.Reject, "drop-oldest": queue.DropOldest, "coalesce": queue.Coalesce}
	var q queue.Queue[item]
	transcript.Play(t, "testdata/policies", func(w []string) string {
		number := func(i int) int { n, _ := strconv.Atoi(w[i]); return n }
		var answer string
		switch w[0] {
		case "new":
			q = queue.New[item](number(2), policies[w[1]])
			return ""
		case "push":
			if err := q.Push(item(number(1))); err != nil {
				answer = err.Error() + ", "
			}
		case "pop":
			answer = "nothing, "
			if x, ok := q.Pop(); ok {
				answer = fmt.Sprintf("%d, ", x)
			}
		case "set":
			q.Set(number(1), item(number(2)))
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		held := []item{}
		for i := range q.Len() {
			held = append(held, q.At(i))
		}
		return fmt.Sprintf("%sheld %v, dropped %d", answer, held, q.Dropped())
	})
}

// TestMatchesModel compares the queue with its reference model under random operations.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]queue.Policy{queue.Reject, queue.DropOldest, queue.Coalesce}).Draw(t, "policy")
		limit := rapid.IntRange(1, 7).Draw(t, "limit")
		q, spare := queue.New[item](limit, policy), queue.New[item](2, queue.Reject)
		m := model.Queue{Limit: limit, Full: []string{"reject", "drop oldest", "coalesce"}[policy]}
		next := 0
		push := func(t *rapid.T) {
			next++
			err := q.Push(item(next))
			if ok := m.Push(next); ok != (err == nil) {
				t.Fatalf("push %d: %v, the model has %v", next, err, ok)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push":  push,
			"again": push,
			"pop": func(t *rapid.T) {
				x, ok := q.Pop()
				if want, any := m.Pop(); int(x) != want || ok != any {
					t.Fatalf("pop: %v, %v, the model has %v, %v", x, ok, want, any)
				}
			},
			"set": func(t *rapid.T) {
				if len(m.Held) > 0 {
					i := rapid.IntRange(0, len(m.Held)-1).Draw(t, "i")
					q.Set(i, item(-next))
					m.Held[i] = -next
				}
			},
			"copy": func(*rapid.T) { // the copy is used from here on; the original is overwritten
				q.CopyTo(&spare)
				if q.HashInto(0) != spare.HashInto(0) {
					t.Fatalf("a copy has another hash: %s", hashcoverage.Apart(&q, &spare))
				}
				for range limit {
					q.Pop()
					_ = q.Push(-1)
				}
				q, spare = spare, q
			},
			"": func(t *rapid.T) { compareModel(t, &q, &m, limit) },
		})
	})
}

func compareModel(t *rapid.T, q *queue.Queue[item], m *model.Queue, limit int) {
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	if q.Len() != len(m.Held) || q.Limit() != limit || q.Full() != (len(m.Held) == limit) || int(q.Dropped()) != len(m.Dropped) {
		t.Fatalf("%d of %d held, full %v, dropped %d; the model has %+v", q.Len(), q.Limit(), q.Full(), q.Dropped(), m)
	}
	for i, want := range m.Held {
		if got := q.At(i); int(got) != want {
			t.Fatalf("item %d is %v, the model has %v", i, got, want)
		}
	}
}

// TestHashDependsOnOrder shows that the hash depends on the order and the counters of the items,
// and not on their position in the ring.
func TestHashDependsOnOrder(t *testing.T) {
	hash := func(limit, turns int, items ...item) types.Hash64 {
		q := queue.New[item](limit, queue.Reject)
		for range turns {
			_ = q.Push(0)
			q.Pop()
		}
		for _, x := range items {
			_ = q.Push(x)
		}
		return q.HashInto(7)
	}
	was := hash(3, 2, 1, 2)
	for name, is := range map[string]types.Hash64{"order": hash(3, 2, 2, 1), "past": hash(3, 5, 1, 2), "length": hash(3, 2, 1)} {
		if is == was {
			t.Errorf("the %s is not in the hash", name)
		}
	}
	if is := hash(5, 2, 1, 2); is != was {
		t.Error("the place in the ring is in the hash")
	}
}

// TestMisusePanics shows that misuse panics with an InvariantError.
func TestMisusePanics(t *testing.T) {
	for name, do := range map[string]func(){
		"limit 0":            func() { queue.New[item](0, queue.Reject) },
		"get a missing item": func() { q := queue.New[item](2, queue.Reject); q.At(0) },
		"set a missing item": func() { q := queue.New[item](2, queue.Reject); q.Set(0, 1) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(types.InvariantError); !ok {
					t.Errorf("%s: no panic", name)
				}
			}()
			do()
		}()
	}
}

package drr_test

import (
	"testing"

	"pgregory.net/rapid"

	"macronode/core/gateway/drr"
	"macronode/core/types"
	model "macronode/models/drr"
)

// change draws other limits for the queue and its model, and removes the items that are not served any more.
func change(t *rapid.T, q *drr.Queue, m *model.Queue, l *drr.Limits) {
	l.Queue, l.Flow = rapid.IntRange(1, l.Places).Draw(t, "queue"), rapid.IntRange(1, 5).Draw(t, "flow")
	l.Quantum = rapid.Uint64Range(1, 2*quantum).Draw(t, "quantum")
	var weight [types.NumClasses]int64
	for c := range l.Weights {
		l.Weights[c] = rapid.Uint64Range(0, 3).Draw(t, "weight")
		l.Class[c], weight[c] = rapid.IntRange(1, l.Places).Draw(t, "class"), int64(l.Weights[c])
	}
	if l.Shares.Flow > 0 {
		l.Shares = shares(t)
	}
	q.Renew(*l)
	m.ClassShare, m.FlowShare = l.Shares.Class, l.Shares.Flow
	m.Most, m.Class, m.Flow = l.Queue, l.Class, l.Flow
	m.Change(weight, int64(l.Quantum))
	for {
		place, any := q.Unserved()
		if want, ok := m.Unserved(); place != want || any != ok {
			t.Fatalf("not served: %d, %v, the model has %d, %v", place, any, want, ok)
		}
		if !any {
			return
		}
	}
}

// TestRenewWithSameLimits changes nothing, at any point of a turn.
func TestRenewWithSameLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits(12)
		q := drr.New(l, 1)
		for place := range uint32(12) {
			f := types.Flow{Class: types.Class(rapid.IntRange(0, 2).Draw(t, "class")), ID: rapid.Uint64Range(1, 3).Draw(t, "of")}
			if !q.Queued(place) {
				if err := q.Offer(f, place, rapid.Uint64Range(1, quantum).Draw(t, "cost")); err != nil {
					t.Fatal(err)
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "corrections") {
				q.Correct(f, rapid.Int64Range(-2*quantum, 4*quantum).Draw(t, "by"))
			}
			if rapid.Bool().Draw(t, "serve") {
				q.Next()
			}
			was := q.HashInto(0)
			if q.Renew(l); q.HashInto(0) != was {
				t.Fatal("it has another hash")
			}
		}
	})
}

package queue

import (
	"testing"

	"macronode/ci/hashcoverage"
	"macronode/core/types"
)

func TestHashCoversEveryField(t *testing.T) {
	q := New[types.Tenant](2, Reject)
	_ = q.Push(1)
	_ = q.Push(2)
	hashcoverage.Every(t, &q, func() types.Hash64 { return q.HashInto(0) },
		"policy: fixed at creation", "head: position in the ring; the order is hashed")
}

// TestCheckReportsBrokenInvariants breaks each invariant.
func TestCheckReportsBrokenInvariants(t *testing.T) {
	for _, c := range []struct {
		spoil func(*Queue[types.Tenant])
		want  string
	}{
		{func(q *Queue[types.Tenant]) { q.count = 3 }, "Q1: more held than the limit"},
		{func(q *Queue[types.Tenant]) { q.count = -1 }, "Q1: more held than the limit"},
		{func(q *Queue[types.Tenant]) { q.popped++ }, "Q2: an item is neither held nor counted"},
		{func(q *Queue[types.Tenant]) { q.count = 0 }, "Q2: an item is neither held nor counted"},
	} {
		q := New[types.Tenant](2, Reject)
		_ = q.Push(1)
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		c.spoil(&q)
		if err := q.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

package accounting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
)

// asked is a question: the usage of a tenant as of a time.
type asked struct {
	tenant types.Tenant
	asOf   types.Time
}

// ask asks for the usage as of a time, which is at most the limit, and notes the answer.
func (b *books) ask(*rapid.T) {
	limit := b.plane.AsOfLimit(b.now)
	if want := b.model.AsOfLimit(int64(b.now)); limit != types.Time(want) {
		b.Fatalf("the limit is %d, the model has %d", limit, want)
	}
	if fold := b.fold.AsOfLimit(b.now); fold != limit {
		b.Fatalf("the limit is %d, of the fold %d", limit, fold)
	}
	q := asked{types.Tenant(rapid.IntRange(1, 2).Draw(b.T, "tenant")), limit - types.Time(rapid.SampledFrom([]int{0, 0, 1, 2000, 60_000, 100_000}).Draw(b.T, "before"))}
	b.asked[q] = b.answer(q)
	b.seen["asked"]++
	if q.asOf == b.now {
		b.seen["asked as of now"]++
	}
	if limit < b.now {
		b.seen["asked while usage is due"]++
	}
}

// answer returns the answer of the slices to a question, which is that of the model.
func (b *books) answer(q asked) string {
	by, err := accounting.ParseGrouping("window,service,region,method,route,subject")
	if err != nil {
		b.Fatal(err)
	}
	in := accounting.SliceRange{Upto: b.lsn, AsOf: q.asOf}
	sum := accounting.NewSummary(by)
	for i := range b.slices {
		if s := (accounting.SealedSlice{Slice: b.slices[i], LSN: b.lsn, Due: b.dues[i]}); s.Tenant == q.tenant && in.InTime(&s) {
			sum.AddSlice(&s.Slice)
		}
	}
	sums, err := sum.Sums()
	if err != nil {
		b.Fatal(err)
	}
	var got, want strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&got, "%s %d-%d %s: %v late %v of %d\n", s.Dimension, s.Window.From, s.Window.To, s.Labels, s.Total, s.Late, s.Events)
		if !s.Late.IsZero() {
			b.seen["asked of late usage"]++
		}
	}
	for _, s := range b.model.AsOf(q.tenant, int64(q.asOf)) {
		fmt.Fprintf(&want, "%s %d-%d %s: %v late %v of %d\n", s.Dimension, s.From, s.To, s.Labels, s.Value, s.Late, s.Events)
	}
	if got.String() != want.String() {
		b.Fatalf("as of %d, the usage of tenant %d is\n%sthe model has\n%s", q.asOf, q.tenant, got.String(), want.String())
	}
	return got.String()
}

// askAgain asks each question again.
func (b *books) askAgain() {
	for q, was := range b.asked {
		if got := b.answer(q); got != was {
			b.Fatalf("as of %d, the usage of tenant %d is\n%sit was\n%s", q.asOf, q.tenant, got, was)
		}
	}
}

// TestAsOfLimit: all that is due is sealed up to the limit, which is before usage that is due and not sealed, and never after the
// time of the state.
func TestAsOfLimit(t *testing.T) {
	const at = types.Time(1_700_000_040_000) // the begin of a window
	p := accounting.New(wideLimits(), 1)
	due := at.Add(window + grace)
	want := func(now, limit types.Time) {
		t.Helper()
		if got := p.AsOfLimit(now); got != limit {
			t.Errorf("%v after the begin, the limit is %v", time.Duration(now-at)*time.Millisecond, time.Duration(got-at)*time.Millisecond)
		}
	}
	want(due, due)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	if p.Decide(at, wide(t, 2, at), f, &reply); reply.Problem != event.None {
		t.Fatal(reply.Problem)
	}
	want(at, at)
	want(due-1, due-1)
	want(due, due-1)
	want(due+5000, due-1)
	for p.Expire(due, &f.rec) {
		f.Add()
	}
	want(due, due)
	want(due+5000, due+5000)
}

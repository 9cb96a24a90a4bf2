package readiness_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/ci/hashcoverage"
	"macronode/ci/transcript"
	"macronode/core/lifecycle/readiness"
	"macronode/core/types"
	model "macronode/models/readiness"
)

const conditions = types.StartTimeout + 1

func condition(name string) types.Condition {
	for c := range conditions {
		if c.String() == name {
			return c
		}
	}
	return conditions
}

// TestTranscript plays the table: after each word, the statuses of /readyz and /readyz?for=read, what is served,
// and the reasons.
func TestTranscript(t *testing.T) {
	var r readiness.Readiness
	var now types.Instant
	code := map[bool]int{true: 200, false: 503}
	transcript.Play(t, "testdata/table", func(w []string) string {
		span := func(s string) time.Duration {
			d, err := time.ParseDuration(s)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		switch w[0] {
		case "new":
			now = 5
			r = readiness.New(now, span(w[1]), bits(t, w[2:]))
		case "well":
			r.AwaitUpstreams(^bits(t, w[1:]))
		case "satisfy":
			r.Satisfy(condition(w[1]))
		case "unsatisfy":
			r.Unsatisfy(condition(w[1]))
		case "degrade", "recover":
			r.SetDegraded(condition(w[1]), w[0] == "degrade")
		case "tick":
			now = now.Add(span(w[1]))
			r.Tick(now)
		case "due":
			due, any := r.Due()
			if !any {
				return "never"
			}
			return fmt.Sprintf("in %v", time.Duration(due-now))
		}
		if err := r.Check(); err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		v := r.Verdict()
		var why []string
		for c := range (r.WaitingFor() | r.DegradedBy()).Each {
			why = append(why, c.String())
		}
		return fmt.Sprintf("%v: readyz %d, for read %d, reads %d, writes %d [%s]", v.Phase,
			code[v.Ready], code[v.ForRead], code[v.Reads], code[v.Writes], strings.Join(why, " "))
	})
}

// bits returns upstreams by their numbers as bits.
func bits(t *testing.T, numbers []string) (set uint64) {
	for _, n := range numbers {
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		set |= 1 << i
	}
	return set
}

// TestMatchesModel makes random calls to the machine and to the table, and checks R1 and R2 of both.
func TestMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patience := rapid.Int64Range(0, 100).Draw(t, "patience")
		wanted := rapid.SliceOfNDistinct(rapid.IntRange(0, 63), 0, 3, rapid.ID).Draw(t, "wanted")
		var set uint64
		for _, u := range wanted {
			set |= 1 << u
		}
		r, m, now := readiness.New(7, time.Duration(patience), set), model.New(wanted...), types.Instant(7)
		well := func(u int) { r.AwaitUpstreams(^(uint64(1) << u)); m.Well(u) }
		most := int(types.DependencyUpstreams) - 1 // of what is met by a word of its own
		need := rapid.Custom(func(t *rapid.T) types.Condition {
			return types.Condition(rapid.IntRange(0, most).Draw(t, "need"))
		})
		ailment := rapid.Custom(func(t *rapid.T) types.Condition {
			return types.Condition(rapid.IntRange(int(types.JournalStalled), int(types.StartTimeout)-1).Filter(func(c int) bool { return c != int(types.DiskFull) }).Draw(t, "ailment"))
		})
		meet := func(t *rapid.T) {
			c := need.Draw(t, "c")
			r.Satisfy(c)
			m.Satisfy(c)
			if r.WaitingFor().Has(c) {
				t.Fatalf("%v was met and is not", c)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"meet":       meet,
			"meet again": meet,
			"meet all": func(*rapid.T) {
				for c := range types.Condition(most + 1) {
					r.Satisfy(c)
					m.Satisfy(c)
				}
			},
			"well": func(t *rapid.T) { well(rapid.IntRange(0, 63).Draw(t, "upstream")) },
			"wanted well": func(t *rapid.T) {
				if len(m.Wanted) > 0 {
					well(rapid.SampledFrom(m.Wanted).Draw(t, "upstream"))
				}
			},
			"miss": func(t *rapid.T) { c := need.Draw(t, "c"); r.Unsatisfy(c); m.Unsatisfy(c) },
			"ail":  func(t *rapid.T) { c := ailment.Draw(t, "c"); r.SetDegraded(c, true); m.Degrade(c) },
			"heal": func(t *rapid.T) { c := ailment.Draw(t, "c"); r.SetDegraded(c, false); m.Restore(c) },
			"disk": func(t *rapid.T) {
				free := rapid.SampledFrom([]uint64{0, 999, 1000, 7999, 8000, 9000}).Draw(t, "free")
				r.SetDiskFree(free, 8000)
				m.HasFree(int(free / 1000))
			},
			"tick": func(t *rapid.T) {
				now += types.Instant(rapid.Int64Range(0, 60).Draw(t, "ns"))
				r.Tick(now)
				if int64(now)-7 >= patience {
					m.Waited()
				}
			},
			"": func(t *rapid.T) {
				agrees(t, &r, &m)
				exact(t, r)
			},
		})
	})
}

func agrees(t *rapid.T, r *readiness.Readiness, m *model.Node) {
	v := r.Verdict()
	got := model.Row{Phase: v.Phase.String(), Readyz: v.Ready, ForRead: v.ForRead, Reads: v.Reads, Wrote: v.Writes, Revokes: r.AcceptsRevocations()}
	want := m.Row()
	if !m.Began {
		got.Revokes = false
	}
	if got != want {
		t.Fatalf("%+v, the table says %+v", got, want)
	}
	for _, c := range m.Missing {
		if !r.WaitingFor().Has(c) {
			t.Fatalf("%v is not missed in %b", c, r.WaitingFor())
		}
	}
	for _, c := range m.Wrong {
		if !r.DegradedBy().Has(c) || !r.Has(c) {
			t.Fatalf("%v is not wrong in %b", c, r.DegradedBy())
		}
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	if !m.Began && (v.Ready || v.ForRead || v.Reads || v.Writes) {
		t.Fatalf("R1: %+v", v)
	}
	broken := r.Has(types.JournalStalled) || r.Has(types.JournalFailed) || r.Has(types.DiskFull)
	if m.Began && (broken == v.Writes || broken && v.Ready || !v.Reads) {
		t.Fatalf("R2: %+v while %b", v, r.DegradedBy())
	}
}

// exact: before Due a Tick changes nothing, at Due it changes something. r is a copy.
func exact(t *rapid.T, r readiness.Readiness) {
	due, any := r.Due()
	last := due - 1
	if !any {
		last = due.Add(time.Hour)
	}
	was := r.HashInto(0)
	if r.Tick(last); r.HashInto(0) != was {
		t.Fatalf("due at %d (%v), and it changed by %d", due, any, last)
	}
	if r.Tick(due); any && r.HashInto(0) == was {
		t.Fatalf("due at %d, and nothing happens", due)
	}
}

func TestHashForgetsNothing(t *testing.T) {
	r := readiness.New(1, time.Second, 6)
	hashcoverage.Every(t, &r, func() types.Hash64 { return r.HashInto(0) })
}

// TestMisuse: a dependency cannot degrade, and a degradation cannot be satisfied.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(*readiness.Readiness){
		"an ailment is met":                  func(r *readiness.Readiness) { r.Satisfy(types.JournalStalled) },
		"a dependency ails":                  func(r *readiness.Readiness) { r.SetDegraded(types.DependencyHTTP, true) },
		"upstreams that are awaited are met": func(r *readiness.Readiness) { r.Satisfy(types.DependencyUpstreams) },
		"an upstream is missed again":        func(r *readiness.Readiness) { r.AwaitUpstreams(0); r.Unsatisfy(types.DependencyUpstreams) },
		"a dependency recovers":              func(r *readiness.Readiness) { r.SetDegraded(types.DependencySampler, false) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(types.InvariantError); !ok {
					t.Errorf("%s, and it was let pass", name)
				}
			}()
			r := readiness.New(1, 1, 4)
			do(&r)
		}()
	}
}

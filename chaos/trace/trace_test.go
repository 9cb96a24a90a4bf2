package trace_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"macronode/chaos/trace"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// TestEveryStepIsPermitted: every step of random runs, with and without failures and drains, is
// permitted; and the difficult situations occurred.
func TestEveryStepIsPermitted(t *testing.T) {
	saw, steps := map[string]int{}, 0
	for seed := range uint64(400) {
		g := rig{}
		if err := g.live(seed, 200, odds{faults: seed%4 != 0, ends: seed%2 == 0}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steps += g.steps
		for what, n := range g.saw {
			saw[what] += n
		}
	}
	t.Logf("%d steps, saw %v", steps, saw)
	for _, must := range []string{"told ", "told outcome_unknown", "told unavailable", "told busy", "told in_progress", "told not_found",
		"nonce", "replayed", "gate admitted", "gate quota_exceeded", "gate pacing_timeout", "gate queue_full", "gate class_limit", "gate flow_limit", "gate class_disabled", "gate route_limit", "gate route_flow_limit", "gate queue_timeout", "gate not_serving",
		"more admitted", "more quota_exceeded", "more pacing_timeout", "more queue_timeout", "gate key_ended", "more key_ended",
		"sent picked closed", "sent picked half-open", "sent circuit_open open", "sent circuit_open half-open", "sent overflow closed", "retried", "retry retry_budget", "retry circuit_open", "retry max_attempts",
		"starting", "ready", "degraded", "lame_duck", "draining", "aborting", "stopped"} {
		if saw[must] == 0 {
			t.Errorf("never saw %q", must)
		}
	}
}

// edit rewrites a frame with one record changed; false if none was.
func edit(s *trace.Step, change func(*record.Record) bool) bool {
	if len(s.Frame) == 0 {
		return false
	}
	h, rest, err := record.Open(s.Frame)
	if err != nil {
		return false
	}
	to, done := record.Begin(nil, h.LSN, h.At), false
	for range h.Count {
		var r record.Record
		if rest, err = record.Next(rest, &r); err != nil {
			return false
		}
		done = done || change(&r)
		to, _ = record.Add(to, 0, &r)
	}
	if done {
		s.Frame = to
	}
	return done
}

// reframe changes the header of a frame and removes its records.
func reframe(s *trace.Step, change func(*record.Header)) bool {
	if len(s.Frame) == 0 {
		return false
	}
	h, _, err := record.Open(s.Frame)
	if err != nil {
		return false
	}
	change(&h)
	s.Frame = record.Begin(nil, h.LSN, h.At)
	return true
}

func isA[E event.Event](s *trace.Step) bool { _, ok := s.In.(E); return ok }

func tell(s *trace.Step, change func(*event.Reply) bool) bool {
	for i := range s.Replies {
		if change(&s.Replies[i]) {
			return true
		}
	}
	return false
}

// illegal is a change of a run, and the rule that it violates.
type illegal struct {
	rule  string
	spoil func(before, after *trace.View, s *trace.Step) bool
}

// illegals returns all changed runs.
func illegals(waits *queue) map[string]illegal {
	all := map[string]illegal{}
	for _, some := range []map[string]illegal{unlived(), unpaid(), unqueued(waits), untimely(), unlet(), unforwarded(), ungranted()} {
		maps.Copy(all, some)
	}
	return all
}

// TestEveryRuleHasAViolation: each rule is violated by some changed run.
func TestEveryRuleHasAViolation(t *testing.T) {
	seen, rules := map[string]bool{}, 0
	for _, c := range illegals(&queue{}) {
		seen[c.rule] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range regexp.MustCompile(`broken\("(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			if rules++; !seen[rule[1]] {
				t.Errorf("%s: no changed run violates %s", file, rule[1])
			}
		}
	}
	if rules < 50 {
		t.Errorf("only %d places break a rule", rules)
	}
}

// TestViolationsAreRejected: a run with one change is rejected there, by the violated rule.
func TestViolationsAreRejected(t *testing.T) {
	var waits queue
	for name, c := range illegals(&waits) {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(900) {
				waits = queue{tickets: map[types.Ticket]bool{}}
				g := rig{spoil: c.spoil}
				err := g.live(seed, 200, odds{faults: seed%3 != 0, ends: true})
				if !g.spoilt {
					continue
				}
				var b *trace.Broken
				if !errors.As(err, &b) || b.Rule != c.rule {
					t.Fatalf("seed %d: %v, want %s", seed, err, c.rule)
				}
				return
			}
			t.Fatal("no run had it")
		})
	}
}

// BenchmarkSteps is the cost of checking one step, without the node's own.
func BenchmarkSteps(b *testing.B) {
	type seen struct {
		before, after trace.View
		step          trace.Step
	}
	var all []seen
	g := rig{}
	g.spoil = func(before, after *trace.View, s *trace.Step) bool {
		one := seen{*before, *after, *s}
		one.step.Frame = append([]byte(nil), s.Frame...)
		one.step.Replies = append([]event.Reply(nil), s.Replies...)
		one.step.Verdicts = append([]event.Decision(nil), s.Verdicts...)
		one.step.Childs = append([]event.ServiceCommand(nil), s.Childs...)
		all = append(all, one)
		return false
	}
	if err := g.live(4, 20_000, odds{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		watch := trace.Watch(trace.New(config()))
		for i := range all {
			if err := watch(&all[i].before, &all[i].after, &all[i].step); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(all))/b.Elapsed().Seconds(), "steps/s")
	b.Logf("evidence: trace.steps_per_cpu_second = %.0f", float64(b.N)*float64(len(all))/b.Elapsed().Seconds())
}

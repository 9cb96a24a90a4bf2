package explore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var tracesDir = flag.String("traces", "", "a directory for traces that TLC must accept; used by ci/tlc traces")

// An observed is a step of a specification: its action, and observed values: texts, numbers and
// booleans.
type observed []any

func (t observed) String() string {
	all := make([]string, len(t))
	for i, x := range t {
		switch x := x.(type) {
		case string:
			all[i] = fmt.Sprintf("%q", x)
		case bool:
			all[i] = strings.ToUpper(fmt.Sprint(x))
		default:
			all[i] = fmt.Sprint(x)
		}
	}
	return "<<" + strings.Join(all, ", ") + ">>"
}

// A teller translates a run to steps of a specification.
type teller interface {
	may(w *World, a Action) bool // whether the specification permits the action now
	before(w *World, a Action)   // called before the action
	after(w *World, a Action)    // called after the action
	trace() []observed           // the steps so far
}

// playRun makes a random run of a plan.
func playRun(t *testing.T, plan Plan, seed uint64, to teller) {
	t.Helper()
	w, r := Open(plan), rand.New(rand.NewPCG(seed, 7))
	for range 90 {
		var may []Action
		for _, a := range w.Enabled(nil) {
			if to.may(w, a) {
				may = append(may, a)
			}
		}
		if len(may) == 0 {
			return
		}
		a := may[r.IntN(len(may))]
		to.before(w, a)
		if err := w.Do(a); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		to.after(w, a)
	}
}

// A spoil changes one step of a run, if it finds one.
type spoil func(steps []observed) (spoilt []observed, did bool)

// lie changes a value of the first step of an action, counted from its end.
func lie(action string, value int, to func(any) any) spoil {
	return func(steps []observed) ([]observed, bool) {
		for i := len(steps) - 1; i >= 0; i-- {
			if steps[i][0] == action {
				other := append(observed(nil), steps[i]...)
				other[value] = to(other[value])
				spoilt := append([]observed(nil), steps...)
				spoilt[i] = other
				return spoilt, true
			}
		}
		return nil, false
	}
}

// skip removes the last step of an action.
func skip(action string) spoil {
	return func(steps []observed) ([]observed, bool) {
		for i := len(steps) - 1; i >= 0; i-- {
			if steps[i][0] == action {
				return append(append([]observed(nil), steps[:i]...), steps[i+1:]...), i+1 < len(steps)
			}
		}
		return nil, false
	}
}

func more(x any) any { return x.(int) + 1 }
func not(x any) any  { return !x.(bool) }

// TestTracesForTLC writes traces of the node for TLC: correct ones, then as many with one wrong
// step. Without a directory it only checks that there are enough.
func TestTracesForTLC(t *testing.T) {
	const each = 40
	for name, spec := range map[string]struct {
		plan   Plan
		teller func() teller
		spoils []spoil
		must   []string // actions that some trace must have
	}{
		"wallet": {walletPlan(), func() teller { return newWalletTeller() },
			[]spoil{lie("Moved", 4, more), lie("Moved", 3, more), lie("Refused", 3, more), lie("Leave", 3, more), lie("Follow", 1, more), lie("Begin", 1, func(any) any { return -1 }), skip("Ask")},
			[]string{"Ask", "Step", "Moved", "Refused", "Sync", "Follow", "Leave", "Fail", "Patience", "Begin"}},
		"drain": {drainPlan(), func() teller { return newDrainTeller() },
			[]spoil{lie("See", 1, func(any) any { return "draining" }), lie("See", 3, more), lie("See", 5, more), lie("See", 6, not), lie("See", 7, not), lie("Enter", 2, not), lie("Sync", 1, more), skip("Fold"), skip("Close"), skip("Stop")},
			[]string{"Send", "Enter", "Sync", "Fold", "Stall", "Fail", "Patience", "Die", "Restart", "Up", "Ended", "Drain", "Abort", "Close", "GiveUp", "Pass", "Stop", "See"}},
	} {
		var all, wrong, sizes []string
		saw := map[string]int{}
		for seed := uint64(1); len(all) < each; seed++ {
			to := spec.teller()
			playRun(t, spec.plan, seed, to)
			steps := to.trace()
			if len(steps) < 15 {
				continue
			}
			for _, s := range steps {
				saw[s[0].(string)]++
			}
			all = append(all, tla(steps))
			if spoilt, did := spec.spoils[int(seed)%len(spec.spoils)](steps); did {
				wrong = append(wrong, tla(spoilt))
			}
			sizes = append(sizes, fmt.Sprint(len(steps)))
		}
		t.Logf("%s: %d traces of %v steps, %d wrong; saw %v", name, len(all), sizes, len(wrong), saw)
		for _, action := range spec.must {
			if saw[action] == 0 {
				t.Errorf("%s: no trace has a %s", name, action)
			}
		}
		if len(wrong) < each/2 {
			t.Errorf("%s: only %d are wrong", name, len(wrong))
		}
		if *tracesDir == "" {
			continue
		}
		text := fmt.Sprintf("---- MODULE Traces ----\nEXTENDS Integers\nTrue == 1..%d\nAll == <<\n%s\n>>\n====\n", len(all), strings.Join(append(all, wrong...), ",\n"))
		if err := os.WriteFile(filepath.Join(*tracesDir, name+".tla"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func tla(steps []observed) string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.String()
	}
	return "<<" + strings.Join(all, ",\n  ") + ">>"
}

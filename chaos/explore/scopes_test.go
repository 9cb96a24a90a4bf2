package explore

import (
	"flag"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	only   = flag.String("only", "", "only scopes whose name contains this")
	quick  = flag.Bool("quick", false, "without the two largest scopes")
	deeper = flag.Bool("deep", false, "the large scopes as well: takes many minutes, and 2 GB")
)

// TestScopes: every schedule of every scope keeps every rule, and ends; each scope shows what it
// must.
func TestScopes(t *testing.T) {
	all := scopes()
	if *deeper {
		all = append(all, deep()...)
	}
	var scopes, transitions atomic.Uint64
	began := spent(t)
	t.Cleanup(func() { // after all of them
		t.Logf("evidence: explore.scopes = %d", scopes.Load())
		t.Logf("evidence: explore.transitions = %d", transitions.Load())
		t.Logf("evidence: explore.transitions_per_cpu_second = %.0f", float64(transitions.Load())/(spent(t)-began).Seconds())
	})
	for _, s := range all {
		if !strings.Contains(s.name, *only) || *quick && (s.name == "a hold, and its end" || s.name == "a disk that takes its time") {
			continue
		}
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			transitions.Add(whole(t, s))
			scopes.Add(1)
		})
	}
}

// spent returns the CPU time of this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// whole explores a scope, and returns the number of transitions.
func whole(t *testing.T, s named) uint64 {
	t.Helper()
	w := Open(s.plan)
	if w.h.err != nil {
		t.Fatal(w.h.err)
	}
	r := Run(w, Scope{Name: s.name, Room: s.room})
	t.Logf("%v; %d journals, %d answers, %d replays, %d acknowledged before a crash", r, w.h.pages, w.h.Saw[sawAnswer], w.h.Saw[sawReplay], w.h.Saw[sawAcknowledged])
	if r.Found != nil {
		t.Fatalf("%s\n%v", s.name, r.Found)
	}
	if !r.Whole {
		t.Fatalf("cut: the table has room for %d states", s.room)
	}
	for _, one := range s.want {
		if w.h.Saw[one] == 0 {
			t.Errorf("never seen: %v", one)
		}
	}
	return r.Transitions
}

package gauge_test

import (
	"os"
	"os/exec"
	"testing"

	"macronode/ci/bench/gauge"
)

// TestOwnCountsWork: the CPU time of a busy process grows, and its memory is reported.
func TestOwnCountsWork(t *testing.T) {
	before, err := gauge.CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now == before; {
		if now, err = gauge.CPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	now, most, err := gauge.Memory(os.Getpid())
	if err != nil || now <= 0 || most < now {
		t.Fatalf("%d now, %d at most, %v", now, most, err)
	}
	busy, total, err := gauge.Machine()
	if err != nil || busy <= 0 || busy > total {
		t.Fatalf("%v busy of %v, %v", busy, total, err)
	}
}

// TestFamilyCountsEndedChildren: an ended child still counts, and is not a current child.
func TestFamilyCountsEndedChildren(t *testing.T) {
	child := exec.Command("sh", "-c", "read x; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	before, children, err := gauge.Family(os.Getpid())
	if err != nil || children != 1 {
		t.Fatalf("%d children, %v", children, err)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	after, children, err := gauge.Family(os.Getpid())
	if err != nil || children != 0 {
		t.Fatalf("%d children, %v", children, err)
	}
	spent := child.ProcessState.SystemTime() + child.ProcessState.UserTime()
	if after-before < spent/2 { // half, because of the tick
		t.Fatalf("the child used %v, the family %v", spent, after-before)
	}
}

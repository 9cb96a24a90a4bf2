package sim

import (
	"testing"

	"macronode/chaos/world"
)

// FuzzLife: a run from any bytes keeps every rule. The fuzzer keeps runs that reach new code. A
// failing one leaves its log.
func FuzzLife(f *testing.F) {
	for seed := range uint64(8) {
		var l world.Log
		if err := New(world.Recorded(Choices(seed, 60), &l)).Run(); err != nil {
			f.Fatal(err)
		}
		f.Add(drawn(l))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if err := New(world.Given(world.Drawn(in), "moves", 60)).Run(); err != nil {
			l, _ := Recorded(world.Given(world.Drawn(in), "moves", 60))
			small, _, _ := Shrink(l, 1000)
			text, _ := small.MarshalText()
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// drawn returns bytes that give l again.
func drawn(l world.Log) (bytes []byte) {
	for _, c := range l {
		if c.Site == "moves" {
			continue
		}
		var one []byte
		for most, got := c.N-1, c.Got; most > 0; most, got = most>>8, got>>8 {
			one = append([]byte{byte(got)}, one...)
		}
		bytes = append(bytes, one...)
	}
	return bytes
}

// TestBytesOfLogGiveSameRun replays a log from its bytes.
func TestBytesOfLogGiveSameRun(t *testing.T) {
	for seed := range uint64(8) {
		l, err := Recorded(Choices(seed, 60))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Recorded(world.Given(world.Drawn(drawn(l)), "moves", 60))
		if a, b := len(l), len(again); err != nil || a != b || l.Surprises() != again.Surprises() {
			t.Fatalf("seed %d: %d choices became %d, %v", seed, a, b, err)
		}
	}
}

// TestWorkloadsMeet: a run may have any workloads together, since bytes may draw them.
func TestWorkloadsMeet(t *testing.T) {
	for seed := range uint64(300) {
		c, rest := Choices(seed, 200), seed
		for _, odd := range []struct {
			site string
			n    uint64
		}{{"odds/storage", 3}, {"odds/prepaid", 2}, {"odds/counter", 2}, {"odds/files", 2}, {"odds/usage", 2}} {
			c, rest = world.Given(c, odd.site, int(rest%odd.n)), rest/odd.n
		}
		if err := New(c).Run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/ci/bench/flow"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// TestReadLogs: requests that end in the window are counted, requests that begin in it are
// measured.
func TestReadLogs(t *testing.T) {
	var lines [2]strings.Builder
	for i := range 100 { // one each 10 ms from second 7 on, each takes 1 ms, the 40th takes 5
		took := 1000
		if i == 40 {
			took = 5000
		}
		end := 7_000_000 + i*10_000 + took
		fmt.Fprintf(&lines[i%2], "%d %d %d 0 %d %d\n", i%2, i/2+1, took, end/1_000_000, end%1_000_000)
	}
	logs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	for i := range logs {
		if err := os.WriteFile(logs[i], []byte(lines[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readLogs(logs, 200*time.Millisecond, 500*time.Millisecond)
	if err != nil || s.All != 100 || s.Counted != 50 || s.Max != 5*time.Millisecond || s.P50.Round(100*time.Microsecond) != time.Millisecond {
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err := readLogs(logs, 200*time.Millisecond, time.Second); err == nil {
		t.Errorf("it ended before the window: %+v", s)
	}
	for rule, text := range map[string]string{"nothing": "", "no log": "progress: 1 s\n"} {
		if err := os.WriteFile(logs[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := readLogs(logs[:1], 0, time.Second); err == nil {
			t.Errorf("%s: %+v", rule, s)
		}
	}
}

// TestFailureIsOneLine: a failure is one line of the page, without paths of this machine.
func TestFailureIsOneLine(t *testing.T) {
	b := &bench{bin: "/here/bin", work: "/here/disk"}
	got := b.failure("memory", errors.New("start /here/bin/x:\nno /here/disk/y "+strings.Repeat("z", 1000)))
	if strings.ContainsAny(got, "\n") || strings.Contains(got, "/here") || len(got) > 400 || !strings.HasPrefix(got, "memory: it failed: start …/x: no …/y") {
		t.Fatal(got)
	}
}

// TestMemoryFileSystemIsRejected: a sync there does nothing.
func TestMemoryFileSystemIsRejected(t *testing.T) {
	if name, err := fileSystem("/dev/shm"); err == nil {
		t.Errorf("/dev/shm is %s", name)
	}
	if _, err := fileSystem(t.TempDir() + "/none"); err == nil {
		t.Error("there is no such directory")
	}
}

// TestJain: the index is 1 for equal shares, and less for unequal ones.
func TestJain(t *testing.T) {
	for _, c := range []struct {
		counts []uint64
		want   float64
	}{{[]uint64{5, 5, 5, 5}, 1}, {[]uint64{1, 3}, 0.8}, {[]uint64{4, 0, 0, 0}, 0.25}, {[]uint64{0, 0}, 0}} {
		var seen []flow.Seen
		for _, n := range c.counts {
			seen = append(seen, flow.Seen{Served: sample.Sample{Counted: n}})
		}
		if got := jain(seen); got != c.want {
			t.Errorf("%v: %v, want %v", c.counts, got, c.want)
		}
	}
}

// TestBenchLine: the output of benchmarks is parsed.
func TestBenchLine(t *testing.T) {
	const out = "goos: linux\nBenchmarkTake        \t  300000\t        62.09 ns/op\t       0 B/op\t       0 allocs/op\n" +
		"BenchmarkArrive-2 \t300000\t 592 ns/op\t 12.5 other/op\t 16 B/op\t 2 allocs/op\n" +
		"BenchmarkSeal \t20\t 8891526 ns/op\t 8913326 cpu-ns/op\t 0 B/op\t 0 allocs/op\nPASS\n"
	var got []string
	for _, m := range benchLine.FindAllStringSubmatch(out, -1) {
		got = append(got, strings.Join(m[1:], " "))
	}
	if reply := strings.Join(got, "; "); reply != "Take 62.09  0; Arrive 592  2; Seal 8891526 8913326 0" {
		t.Error(reply)
	}
}

// TestGoalsAgainstMinIO: each goal against MinIO is in the report, converted by the rates of versitygw, with its verdict.
func TestGoalsAgainstMinIO(t *testing.T) {
	o := &objects{bench: &bench{}, names: []string{nativeObjects, s3Objects, versity}, turns: map[objectWork]map[string][]objectTurn{}}
	for _, w := range objectWorks {
		o.turns[w] = map[string][]objectTurn{}
		for name, rate := range map[string]uint64{nativeObjects: 200, s3Objects: 90, versity: 100} {
			var turn objectTurn
			turn.Counted, turn.Took = rate, time.Second
			o.turns[w][name] = []objectTurn{turn}
		}
	}
	o.goals()
	got := map[string]string{}
	for _, g := range o.page.Goals {
		if what, found := strings.CutSuffix(g.What, " × MinIO"); found {
			got[what] = fmt.Sprintf("%.2f %.2f %v", g.Want.Number, g.Got, g.Met())
		}
	}
	want := map[string]string{}
	for what, goal := range map[string][2]string{"PUT 64 KiB": {"1.67", "4"}, "PUT 1 MiB": {"3.33", "4"}, "GET 64 KiB": {"2.73", "3"}, "GET 1 MiB": {"0.96", "2.2"}, "4 KiB of 1 MiB": {"8.75", "7"}} {
		tail := " against versitygw, for " + goal[1]
		want[what+", requests per second: "+nativeObjects+tail] = fmt.Sprint(goal[0], " 2.00 ", goal[0] < "2")
		want[what+", requests per second: "+s3Objects+tail] = goal[0] + " 0.90 false"
	}
	if !maps.Equal(got, want) {
		t.Errorf("goals %q, want %q", got, want)
	}
}

// TestPageHasFixedSections: the page of objects ends with the sections that no run measures, as the next run will write them.
func TestPageHasFixedSections(t *testing.T) {
	page, err := os.ReadFile("../../../docs/performance-objects.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut((&sheet.Sheet{Sections: fixedSections()}).String(), "\n## Where")
	if sections == "" || !strings.HasSuffix(string(page), "\n## Where"+sections) {
		t.Errorf("the page does not end with %q", "## Where"+sections)
	}
}

// probe measures in process, without HTTP: macronode's durable path, and the same transfers on
// pebble, each in its own process. It prints a sample on standard output.
//
//	probe ours|nosync|pebble|issue|flat|write|recover|tables [flags]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"macronode/ci/bench/sample"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

const fastest = 500_000 // requests a second for which the window of keys has room

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("wants ours, nosync, pebble, issue, flat, write, recover or tables")
	}
	var s settings
	var sp span
	var w writing
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&s.dir, "dir", "", "directory on the disk that is measured, empty but for recover and tables")
	f.IntVar(&s.accounts, "accounts", 100_000, "accounts that have money at the start")
	f.IntVar(&s.callers, "callers", 64, "callers at once")
	f.DurationVar(&sp.warm, "warm", 500*time.Millisecond, "time before measuring")
	f.DurationVar(&sp.time, "time", 2*time.Second, "time of measuring")
	count := f.Int("count", 1_000_000, "operations of flat; frames of write and recover")
	f.IntVar(&w.payers, "payers", 0, "accounts that pay in write; 0: all")
	f.IntVar(&w.window, "window", 0, "keys that write and recover have room for; 0: for all")
	f.DurationVar(&w.span, "span", 0, "time that the frames of write are spread over")
	f.IntVar(&w.tail, "tail", -1, "frames of write behind a snapshot; -1: no snapshot")
	f.IntVar(&w.asks, "asks", 0, "keys of write to be asked again")
	f.StringVar(&w.file, "asks-file", "", "file that they go to")
	profile := f.String("profile", "", "file for a CPU profile of the whole")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if *profile != "" {
		to, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer to.Close() //nolint:errcheck // a profile that is not whole cannot be read
		if err := pprof.StartCPUProfile(to); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s.keys, s.ttl = int((sp.warm+sp.time+time.Second).Seconds()*fastest), time.Hour
	w.dir, w.accounts, w.frames = s.dir, s.accounts, *count
	if w.window == 0 {
		w.window = 2 * w.frames // no key is evicted
	}
	r, err := measure(args[0], s, sp, w)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func measure(what string, s settings, sp span, w writing) (sample.Sample, error) {
	switch what {
	case "ours", "nosync", "issue":
		s.nosync, s.issue = what == "nosync", what == "issue"
		return measureOwn(s, sp)
	case "flat":
		s.keys, s.ttl, sp.count = min(w.frames, 10*fastest), 10*time.Second, uint64(w.frames) // keys are evicted during the run
		return measureOwn(s, sp)
	case "pebble":
		return measurePebble(s, sp)
	case "write":
		return w.write()
	case "recover":
		return recovers(w)
	case "tables":
		return measureTables(s.dir)
	}
	return sample.Sample{}, fmt.Errorf("no such measurement")
}

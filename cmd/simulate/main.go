// Simulate runs one simulated run of the node, repeatably, from a seed or from the log of its choices.
//
//	simulate -seed 7 -o run.log            the run of a seed; its log, if it fails
//	simulate -seed 1 -runs 9000            of each seed, until one fails
//	simulate -replay run.log               the same run again, also after a change
//	simulate -shrink run.log -o small.log  a smaller log that fails in the same way
//	simulate -timeline small.log -o f.svg  a picture of the run
//
// It exits with 0 if nothing fails, with 1 if a rule is broken, with 2 if it cannot run, and with 3 if a log asks
// for a choice that does not exist any more.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"macronode/chaos/sim"
	"macronode/chaos/world"
)

const (
	kept = iota
	broken
	unable
	diverged
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options is the command line.
type options struct {
	seed           uint64
	runs           int
	moves, most    int
	replay, shrink string
	timeline       string
	to             string
	out            io.Writer
}

func run(args []string, out, complaints io.Writer) (code int) {
	a := options{out: out}
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.SetOutput(complaints)
	flags.Uint64Var(&a.seed, "seed", 0, "run the seed `N`, from 1")
	flags.IntVar(&a.runs, "runs", 1, "run `K` seeds in all, until one fails")
	flags.IntVar(&a.moves, "moves", 500, "so many moves of it")
	flags.StringVar(&a.replay, "replay", "", "replay the log `F`")
	flags.StringVar(&a.shrink, "shrink", "", "make the log `F` small, and write it to -o")
	flags.StringVar(&a.timeline, "timeline", "", "draw the run of the log `F` to -o, as SVG")
	flags.IntVar(&a.most, "most", 3000, "shrink within so many runs")
	flags.StringVar(&a.to, "o", "", "write to `G`")
	if flags.Parse(args) != nil {
		return unable
	}
	code, err := a.play()
	if err != nil {
		fmt.Fprintln(complaints, "simulate:", err) //nolint:errcheck // there is no other output
		return unable
	}
	return code
}

func (a options) play() (code int, err error) {
	switch {
	case a.replay != "":
		return a.replayLog()
	case a.shrink != "":
		return a.shrinkLog()
	case a.timeline != "":
		return a.drawTimeline()
	case a.seed > 0:
		return a.playSeeds()
	}
	return unable, errors.New("wants -seed, -replay, -shrink or -timeline; see -h")
}

func (a options) printf(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", args...) //nolint:errcheck // the exit code says it too
}

// verdict prints how a run ended, and returns the exit code.
func (a options) verdict(err error) int {
	var d world.Diverged
	switch {
	case err == nil:
		a.printf("no rule was broken")
		return kept
	case errors.As(err, &d):
		a.printf("%v\nThe code asks something else than it did: whether it fails is not known.", d)
		return diverged
	}
	a.printf("%v", err)
	return broken
}

// playSeeds plays seeds until one fails.
func (a options) playSeeds() (int, error) {
	for last := a.seed + uint64(max(1, a.runs)) - 1; a.seed < last && sim.Failed(sim.Choices(a.seed, a.moves)) == ""; {
		a.seed++
	}
	l, err := sim.Recorded(sim.Choices(a.seed, a.moves))
	code := a.verdict(err)
	if code != broken || a.to == "" {
		return code, nil
	}
	a.printf("go run ./cmd/simulate -replay %s", a.to)
	return code, sim.Save(a.to, l, fmt.Sprintf("seed %d, %d moves", a.seed, a.moves), sim.Rule(err))
}

// replayLog plays a log.
func (a options) replayLog() (int, error) {
	l, err := sim.Load(a.replay)
	if err != nil {
		return unable, err
	}
	return a.verdict(sim.New(sim.Replay(l)).Run()), nil
}

// shrinkLog shrinks a log.
func (a options) shrinkLog() (int, error) {
	l, err := sim.Load(a.shrink)
	if err != nil {
		return unable, err
	}
	if a.to == "" {
		return unable, errors.New("-shrink wants -o, for what is left")
	}
	small, rule, runs := sim.Shrink(l, a.most)
	if rule == "" {
		a.printf("no rule was broken: there is nothing to make small")
		return kept, nil
	}
	a.printf("%s: %d choices, %d of them not 0; left %d and %d, after %d runs\ngo run ./cmd/simulate -replay %s",
		rule, len(l), l.Surprises(), len(small), small.Surprises(), runs, a.to)
	return broken, sim.Save(a.to, small, rule)
}

// drawTimeline draws a log.
func (a options) drawTimeline() (int, error) {
	l, err := sim.Load(a.timeline)
	if err != nil {
		return unable, err
	}
	if a.to == "" {
		return unable, errors.New("-timeline wants -o, for the picture")
	}
	var svg bytes.Buffer
	if err := sim.Timeline(&svg, l); err != nil {
		return a.verdict(err), nil
	}
	return kept, os.WriteFile(a.to, svg.Bytes(), 0o600)
}

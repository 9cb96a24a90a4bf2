// compare runs all measurements, macronode and its peers in turn, and writes the page with the
// results. ci/bench/run builds the programs and starts it.
//
//	transfers, batches ─► in process ─► scale ─► recovery ─► memory ─► old keys ─► statement ─► gateway ─► drain ─► docs/performance.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// bench is one run of all measurements.
type bench struct {
	bin    string // directory of the programs
	work   string // directory on the measured disk
	rounds int
	warm   time.Duration // of each turn, not measured
	time   time.Duration // of each turn
	pool   int           // connections of the service to PostgreSQL
	frames int           // of the recovered journal
	flat   int           // operations of the long run
	many   int           // accounts of the large ledger
	old    int           // keys of the node with more than its window
	lines  int           // entries of the statement
	page   sheet.Sheet
	noise  []float64 // share of the machine used by other processes, per turn
}

// A stage is one measurement.
type stage struct {
	name string
	run  func(context.Context) error
}

func main() {
	b := &bench{}
	out := flag.String("out", "", "file that the page is written to")
	only := flag.String("only", "", "comma-separated stages, in place of all: transfers, process, scale, recovery, memory, keys, statement, gateway, drain, objects, usage; quick: short turns of the last two, to see that all works")
	flag.StringVar(&b.bin, "bin", "", "directory of the programs")
	flag.StringVar(&b.work, "work", "", "empty directory on the disk that is measured")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&b.warm, "warm", 500*time.Millisecond, "time of each turn before it is measured")
	flag.DurationVar(&b.time, "time", 2*time.Second, "time of each turn")
	flag.IntVar(&b.pool, "pool", 64, "connections of the service to PostgreSQL")
	flag.IntVar(&b.frames, "frames", 1_000_000, "frames of the journal that is recovered")
	flag.IntVar(&b.flat, "flat", 2_000_000, "operations of the long run")
	flag.IntVar(&b.many, "many", 1_000_000, "accounts of the large ledger")
	flag.IntVar(&b.old, "old", 2_000_000, "keys of the node that has more than fit in its window")
	flag.IntVar(&b.lines, "lines", 100_000, "entries of the statement")
	full := flag.Bool("full", false, "10,000,000 old keys, which takes minutes")
	flag.Parse()
	if *full {
		b.old = 10_000_000
	}
	if *only == "quick" {
		*only, b.rounds, b.warm, b.time = "gateway,drain", 1, 200*time.Millisecond, 300*time.Millisecond
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, out, only string) error {
	stages := []stage{{"transfers", b.transfers}, {"process", b.process}, {"scale", b.scale}, {"recovery", b.recovery}, {"memory", b.memory},
		{"keys", b.keys}, {"statement", b.statement}, {"gateway", b.gateway}, {"drain", b.drain}, {"objects", b.objects}, {"usage", b.usage}}
	var err error
	// Stages with a page of their own, and its facts.
	pages := map[string]func(context.Context) ([]sheet.Fact, error){"objects": b.objectFacts, "usage": b.usageFacts}
	facts, alone := pages[only]
	if !alone {
		facts = b.facts
	}
	if b.page.Facts, err = facts(ctx); err != nil {
		return err
	}
	var failed []error
	for _, s := range stages {
		if only == "" && pages[s.name] != nil {
			continue
		}
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			if !alone {
				b.page.Missing = append(b.page.Missing, s.name+": not asked for")
			}
			continue
		}
		if err := s.run(ctx); err != nil {
			b.page.Missing = append(b.page.Missing, b.failure(s.name, err))
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
	}
	b.page.Facts = append(b.page.Facts, sheet.Fact{What: "other load", Is: b.otherLoad()})
	if out != "" {
		failed = append(failed, os.WriteFile(out, []byte(b.page.String()), 0o644))
	} else {
		fmt.Print(b.page.String())
	}
	return errors.Join(failed...)
}

// otherLoad reports the share of the machine that other processes used.
func (b *bench) otherLoad() string {
	s := sample.Of(b.noise)
	text := fmt.Sprintf("other processes took %.0f %% of the machine (%.0f–%.0f %%)", 100*s.Median, 100*s.Least, 100*s.Most)
	if s.Median > 0.1 {
		text += ": too much to judge requests a second by; CPU a request holds"
	}
	return text
}

// failure formats a failure for the page: one line, without paths of this machine.
func (b *bench) failure(stage string, err error) string {
	text := strings.NewReplacer(b.work, "…", b.bin, "…", "\n", " ").Replace(err.Error())
	if most := 300; len(text) > most {
		text = text[:most] + " …"
	}
	return stage + ": it failed: " + text
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

func (b *bench) binary(name string) string { return filepath.Join(b.bin, name) }

// config writes a node's configuration with additions for the journal. Its timeouts are long: the
// load of the machine is not a failure of the journal. One tenant may have all permits, accounts and holdings: the load is that of one.
func (b *bench) config(data string, accounts, keys int, ttl string, more ...string) (file string, err error) {
	text := fmt.Sprintf(`data: %s
listen:
  http: 127.0.0.1:0
  admin: 127.0.0.1:0
wallet:
  limits:
    accounts: %d
    holdings: %d
    tenant_accounts: %d
    tenant_holdings: %d
  idempotency:
    ttl: %s
    keys: %d
permits:
  flow_share: 100
log:
  level: warn
journal:
  stall_threshold: 5s
  sync_timeout: 20s
`, data, accounts, accounts, accounts, accounts, ttl, keys)
	for _, m := range more {
		text += "  " + m + "\n"
	}
	file = data + ".yaml"
	return file, os.WriteFile(file, []byte(text), 0o600)
}

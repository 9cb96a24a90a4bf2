// objload stores and reads objects over HTTP/1.1. Each connection sends its next request when the last one is answered. Every response
// must have the expected status and length; a body that is read whole must begin with the number of its object. The plan is read from
// standard input, the result is written to standard output.
//
//	connection: sign ─► write header and body ─► read header ─► read body ─► check, count ─► next request
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"macronode/ci/bench/hist"
	"macronode/ci/bench/objplan"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "objload:", err)
		os.Exit(1)
	}
}

func run() error {
	var p objplan.Plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	runtime.GOMAXPROCS(1) // the machine belongs to the server
	debug.SetGCPercent(400)
	r, err := drive(context.Background(), &p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// A worker is one connection with what it counts.
type worker struct {
	*conn
	all, counted uint64
	seen         hist.Hist
}

// drive runs a plan.
func drive(ctx context.Context, p *objplan.Plan) (r objplan.Result, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	used, began := cpu(), time.Now()
	workers := make([]worker, p.Conns)
	var group sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		if w.conn, err = dial(p, i); err != nil {
			stop(err)
			break
		}
		group.Go(func() {
			if err := w.work(ctx, began.Add(p.Warm), p.Time); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	var seen hist.Hist
	for i := range workers {
		w := &workers[i]
		r.All += w.all
		r.Counted += w.counted
		r.Signing += w.signing
		seen.Merge(&w.seen)
	}
	r.Took = p.Time
	r.P50, r.P99, r.P999, r.Max = seen.Quantile(0.5), seen.Quantile(0.99), seen.Quantile(0.999), seen.Max()
	r.Generator = cpu() - used
	return r, nil
}

// work sends requests until the time is over. Answers between from and its end are counted.
func (w *worker) work(ctx context.Context, from time.Time, span time.Duration) error {
	defer w.close()
	to := from.Add(span)
	dice := rand.New(rand.NewPCG(1, uint64(w.number)))
	for n := 0; ctx.Err() == nil; n++ {
		start := time.Now()
		if !start.Before(to) {
			return nil
		}
		if err := w.request(n, dice); err != nil {
			return fmt.Errorf("connection %d, request %d: %w", w.number, n, err)
		}
		now := time.Now()
		w.all++
		if !now.Before(from) && now.Before(to) {
			w.counted++
		}
		if !start.Before(from) {
			w.seen.Add(now.Sub(start))
		}
	}
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

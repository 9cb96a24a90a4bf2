package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"macronode/ci/bench/hist"
	"macronode/ci/bench/sample"
)

// span is the duration of a run, and its measured part.
type span struct {
	warm, time time.Duration
	count      uint64 // number of requests, instead of a time
}

// drive runs callers, each sending the next request after its answer, and returns a sample. CPU
// is that of this process: the store and its callers.
func drive(callers int, s span, ask func(caller int) error) (sample.Sample, error) {
	began := time.Now()
	from, to := began.Add(s.warm), began.Add(s.warm+s.time)
	if s.count > 0 {
		from, to = began, began.Add(24*time.Hour)
	}
	t := tally{every: max(1, s.count/10)}
	t.cut(began)
	seen, errs := make([]hist.Hist, callers), make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() { errs[c] = t.caller(&seen[c], from, to, s.count, func() error { return ask(c) }) })
	}
	var used, last time.Duration
	if s.count == 0 {
		time.Sleep(time.Until(from))
		used = cpu()
		time.Sleep(time.Until(to))
		used = cpu() - used
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return sample.Sample{}, err
	}
	var all hist.Hist
	for i := range seen {
		all.Merge(&seen[i])
	}
	r := sample.Sample{All: t.all.Load(), Counted: t.counted.Load(), Took: s.time, CPU: used,
		P50: all.Quantile(0.5), P99: all.Quantile(0.99), P999: all.Quantile(0.999), Max: all.Max()}
	if s.count > 0 {
		r.Tenths = t.tenths
		for _, part := range t.tenths {
			r.CPU += part.CPU
			last += part.Took
		}
		r.Took = last
	}
	r.Over = r.Counted
	return r, nil
}

// tally counts answers.
type tally struct {
	asked, all, counted atomic.Uint64
	every               uint64 // answers per tenth

	mu     sync.Mutex
	since  time.Time     // start of the current tenth
	used   time.Duration // CPU up to then
	tenths []sample.Sample
}

func (t *tally) caller(seen *hist.Hist, from, to time.Time, count uint64, ask func() error) error {
	for count == 0 || t.asked.Add(1) <= count {
		at := time.Now()
		if !at.Before(to) {
			return nil
		}
		if err := ask(); err != nil {
			return err
		}
		now := time.Now()
		n := t.all.Add(1)
		if !now.Before(from) && now.Before(to) {
			t.counted.Add(1)
		}
		if !at.Before(from) {
			seen.Add(now.Sub(at))
		}
		if count > 0 && n%t.every == 0 {
			t.cut(now)
		}
	}
	return nil
}

// cut ends a tenth; the first call begins one.
func (t *tally) cut(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	used := cpu()
	if !t.since.IsZero() {
		t.tenths = append(t.tenths, sample.Sample{Counted: t.every, Over: t.every, Took: now.Sub(t.since), CPU: used - t.used})
	}
	t.since, t.used = now, used
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("probe: getrusage: %v", err)) // cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// offer runs a plan: it offers flows of requests to a gateway over HTTP/1.1 and reports the
// results. It is one thread over epoll with hand-written requests, so that it uses little of the
// measured machine. The plan is read from standard input, the result of each flow is written to
// standard output, both as JSON.
//
//	due ─► a connection is free ─► write ─► epoll ─► read answer ─► count by status ─┐
//	 └── waits for one ──────────────────────────────────────────────────────────────┘
package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"macronode/ci/bench/flow"
	"macronode/ci/bench/hist"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/socket"
)

// offer is a running plan.
type offer struct {
	to       netip.AddrPort
	poll     *socket.Poll
	conns    []*conn // by number
	flows    []*stream
	from, by time.Time // the measured time
	span     time.Duration
	out      int // connections that wait for an answer, or to be connected
	alive    int // open connections
}

func main() {
	var p flow.Plan
	err := json.NewDecoder(os.Stdin).Decode(&p)
	if err == nil {
		err = run(&p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "offer:", err)
		os.Exit(1)
	}
}

func run(p *flow.Plan) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)                                              // few allocations while it runs
	_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0) // otherwise timers are 50 µs late
	o, err := prepare(p)
	if err != nil {
		return err
	}
	defer o.poll.Close()
	if err := o.drive(); err != nil {
		return err
	}
	var seen []flow.Seen
	for _, s := range o.flows {
		seen = append(seen, s.saw())
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// prepare connects all flows and starts their time.
func prepare(p *flow.Plan) (*offer, error) {
	to, err := netip.ParseAddrPort(p.Addr)
	if err != nil || !to.Addr().Is4() || !to.Addr().IsLoopback() {
		return nil, fmt.Errorf("addr %q: wants an IPv4 loopback address and port", p.Addr)
	}
	poll, err := socket.New()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	o := &offer{to: to, poll: poll, span: p.Time, from: began.Add(p.Warm), by: began.Add(p.Warm + p.Time)}
	for i := range p.Flows {
		if err := o.open(&p.Flows[i], began); err != nil {
			poll.Close()
			return nil, err
		}
	}
	return o, nil
}

const (
	prSetTimerSlack = 29
	stall           = 30 * time.Second // longest time without any event
)

// drive offers requests until the time is over, and waits for those in flight.
func (o *offer) drive() error {
	quiet := time.Now()
	for {
		now := time.Now()
		wait := stall
		if now.Before(o.by) {
			wait = min(wait, o.by.Sub(now)) // nothing may be due before the end
		}
		for _, s := range o.flows {
			if err := s.due(now); err != nil {
				return err
			}
			if s.rate > 0 && s.next.Before(o.by) {
				wait = min(wait, s.next.Sub(now))
			}
		}
		if !now.Before(o.by) && o.out == 0 || o.alive == 0 {
			return nil
		}
		nothing, err := o.poll.Wait(wait, func(number int) error { return o.conns[number].happens() })
		if err != nil {
			return err
		}
		if !nothing {
			quiet = now
		} else if now.Sub(quiet) > stall {
			return fmt.Errorf("no answer for %v, %d are out", stall, o.out)
		}
	}
}

// counts are the answers of one kind.
type counts struct {
	all, within uint64
	times       hist.Hist
}

func (c *counts) add(o *offer, due, now time.Time) {
	c.all++
	if !now.Before(o.from) && now.Before(o.by) {
		c.within++
	}
	if !due.Before(o.from) && due.Before(o.by) {
		c.times.Add(now.Sub(due))
	}
}

func (c *counts) sample(span time.Duration) sample.Sample {
	return sample.Sample{All: c.all, Counted: c.within, Took: span, P50: c.times.Quantile(0.5), P99: c.times.Quantile(0.99),
		P999: c.times.Quantile(0.999), Max: c.times.Max()}
}

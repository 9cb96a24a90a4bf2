// load makes transfers (or issues, or batches of transfers, or of usage events) over HTTP/1.1, or
// repeats earlier requests; each connection sends the next one after its answer. It is one thread
// over epoll with hand-written requests, so that it uses little of the measured machine. Every
// answer must be 200 with the key of its request, a batch with all its receipts, and a repeated
// request must have the same answer; events must be 202, all of them recorded; otherwise the run
// ends. It prints a sample on standard output.
//
//	connection: write request ─► epoll ─► read answer ─► check, count ─► next request
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"macronode/ci/bench/ask"
	"macronode/ci/bench/hist"
	"macronode/ci/bench/sample"
)

// Plan is the load. Connection i pays from its own accounts in turn, so that their nonces are
// known: First+i*Spread and the Spread-1 after it.
type Plan struct {
	Addr     netip.AddrPort
	Key      string    // the API key
	Salt     string    // makes idempotency keys unique
	Issue    bool      // makes issues to each of Accounts instead of transfers
	Batch    int       // transfers of one atomic request; 0: single transfers
	Events   int       // usage events of one request, instead of a transfer
	Random   bool      // ids of events begin with random digits; otherwise those of a connection are in order
	Asks     []ask.Ask // repeated instead of transfers
	Accounts int       // number of accounts
	First    int       // the first payer
	Spread   int       // accounts of one connection
	Conns    int
	Count    int           // number of requests, instead of a time
	Warm     time.Duration // not measured
	Time     time.Duration // measured
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run() error {
	var p Plan
	addr := flag.String("addr", "", "loopback address and port")
	keyFile := flag.String("key-file", "", "file with the API key")
	flag.StringVar(&p.Salt, "salt", "s", "makes idempotency keys new")
	flag.BoolVar(&p.Issue, "issue", false, "issue to each account once, in place of transfers")
	flag.IntVar(&p.Batch, "batch", 0, "transfers of one request, all or nothing, in place of one")
	flag.IntVar(&p.Events, "events", 0, "usage events of one request, in place of a transfer")
	flag.BoolVar(&p.Random, "random", false, "ids of events begin with random digits")
	asks := flag.String("asks", "", "file of what was answered before, asked again in place of transfers")
	flag.IntVar(&p.Accounts, "accounts", 100_000, "accounts there are")
	flag.IntVar(&p.First, "first", 0, "first account that pays")
	flag.IntVar(&p.Spread, "spread", 16, "accounts that one connection pays from")
	flag.IntVar(&p.Conns, "conns", 64, "connections")
	flag.IntVar(&p.Count, "count", 0, "requests, in place of a time")
	flag.DurationVar(&p.Warm, "warm", 500*time.Millisecond, "time before measuring")
	flag.DurationVar(&p.Time, "time", 2*time.Second, "time of measuring")
	flag.Parse()
	var err error
	if p.Addr, err = netip.ParseAddrPort(*addr); err != nil || !p.Addr.Addr().IsLoopback() || !p.Addr.Addr().Is4() {
		return fmt.Errorf("addr %q: wants an IPv4 loopback address and port", *addr)
	}
	key, err := os.ReadFile(*keyFile)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	p.Key = strings.TrimSpace(string(key))
	if *asks != "" {
		if p.Asks, err = shuffled(*asks); err != nil {
			return err
		}
	}
	if p.Issue {
		p.Count = p.Accounts
	} else if need := p.First + p.Conns*p.Spread; need > p.Accounts {
		return fmt.Errorf("%d connections from account %d on want %d accounts", p.Conns, p.First, need)
	}
	debug.SetGCPercent(-1) // no allocation while it runs
	runtime.LockOSThread()
	r, err := drive(&p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// shuffled reads a file of asks in a fixed random order.
func shuffled(file string) ([]ask.Ask, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("asks: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	all, err := ask.Read(f)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, err
}

// drive runs the plan.
func drive(p *Plan) (r sample.Sample, err error) {
	poll, err := newPoll(p)
	if err != nil {
		return r, err
	}
	defer poll.close()
	used, began := cpu(), time.Now()
	from, to := began.Add(p.Warm), began.Add(p.Warm+p.Time)
	if p.Count > 0 {
		from, to = began, began.Add(24*time.Hour)
	}
	asked := 0
	wants := func(now time.Time) bool { return now.Before(to) && (p.Count == 0 || asked < p.Count) }
	next := func(c *conn) error {
		asked++
		return c.ask(asked - 1)
	}
	out := 0 // requests in flight
	for i := range poll.conns {
		if wants(began) {
			if err := next(&poll.conns[i]); err != nil {
				return r, err
			}
			out++
		}
	}
	var seen hist.Hist
	last := began
	for out > 0 {
		err := poll.wait(func(c *conn) error {
			whole, err := c.read()
			if err != nil || !whole {
				return err
			}
			now := time.Now()
			last = now
			r.All++
			if !now.Before(from) && now.Before(to) {
				r.Counted++
			}
			if !c.began.Before(from) && c.began.Before(to) {
				seen.Add(now.Sub(c.began))
			}
			if !wants(now) {
				out--
				return nil
			}
			return next(c)
		})
		if err != nil {
			return r, err
		}
	}
	r.Took = p.Time
	if p.Count > 0 {
		r.Took = last.Sub(began)
	}
	r.P50, r.P99, r.P999, r.Max = seen.Quantile(0.5), seen.Quantile(0.99), seen.Quantile(0.999), seen.Max()
	r.Generator = cpu() - used
	return r, nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

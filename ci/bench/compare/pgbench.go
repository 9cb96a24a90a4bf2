package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/hist"
	"macronode/ci/bench/sample"
)

// script is the load as a pgbench script.
const script = `\set i :i + 1
\set n :i / :spread + 1
\set payer :first + :client_id * :spread + :i % :spread
\set payee (:payer + 1 + random(0, :accounts - 2)) % :accounts
select transfer(:salt || '-' || :client_id::text || '-' || :i::text, '\x000102030405060708090a0b0c0d0e0f'::bytea,
	'acct:' || lpad(:payer::text, 8, '0'), 'acct:' || lpad(:payee::text, 8, '0'), 'EUR/2', 7, :n, 'invoice 2026-0042, second part');
`

// batchScript is a batch of transfers. The server composes them, at a hundredth of their cost.
const batchScript = `\set i :i + 1
\set begun :i * :items
\set mine :first + :client_id * :spread
\set r random(0, :accounts - 2)
select batch(:salt || '-' || :client_id::text || '-' || :i::text, '\x000102030405060708090a0b0c0d0e0f'::bytea,
	array_agg('acct:' || lpad(payer::text, 8, '0')),
	array_agg('acct:' || lpad(((payer + 1 + (:r::bigint + g * 7919) % (:accounts::bigint - 1)) % :accounts::bigint)::text, 8, '0')),
	array_agg('EUR/2'::text), array_agg(7::bigint), array_agg(n / :spread::bigint + 1), array_agg('invoice 2026-0042, second part'::text))
from (select g, :begun::bigint + g as n, :mine::bigint + (:begun::bigint + g) % :spread::bigint as payer
	from generate_series(0, :items::bigint - 1) g) x;
`

// bare runs pgbench for one turn, with as many transfers per transaction as a request of its
// kind.
func (t *transfers) bare(ctx context.Context, k kind) (s sample.Sample, err error) {
	n := k.conns
	first, salt := t.pays(k)
	dir := filepath.Join(t.work, "pgbench")
	file, text := filepath.Join(t.work, "transfer.pgbench"), script
	if k.items > 1 {
		text = batchScript
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return s, err
	}
	// Its time includes connecting, which takes a second with many clients.
	whole := int(math.Ceil((t.warm + t.time).Seconds())) + 1 + n/128
	cmd, err := t.cluster.Bench(ctx, dir, "-M", "prepared", "-c", fmt.Sprint(n), "-j", fmt.Sprint(min(n, 2)), "-T", fmt.Sprint(whole),
		"-f", file, "-l", "--log-prefix="+salt, "-D", "i=-1", "-D", "salt="+salt, "-D", fmt.Sprintf("first=%d", first),
		"-D", fmt.Sprintf("spread=%d", k.spread), "-D", fmt.Sprintf("items=%d", k.items), "-D", fmt.Sprintf("accounts=%d", t.accounts()))
	if err != nil {
		return s, err
	}
	_, before, err := gauge.Family(t.cluster.PID())
	if err != nil {
		return s, err
	}
	inside := make(chan usage, 1)
	running, over := context.WithCancel(ctx)
	go func() { inside <- t.inside(running, before+n) }()
	_, otherLoad, err := t.watched(cmd, t.database)
	over()
	used := <-inside
	if err = errors.Join(err, used.err); err != nil {
		return s, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, salt+".*"))
	if err != nil {
		return s, err
	}
	s, err = readLogs(logs, t.warm, t.time)
	s.CPU, s.Over, s.OtherLoad = used.cpu, s.Counted, otherLoad
	return k.counted(s), err
}

type usage struct {
	cpu time.Duration
	err error
}

// inside returns the CPU of the cluster in the measured time, which begins when all clients are
// connected and warm.
func (t *transfers) inside(ctx context.Context, children int) (u usage) {
	for now := 0; now < children; {
		if !pause(ctx, 2*time.Millisecond) {
			return usage{err: errors.New("its clients were never all there")}
		}
		if _, now, u.err = gauge.Family(t.cluster.PID()); u.err != nil {
			return u
		}
	}
	whole := pause(ctx, t.warm)
	before, err1 := t.database()
	whole = pause(ctx, t.time) && whole
	after, err2 := t.database()
	if u.err = errors.Join(err1, err2); !whole {
		u.err = errors.Join(u.err, errors.New("it ended within the measured time"))
	}
	u.cpu = after - before
	return u
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// readLogs makes a sample of pgbench's logs, with the same window as our load generator. A line
// is client, count, latency in µs, script, and end time: seconds and µs.
func readLogs(logs []string, warm, length time.Duration) (s sample.Sample, err error) {
	type done struct{ at, took time.Duration }
	var all []done
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			return s, err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var client, count, took, file, sec, usec int64
			if _, err := fmt.Sscan(lines.Text(), &client, &count, &took, &file, &sec, &usec); err != nil {
				return s, fmt.Errorf("pgbench's log: %q: %w", strings.TrimSpace(lines.Text()), err)
			}
			all = append(all, done{time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond, time.Duration(took) * time.Microsecond})
		}
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	if len(all) == 0 {
		return s, fmt.Errorf("pgbench's log is empty: %v", logs)
	}
	began, ended := all[0].at-all[0].took, all[0].at
	for _, d := range all {
		began, ended = min(began, d.at-d.took), max(ended, d.at)
	}
	var seen hist.Hist
	from, to := began+warm, began+warm+length
	if ended < to {
		return s, fmt.Errorf("pgbench ended %v too early", to-ended)
	}
	for _, d := range all {
		if from <= d.at && d.at < to {
			s.Counted++
		}
		if from <= d.at-d.took && d.at-d.took < to {
			seen.Add(d.took)
		}
	}
	s.All, s.Took = uint64(len(all)), length
	s.P50, s.P99, s.P999, s.Max = seen.Quantile(0.5), seen.Quantile(0.99), seen.Quantile(0.999), seen.Max()
	return s, nil
}

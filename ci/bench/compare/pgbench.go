package main

import (
	"bufio"
	"context"
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

// script is what the load generator asks for, as pgbench says it.
const script = `\set i :i + 1
\set n :i / :spread + 1
\set payer :first + :client_id * :spread + :i % :spread
\set payee (:payer + 1 + random(0, :accounts - 2)) % :accounts
select transfer(:salt || '-' || :client_id::text || '-' || :i::text, '\x000102030405060708090a0b0c0d0e0f'::bytea,
	'acct:' || lpad(:payer::text, 8, '0'), 'acct:' || lpad(:payee::text, 8, '0'), 'EUR/2', 7, :n, 'invoice 2026-0042, second part');
`

// bare runs pgbench for one turn.
func (t *transfers) bare(ctx context.Context, n int) (s sample.Sample, err error) {
	first, salt := t.pays(n)
	dir := filepath.Join(t.work, "pgbench")
	file := filepath.Join(t.work, "transfer.pgbench")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		return s, err
	}
	whole := max(1, int(math.Ceil((t.warm + t.time).Seconds()))) // it takes no less
	cmd, err := t.cluster.Bench(ctx, dir, "-M", "prepared", "-c", fmt.Sprint(n), "-j", fmt.Sprint(min(n, 2)), "-T", fmt.Sprint(whole),
		"-f", file, "-l", "--log-prefix="+salt, "-D", "i=-1", "-D", "salt="+salt, "-D", fmt.Sprintf("first=%d", first),
		"-D", fmt.Sprintf("spread=%d", spread), "-D", fmt.Sprintf("accounts=%d", t.accounts()))
	if err != nil {
		return s, err
	}
	_, before, err := gauge.Family(t.cluster.PID())
	if err != nil {
		return s, err
	}
	used, strangers, err := watched(cmd, func() (time.Duration, error) { return t.quiet(before) })
	if err != nil {
		return s, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, salt+".*"))
	if err != nil {
		return s, err
	}
	s, err = readLogs(logs, t.warm, t.time)
	s.CPU, s.Over, s.Strangers = used, s.All, strangers
	return s, err
}

// quiet is what the cluster has used once there are no more processes than before: what
// has ended its parent has counted.
func (t *transfers) quiet(before int) (used time.Duration, err error) {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		used, now, err := gauge.Family(t.cluster.PID())
		if err != nil || now <= before || time.Now().After(deadline) {
			return used, err
		}
	}
}

// readLogs makes a sample of pgbench's logs, with the same window as our generator's.
// A line is client, count, latency in µs, script, and when it ended: seconds and µs.
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
	began := all[0].at - all[0].took
	for _, d := range all {
		began = min(began, d.at-d.took)
	}
	var seen hist.Hist
	from, to := began+warm, began+warm+length
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

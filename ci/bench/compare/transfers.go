package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

const spread = 16 // accounts that one connection pays from, in turn

var clients = [...]int{1, 64, 256}

// settings are what the cluster has beside its defaults: room for the connections,
// memory for all that is touched, and no checkpoint in the middle of a round.
var settings = []string{"shared_buffers=1GB", "max_connections=400", "max_wal_size=4GB", "checkpoint_timeout=30min"}

// transfers measures one transfer a request, by turns: ours over HTTP, the service
// over PostgreSQL, and pgbench calling the same function without a service.
type transfers struct {
	*bench
	cluster *cluster.Cluster
	node    *node
	peer    *peer
	first   int // the next account that nobody has paid from
	turn    int
	total   [2]uint64 // answers of node and peer

	ours, service, pgbench map[int]sample.Series // by clients
}

func (b *bench) transfers(ctx context.Context) (err error) {
	t := &transfers{bench: b, ours: map[int]sample.Series{}, service: map[int]sample.Series{}, pgbench: map[int]sample.Series{}}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.open(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		if _, err := t.cluster.SQL(ctx, "checkpoint"); err != nil {
			return err
		}
		for _, n := range clients {
			if err := t.round(ctx, n); err != nil {
				return fmt.Errorf("round %d, %d clients: %w", round+1, n, err)
			}
		}
		b.say("transfers over HTTP, round %d of %d", round+1, b.rounds)
	}
	if err := t.audit(ctx); err != nil {
		return err
	}
	t.report()
	return nil
}

// accounts is how many all rounds want: three programs pay in each, two of them from
// one ledger.
func (t *transfers) accounts() int {
	need := 0
	for _, n := range clients {
		need += 3 * n * spread
	}
	return max(100_000, t.rounds*need)
}

func (t *transfers) open(ctx context.Context) (err error) {
	if t.cluster, err = cluster.Start(ctx, filepath.Join(t.work, "cluster"), settings...); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, t.binary("pgservice"), "-dsn", t.cluster.DSN(), "-install").CombinedOutput(); err != nil {
		return fmt.Errorf("install the peer's tables: %w: %s", err, out)
	}
	fill := fmt.Sprintf("insert into account (name, asset, balance) select 'acct:' || lpad(i::text, 8, '0'), 'EUR/2', 1000000000 "+
		"from generate_series(0, %d) i", t.accounts()-1)
	if _, err = t.cluster.SQL(ctx, fill, "vacuum analyze account"); err != nil {
		return err
	}
	data := filepath.Join(t.work, "transfers")
	config, err := t.config(data, t.accounts(), 4_000_000, "1m")
	if err != nil {
		return err
	}
	if t.node, err = t.serve(ctx, config, data); err != nil {
		return err
	}
	if t.peer, err = t.bench.peer(t.cluster.DSN(), t.node.keyFile()); err != nil {
		return err
	}
	s, err := t.sampled(exec.CommandContext(ctx, t.binary("load"), "-addr", t.node.http, "-key-file", t.node.keyFile(),
		"-issue", "-conns", "64", "-accounts", fmt.Sprint(t.accounts()), "-salt", "fill"), none)
	t.total[0] += s.All
	return err
}

func (t *transfers) close() (err error) {
	if t.peer != nil {
		err = errors.Join(err, t.peer.stop())
	}
	if t.node != nil {
		err = errors.Join(err, t.node.stop())
	}
	if t.cluster != nil {
		err = errors.Join(err, t.cluster.Stop())
	}
	return err
}

// round is one turn of each.
func (t *transfers) round(ctx context.Context, n int) error {
	s, err := t.load(ctx, t.node.http, n, func() (time.Duration, error) { return gauge.CPU(t.node.pid()) })
	if err != nil {
		return fmt.Errorf("ours: %w", err)
	}
	t.ours[n], t.total[0] = append(t.ours[n], s), t.total[0]+s.All
	if s, err = t.load(ctx, t.peer.http, n, t.both); err != nil {
		return fmt.Errorf("service over PostgreSQL: %w", err)
	}
	t.service[n], t.total[1] = append(t.service[n], s), t.total[1]+s.All
	if s, err = t.bare(ctx, n); err != nil {
		return fmt.Errorf("pgbench: %w", err)
	}
	t.pgbench[n], t.total[1] = append(t.pgbench[n], s), t.total[1]+s.All
	return nil
}

// pays reserves accounts for n connections, and a salt for their keys.
func (t *transfers) pays(n int) (first int, salt string) {
	first = t.first
	t.first += n * spread
	t.turn++
	return first, fmt.Sprintf("t%d", t.turn)
}

func (t *transfers) load(ctx context.Context, addr string, n int, servers func() (time.Duration, error)) (sample.Sample, error) {
	first, salt := t.pays(n)
	return t.sampled(exec.CommandContext(ctx, t.binary("load"), "-addr", addr, "-key-file", t.node.keyFile(),
		"-conns", fmt.Sprint(n), "-accounts", fmt.Sprint(t.accounts()), "-first", fmt.Sprint(first), "-spread", fmt.Sprint(spread),
		"-salt", salt, "-warm", t.warm.String(), "-time", t.time.String()), servers)
}

// database is what PostgreSQL has used; both, with the service in front of it.
func (t *transfers) database() (time.Duration, error) {
	used, _, err := gauge.Family(t.cluster.PID())
	return used, err
}

func (t *transfers) both() (time.Duration, error) {
	service, err := gauge.CPU(t.peer.pid())
	if err != nil {
		return 0, err
	}
	database, err := t.database()
	return service + database, err
}

// audit holds what each ledger says it did against what was counted.
func (t *transfers) audit(ctx context.Context) error {
	said, err := t.cluster.SQL(ctx, "select count(*) from receipt where outcome = 0",
		"select sum(balance) from account", "select sum(nonce) from account")
	if want := fmt.Sprintf("%d\n%d\n%d", t.total[1], 1_000_000_000*t.accounts(), t.total[1]); err != nil || said != want {
		return errors.Join(err, fmt.Errorf("PostgreSQL holds %q, want %q", said, want))
	}
	seq, err := t.node.seq(ctx)
	if err != nil || seq != t.total[0] {
		return errors.Join(err, fmt.Errorf("macronode counts %d movements, %d were answered", seq, t.total[0]))
	}
	return nil
}

func (t *transfers) report() {
	rows := [][]string{}
	for _, n := range clients {
		for _, who := range []struct {
			name string
			runs map[int]sample.Series
		}{{"macronode", t.ours}, {"service over PostgreSQL", t.service}, {"pgbench, same function", t.pgbench}} {
			s := who.runs[n]
			rows = append(rows, []string{fmt.Sprint(n), who.name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
				times(t.ours[n].Ratio(s, sample.Rate)), times(s.Ratio(t.ours[n], sample.CPU)), percent(s)})
		}
	}
	t.page.Sections = append(t.page.Sections, sheet.Section{Title: "Transfers over HTTP", Text: strings.ReplaceAll(fmt.Sprintf(transfersText, sheet.Count(t.accounts()), t.pool), "¢", "`"),
		Head: []string{"clients", "who", "requests/s", "p50 µs", "p99 µs", "CPU µs each", "ours is faster by", "takes more CPU by", "strangers"}, Rows: rows})
	goal := func(what string, want sheet.Bound, ours, other sample.Series, f sample.Figure) {
		t.page.Goals = append(t.page.Goals, sheet.Goal{What: what, Want: want, Got: ours.Ratio(other, f).Median, Unit: "×"})
	}
	faster := func(what string, least float64, ours, other sample.Series) {
		goal(what, sheet.Least(least), ours, other, sample.Rate)
		t.page.Goals[len(t.page.Goals)-1].CPU = other.Ratio(ours, sample.CPU).Median
	}
	faster("transfers/s over HTTP, 64 clients: ours against the service over PostgreSQL", 5, t.ours[64], t.service[64])
	faster("the same against bare pgbench, which has no HTTP", 3.5, t.ours[64], t.pgbench[64])
	goal("p99 at 256 clients: ours against the service over PostgreSQL", sheet.Most(0.25), t.ours[256], t.service[256], sample.P99)
	goal("p50 at 1 client: ours against bare pgbench", sheet.Most(0.8), t.ours[1], t.pgbench[1], sample.P50)
}

const transfersText = `One ¢POST /v1/transfer¢ a request, durable before the answer, over keep-alive HTTP/1.1 on loopback; each client sends its next request when the last is
answered. One load generator, one thread, checks the status and the key of every answer; at the end both ledgers are held against what it counted. Accounts, amounts,
keys and memos are the same for all: each client pays from 16 accounts of its own to any of %s.

* **macronode**: ¢macronode serve¢ with its full contract: API key, strict parsing, nonce, ceilings, idempotency window, double entry, hash chain, receipt with its
  hash, second fold, metrics, fdatasync.
* **service over PostgreSQL**: Go's net/http and a pgx pool of %d connections over a unix socket, prepared statements; the same API key, the same checks of the body. A
  transfer is one round trip, one call of a PL/pgSQL function and one transaction: key, nonce, both balances, receipt. It is spared what would cost it more: no hash
  chain, numbers with gaps, no ceilings, 63-bit amounts, one row for an account's nonce and balance, no secondary index. Pools of 8 to 128 were tried; 64 was best.
* **pgbench, same function**: ¢pgbench -M prepared -j 2¢ calls the function over the unix socket; percentiles are from its log.

The time of a request is from its sending to the reading of its answer. *Strangers* is the share of the machine that processes took which are no part of this.`

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// A kind is the form of the requests.
type kind struct {
	conns  int
	items  int  // transfers per request
	spread int  // accounts that a connection pays from, in turn
	random bool // ids of events are in no order
}

// singles have one transfer per request; batches pay from each account once.
func singles(conns int) kind { return kind{conns: conns, items: 1, spread: 16} }

var (
	clients = [...]int{1, 64, 256}
	batches = kind{conns: 16, items: 50, spread: 64}
)

// counted converts a sample of requests to one of transfers. Its times stay those of requests.
func (k kind) counted(s sample.Sample) sample.Sample {
	n := uint64(k.items)
	s.All, s.Counted, s.Over = n*s.All, n*s.Counted, n*s.Over
	return s
}

// transfers measures single transfers and then batches, in turn: macronode over HTTP, the service
// over PostgreSQL, and pgbench calling the same function directly.
type transfers struct {
	*bench
	cluster *cluster.Cluster
	node    *node
	peer    *peer
	first   int // the next account without a payment
	turn    int
	total   [2]uint64 // answers of node and peer

	ours, service, pgbench map[kind]sample.Series
}

func (b *bench) transfers(ctx context.Context) (err error) {
	t := &transfers{bench: b, ours: map[kind]sample.Series{}, service: map[kind]sample.Series{}, pgbench: map[kind]sample.Series{}}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.open(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		if _, err := t.cluster.SQL(ctx, "checkpoint"); err != nil {
			return err
		}
		for _, k := range t.kinds() {
			if err := t.round(ctx, k); err != nil {
				return fmt.Errorf("round %d, %d clients, %d a request: %w", round+1, k.conns, k.items, err)
			}
		}
		b.say("transfers over HTTP, round %d of %d", round+1, b.rounds)
	}
	if err := t.audit(ctx); err != nil {
		return err
	}
	t.report()
	t.reportBatches()
	return nil
}

func (t *transfers) kinds() (all []kind) {
	for _, n := range clients {
		all = append(all, singles(n))
	}
	return append(all, batches)
}

// accounts returns the number of accounts of all rounds: three programs pay in each, two of them
// on one ledger.
func (t *transfers) accounts() int {
	need := 0
	for _, k := range t.kinds() {
		need += 3 * k.conns * k.spread
	}
	return max(100_000, t.rounds*need)
}

func (t *transfers) open(ctx context.Context) (err error) {
	if t.cluster, err = t.postgres(ctx, "cluster"); err != nil {
		return err
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
func (t *transfers) round(ctx context.Context, k kind) error {
	s, err := t.load(ctx, t.node.http, k, func() (time.Duration, error) { return gauge.CPU(t.node.pid()) })
	if err != nil {
		return fmt.Errorf("ours: %w", err)
	}
	t.ours[k], t.total[0] = append(t.ours[k], s), t.total[0]+s.All
	if s, err = t.load(ctx, t.peer.http, k, t.both); err != nil {
		return fmt.Errorf("service over PostgreSQL: %w", err)
	}
	t.service[k], t.total[1] = append(t.service[k], s), t.total[1]+s.All
	if s, err = t.bare(ctx, k); err != nil {
		return fmt.Errorf("pgbench: %w", err)
	}
	t.pgbench[k], t.total[1] = append(t.pgbench[k], s), t.total[1]+s.All
	return nil
}

// pays reserves accounts for a turn, and a prefix for its keys.
func (t *transfers) pays(k kind) (first int, salt string) {
	first = t.first
	t.first += k.conns * k.spread
	t.turn++
	return first, fmt.Sprintf("t%d", t.turn)
}

func (t *transfers) load(ctx context.Context, addr string, k kind, servers func() (time.Duration, error)) (sample.Sample, error) {
	first, salt := t.pays(k)
	args := []string{"-addr", addr, "-key-file", t.node.keyFile(), "-conns", fmt.Sprint(k.conns),
		"-accounts", fmt.Sprint(t.accounts()), "-first", fmt.Sprint(first), "-spread", fmt.Sprint(k.spread),
		"-salt", salt, "-warm", t.warm.String(), "-time", t.time.String()}
	if k.items > 1 {
		args = append(args, "-batch", fmt.Sprint(k.items))
	}
	s, err := t.sampled(exec.CommandContext(ctx, t.binary("load"), args...), servers)
	return k.counted(s), err
}

// database returns the CPU of PostgreSQL; both includes the service.
func (t *transfers) database() (time.Duration, error) { return databaseCPU(t.cluster) }

func (t *transfers) both() (time.Duration, error) { return t.peer.cpu(t.cluster) }

// audit compares each ledger's totals with the counts.
func (t *transfers) audit(ctx context.Context) error {
	reply, err := t.cluster.SQL(ctx, "select count(*) from receipt where outcome = 0",
		"select sum(balance) from account", "select sum(nonce) from account")
	if want := fmt.Sprintf("%d\n%d\n%d", t.total[1], 1_000_000_000*t.accounts(), t.total[1]); err != nil || reply != want {
		return errors.Join(err, fmt.Errorf("PostgreSQL holds %q, want %q", reply, want))
	}
	seq, err := t.node.seq(ctx)
	if err != nil || seq != t.total[0] {
		return errors.Join(err, fmt.Errorf("macronode counts %d movements, %d were answered", seq, t.total[0]))
	}
	return nil
}

// A side is a program and its samples.
type side struct {
	name string
	runs map[kind]sample.Series
}

func (t *transfers) sides() []side {
	return []side{{"macronode", t.ours}, {"service over PostgreSQL", t.service}, {"pgbench, same function", t.pgbench}}
}

// row compares one side's transfers with macronode's.
func (t *transfers) row(other side, k kind) []string {
	s, ours := other.runs[k], t.ours[k]
	return []string{other.name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
		times(ours.Ratio(s, sample.Rate)), times(s.Ratio(ours, sample.CPU)), percent(s)}
}

// faster returns a goal for the throughput relative to others in the same rounds.
func (t *transfers) faster(what string, least float64, ours, other sample.Series) {
	t.page.Goals = append(t.page.Goals, sheet.Goal{What: what, Want: sheet.Least(least), Got: ours.Ratio(other, sample.Rate).Median, Unit: "×",
		CPU: other.Ratio(ours, sample.CPU).Median})
}

func (t *transfers) report() {
	rows := [][]string{}
	for _, n := range clients {
		for _, other := range t.sides() {
			rows = append(rows, append([]string{fmt.Sprint(n)}, t.row(other, singles(n))...))
		}
	}
	t.page.Sections = append(t.page.Sections, sheet.Section{Title: "Transfers over HTTP", Text: strings.ReplaceAll(fmt.Sprintf(transfersText, sheet.Count(t.accounts()), t.pool), "¢", "`"),
		Head: []string{"clients", "server", "requests/s", "p50 µs", "p99 µs", "CPU µs each", "ours is faster by", "takes more CPU by", "other load"}, Rows: rows})
	most := func(what string, want float64, ours, other sample.Series, f sample.Figure) {
		t.page.Goals = append(t.page.Goals, sheet.Goal{What: what, Want: sheet.Most(want), Got: ours.Ratio(other, f).Median, Unit: "×"})
	}
	few, many, one := singles(64), singles(256), singles(1)
	t.faster("transfers/s over HTTP, 64 clients: ours against the service over PostgreSQL", 5, t.ours[few], t.service[few])
	t.faster("the same against bare pgbench, which has no HTTP", 3.5, t.ours[few], t.pgbench[few])
	most("p99 at 256 clients: ours against the service over PostgreSQL", 0.25, t.ours[many], t.service[many], sample.P99)
	most("p50 at 1 client: ours against bare pgbench", 0.8, t.ours[one], t.pgbench[one], sample.P50)
}

func (t *transfers) reportBatches() {
	rows := [][]string{}
	for _, other := range t.sides() {
		row, single := t.row(other, batches), times(t.ours[batches].Ratio(other.runs[singles(64)], sample.Rate))
		rows = append(rows, slices.Insert(row, len(row)-1, single))
	}
	t.page.Sections = append(t.page.Sections, sheet.Section{Title: fmt.Sprintf("Batches of %d transfers over HTTP", batches.items),
		Text: strings.ReplaceAll(batchesText, "¢", "`"), Rows: rows,
		Head: []string{"server", "transfers/s", "p50 µs of a batch", "p99 µs of a batch", "CPU µs a transfer", "ours is faster by", "takes more CPU by",
			"ours is faster than its single transfers by", "other load"}})
	t.faster("transfers/s in batches of 50 over 16 connections: ours against the service over PostgreSQL", 4, t.ours[batches], t.service[batches])
	t.faster("the same against bare pgbench", 4, t.ours[batches], t.pgbench[batches])
	t.faster("the same against bare pgbench with one transfer a transaction, 64 clients", 30, t.ours[batches], t.pgbench[singles(64)])
}

const batchesText = `16 connections, in the same rounds as above. Each batch is atomic: 50 transfers from 50 accounts of the connection to any account. Each response must have 50 receipts. Single transfers are those of
64 clients above.

* **macronode**: ¢POST /v1/batch¢ with ¢"atomic": true¢, with all checks. A batch is one frame; its response has a receipt with its hash for each transfer.
* **service over PostgreSQL**: the same request, strict checks and receipts; one round trip, one call of a PL/pgSQL function and one transaction: the key, all rows locked
  in order, then the receipt and both balances of each transfer. It does not report which transfer is rejected. Five statements over all 50 at once took as much CPU.
* **pgbench, same function**: ¢pgbench -M prepared -j 2¢ calls the function over the unix socket; it returns the receipts' numbers. The server makes up the arguments.`

const transfersText = `Each request is one ¢POST /v1/transfer¢, durable before the response, over keep-alive HTTP/1.1 on loopback. Each client sends its next request when the last one is
answered. The load generator has one thread. It checks the status and the key of every response; at the end both ledgers are compared with its counts. Accounts, amounts,
keys and memos are the same for all: each client pays from 16 accounts of its own to any of %s.

* **macronode**: ¢macronode serve¢ with all checks: API key, strict parsing, nonce, ceilings, idempotency window, double entry, hash chain, receipt with its
  hash, a second state for reads, fdatasync. It also writes the index of keys, refs and statements, the audit file, snapshots and metrics.
* **service over PostgreSQL**: Go's net/http and a pgx pool of %d connections over a unix socket, prepared statements; the same API key, the same checks of the body. A
  transfer is one round trip, one call of a PL/pgSQL function and one transaction: key, nonce, both balances, receipt. It lacks what would cost more: it has no hash
  chain, numbers with gaps, no ceilings, 63-bit amounts, one row for the nonce and the balance of an account, and no secondary index. It has none
  of the statements, lists and audit lines that macronode writes meanwhile. Pools of 8 to 128 were tried; 64 was best.
* **pgbench, same function**: ¢pgbench -M prepared -j 2¢ calls the function over the unix socket; percentiles are from its log.

The time of a request is from its sending to the reading of its response. *Other load* is the share of the machine that other processes took.`

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

const parties = 10 // accounts that pay each other in turn

// reading is one way to read a statement: a number of entries, in bytes.
type reading struct {
	name string
	read func(context.Context, *counter) error
	used func() (time.Duration, error)
	runs sample.Series
	size int
}

// statement reads a long statement completely, in turn: macronode in each format, and the same
// rows from PostgreSQL.
func (b *bench) statement(ctx context.Context) (err error) {
	n, stopNode, err := b.stated(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopNode()) }()
	c, err := b.listed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	ours := func() (time.Duration, error) { return gauge.CPU(n.pid()) }
	theirs := func() (time.Duration, error) { return databaseCPU(c) }
	all := []*reading{
		{name: "macronode, JSON in pages of 1,000", read: n.pages, used: ours},
		{name: "macronode, NDJSON", read: n.export("ndjson"), used: ours},
		{name: "macronode, CSV", read: n.export("csv"), used: ours},
		{name: "PostgreSQL, CSV by `copy` to psql", used: theirs, read: func(ctx context.Context, to *counter) error {
			return c.Copy(ctx, copyEntries, to)
		}},
	}
	for round := range b.rounds {
		for _, r := range all {
			if err := b.readAll(ctx, r); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, r.name, err)
			}
		}
	}
	b.say("statements of %s entries", sheet.Count(b.lines))
	rows := [][]string{}
	for _, r := range all {
		ms := func(f sample.Figure) string {
			return spread1(r.runs.Spread(func(s *sample.Sample) float64 { return 1000 * f(s) }), "")
		}
		rows = append(rows, []string{r.name, ms(took), ms(spent), cell(r.runs, sample.CPU), sheet.Number(float64(r.size) / (1 << 20)),
			times(all[3].runs.Ratio(r.runs, took)), times(all[3].runs.Ratio(r.runs, spent)), percent(r.runs)})
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: fmt.Sprintf("A statement of %s entries", sheet.Count(b.lines)),
		Text: strings.ReplaceAll(fmt.Sprintf(statementText, sheet.Count(parties*b.lines/2)), "¢", "`"), Rows: rows,
		Head: []string{"what", "ms", "CPU ms", "CPU µs an entry", "MiB", "faster than PostgreSQL by", "less CPU by", "other load"}})
	return nil
}

const statementText = `Ten accounts pay each other in turn, in a ledger of %s movements. The statement of one of them is read whole and in order over one connection; its entries lie among those of all others. CPU is
that of the server.

* **macronode**: ¢GET /v1/accounts/{account}/entries¢: page after page, each from the number at which the last one ended, and as one stream of each kind.
* **PostgreSQL**: a table of entries with the same columns. Its primary key is the account, asset and number. It was written in the order of the movements, then analyzed.
  ¢copy (select … order by seq) to stdout (format csv)¢ by psql over the unix socket, including its start. It has no HTTP and no authentication.`

// stated is a node whose first account has the statement.
func (b *bench) stated(ctx context.Context) (n *node, stop func() error, err error) {
	data := filepath.Join(b.work, "statement")
	if err := os.MkdirAll(journal(data), 0o700); err != nil {
		return nil, nil, err
	}
	// Each frame has two entries, but the first of each account has one of them: half a
	// round more of transfers makes up for it.
	frames := parties*b.lines/2 + parties/2
	if _, err := b.probeIn(ctx, journal(data), "write", "-accounts", parties, "-count", frames, "-tail", 0); err != nil {
		return nil, nil, err
	}
	config, err := b.config(data, 1000, 3*frames, "24h")
	if err != nil {
		return nil, nil, err
	}
	if n, err = b.serve(ctx, config, data); err != nil {
		return nil, nil, err
	}
	if _, err = n.indexed(ctx, uint64(frames)); err == nil {
		_, err = n.quiet(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, n.stop())
	}
	return n, n.stop, nil
}

// listed is a cluster with the same entries.
func (b *bench) listed(ctx context.Context) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, filepath.Join(b.work, "listed"), settings...)
	if err != nil {
		return nil, err
	}
	_, err = c.SQL(ctx, `create table entry (account text, asset text, seq bigint, txid uuid not null, ts timestamptz not null, op text not null,
		direction text not null, amount bigint not null, balance bigint not null, held bigint not null, other text, hold uuid, nonce bigint,
		ref text, memo text, primary key (account, asset, seq))`,
		fmt.Sprintf(`insert into entry select 'acct:' || lpad(((seq + side) %% %d)::text, 8, '0'), 'EUR/2', seq, gen_random_uuid(), clock_timestamp(),
			'transfer', case side when 0 then 'debit' else 'credit' end, 7, 1000000000, 0, 'acct:' || lpad(((seq + 1 - side) %% %d)::text, 8, '0'), null,
			seq / %d + 1, null, null from generate_series(0, %d) seq, generate_series(0, 1) side`, parties, parties, parties, parties*b.lines/2-1),
		"vacuum analyze entry", "checkpoint")
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

const copyEntries = `copy (select seq, txid, ts, op, direction, asset, amount, balance, held, other, hold, nonce, ref, memo from entry
	where account = 'acct:00000000' and asset = 'EUR/2' order by seq) to stdout (format csv)`

// readAll reads a statement once, and counts what comes.
func (b *bench) readAll(ctx context.Context, r *reading) error {
	otherLoad, err := watch()
	if err != nil {
		return err
	}
	before, err := r.used()
	if err != nil {
		return err
	}
	var got counter
	began := time.Now()
	if err := r.read(ctx, &got); err != nil {
		return err
	}
	s := sample.Sample{Took: time.Since(began), Over: uint64(got.entries)}
	after, err := r.used()
	if err != nil {
		return err
	}
	if got.entries != b.lines {
		return fmt.Errorf("%d entries came of %d", got.entries, b.lines)
	}
	s.CPU = after - before
	if s.OtherLoad, err = otherLoad(s.CPU); err != nil {
		return err
	}
	b.noise = append(b.noise, s.OtherLoad)
	r.size, r.runs = got.bytes, append(r.runs, s)
	return nil
}

// counter is what came: entries, in so many bytes.
type counter struct{ entries, bytes int }

// Write counts lines, each of which is an entry.
func (c *counter) Write(p []byte) (int, error) {
	c.entries, c.bytes = c.entries+bytes.Count(p, []byte{'\n'}), c.bytes+len(p)
	return len(p), nil
}

const entriesPath = "/v1/accounts/acct%3A00000000/entries"

// pages reads one page after the other.
func (n *node) pages(ctx context.Context, to *counter) error {
	for after := "0"; after != ""; {
		err := n.get(ctx, entriesPath+"?limit=1000&after_seq="+after, func(r io.Reader) error {
			page, err := io.ReadAll(r)
			to.entries, to.bytes = to.entries+bytes.Count(page, []byte(`{"seq":`)), to.bytes+len(page)
			_, rest, _ := bytes.Cut(page[max(0, len(page)-200):], []byte(`"next_after_seq":`))
			next, _, _ := bytes.Cut(rest, []byte(","))
			after = string(next)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// export reads a stream.
func (n *node) export(format string) func(context.Context, *counter) error {
	return func(ctx context.Context, to *counter) error {
		err := n.get(ctx, entriesPath+"?format="+format, func(r io.Reader) error {
			_, err := io.Copy(to, r)
			return err
		})
		if format == "csv" {
			to.entries-- // the names of the columns
		}
		return err
	}
}

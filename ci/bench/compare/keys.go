package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

const askAgain = 20_000 // old keys

// oldKeys are two nodes with many accounts: one has all keys in its window, the other has most in
// its index, within their TTL.
type oldKeys struct {
	*bench
	plain, old keyed
	asks       string // file of old's earlier requests
	again      sample.Series
	first      int // the next account without a payment
	turn       int
	bound      int64      // memory bound of old
	facts      [][]string // of old
}

// keyed is one of the nodes.
type keyed struct {
	*node
	name  string
	args  []any // for its journal
	keys  int   // largest number in its window
	paid  uint64
	loads sample.Series
}

// keys measures a node with many more keys than its window.
func (b *bench) keys(ctx context.Context) (err error) {
	k := &oldKeys{bench: b, asks: filepath.Join(b.work, "asks")}
	k.first = b.many - b.rounds*64*16 // earlier accounts have paid
	small := min(1_000_000, b.old/2)
	if k.first < 1 || b.old < b.many {
		return fmt.Errorf("wants more than %d accounts, and a key for each", b.many-k.first)
	}
	room := 2 * (b.many + int(float64(b.rounds)*(b.warm+b.time).Seconds()*60_000)) // no key leaves it
	k.plain = keyed{name: "plain", keys: room, args: []any{"-count", b.many}, paid: uint64(b.many)}
	k.old = keyed{name: "old", keys: small, paid: uint64(b.old), args: []any{"-count", b.old, "-payers", k.first, "-window", small,
		"-span", "20h", "-asks", askAgain, "-asks-file", k.asks}}
	defer func() { err = errors.Join(err, k.close()) }()
	for _, n := range []*keyed{&k.plain, &k.old} {
		if err := k.open(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	for round := range b.rounds {
		if err := k.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		b.say("old keys, round %d of %d", round+1, b.rounds)
	}
	if err := k.audit(ctx); err != nil {
		return err
	}
	k.report()
	return nil
}

// open makes a journal with a snapshot at its end, and serves it until the index, which is
// missing, is complete.
func (k *oldKeys) open(ctx context.Context, n *keyed) error {
	data := filepath.Join(k.work, n.name)
	if err := os.MkdirAll(journal(data), 0o700); err != nil {
		return err
	}
	wrote, err := k.probeIn(ctx, journal(data), "write", append([]any{"-accounts", k.many, "-tail", 0}, n.args...)...)
	if err != nil {
		return err
	}
	k.say("%s has a journal of %s frames", n.name, sheet.Count(int(n.paid)))
	config, err := k.config(data, k.many, n.keys, "24h")
	if err != nil {
		return err
	}
	if n.node, err = k.serve(ctx, config, data); err != nil {
		return err
	}
	built, err := n.indexed(ctx, n.paid)
	if err != nil {
		return err
	}
	merged, err := n.quiet(ctx)
	if err != nil {
		return err
	}
	k.say("%s is ready, and has indexed %s keys", n.name, sheet.Count(int(n.paid)))
	if n == &k.plain {
		return nil
	}
	if k.bound, err = k.bench.bound(ctx, config); err != nil {
		return err
	}
	now, _, err := gauge.Memory(n.pid())
	k.fact("journal, a frame", sheet.Number(wrote.Bytes)+" B")
	k.fact("start from the snapshot until ready", sheet.Number(n.took.Seconds())+" s")
	k.fact("then until the index was made of all frames", sheet.Number(built.Seconds())+" s")
	k.fact("that is", sheet.Number(float64(n.paid)/built.Seconds())+" frames/s")
	k.fact("then until it was quiet: tables are merged", sheet.Number(merged.Seconds())+" s")
	k.fact("resident then", mib(now))
	return err
}

func (k *oldKeys) fact(what, is string) { k.facts = append(k.facts, []string{what, is}) }

// round is one turn of each.
func (k *oldKeys) round(ctx context.Context) error {
	for _, n := range []*keyed{&k.plain, &k.old} {
		k.turn++
		s, err := k.load(ctx, n, "-first", fmt.Sprint(k.first), "-salt", fmt.Sprintf("t%d", k.turn))
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		n.loads, n.paid = append(n.loads, s), n.paid+s.All
	}
	k.first += 64 * 16
	s, err := k.load(ctx, &k.old, "-asks", k.asks)
	k.again = append(k.again, s)
	return err
}

func (k *oldKeys) load(ctx context.Context, n *keyed, more ...string) (sample.Sample, error) {
	args := append([]string{"-addr", n.http, "-key-file", n.keyFile(), "-conns", "64", "-accounts", fmt.Sprint(k.many), "-spread", "16",
		"-warm", k.warm.String(), "-time", k.time.String()}, more...)
	return k.sampled(exec.CommandContext(ctx, k.binary("load"), args...), func() (time.Duration, error) { return gauge.CPU(n.pid()) })
}

// audit compares the ledgers with the counts, stops both nodes, and measures the files of old.
func (k *oldKeys) audit(ctx context.Context) error {
	for _, n := range []*keyed{&k.plain, &k.old} {
		if seq, err := n.seq(ctx); err != nil || seq != n.paid {
			return errors.Join(err, fmt.Errorf("%s counts %d movements, %d were answered", n.name, seq, n.paid))
		}
	}
	now, most, err := gauge.Memory(k.old.pid())
	if err != nil {
		return err
	}
	data := k.old.data
	if err := k.close(); err != nil {
		return err
	}
	tables, err := size(filepath.Join(data, "index"))
	if err != nil {
		return err
	}
	keys, err := k.probeIn(ctx, filepath.Join(data, "index"), "tables")
	if err != nil {
		return err
	}
	k.fact("resident after the load", mib(now))
	k.fact("resident at most, since the start", mib(most))
	k.fact("bound that `macronode config check` states", mib(k.bound))
	k.fact("index on disk, a movement", sheet.Number(float64(tables)/float64(k.old.paid))+" B")
	k.fact("of it the key", sheet.Number(keys.Bytes/float64(k.old.paid))+" B")
	k.page.Goals = append(k.page.Goals, sheet.Goal{What: fmt.Sprintf("resident at most with %s accounts and %s keys within their TTL, against the stated bound",
		sheet.Count(k.many), sheet.Count(k.bench.old)), Want: sheet.Most(1), Got: float64(most) / float64(k.bound), Unit: "×"})
	return nil
}

func (k *oldKeys) close() (err error) {
	for _, n := range []*keyed{&k.plain, &k.old} {
		if n.node != nil {
			err = errors.Join(err, n.stop())
			n.node = nil
		}
	}
	return err
}

func (k *oldKeys) report() {
	row := func(what string, s sample.Series) []string {
		return []string{what, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU), times(s.Ratio(k.plain.loads, sample.CPU)), percent(s)}
	}
	rows := [][]string{row("transfers, all keys in the window", k.plain.loads), row("transfers, old keys in the index", k.old.loads), row("replays of old keys", k.again)}
	text := strings.ReplaceAll(fmt.Sprintf(keysText, sheet.Count(k.many), sheet.Count(k.old.keys), sheet.Count(k.bench.old), sheet.Count(askAgain)), "¢", "`")
	k.page.Sections = append(k.page.Sections,
		sheet.Section{Title: "More keys than the window holds", Text: text, Rows: rows,
			Head: []string{"64 clients", "requests/s", "p50 µs", "p99 µs", "CPU µs each", "CPU against all in the window", "other load"}},
		sheet.Section{Title: fmt.Sprintf("A node with %s keys within their TTL", sheet.Count(k.bench.old)), Text: "The same node, once.",
			Head: []string{"what", "is"}, Rows: k.facts})
	k.page.Goals = append(k.page.Goals, sheet.Goal{What: "CPU a transfer with old keys in the index, against all keys in the window", Want: sheet.Most(1.5),
		Got: k.old.loads.Ratio(k.plain.loads, sample.CPU).Median, Unit: "×"})
}

const keysText = `Two processes of ¢macronode serve¢ with %s accounts take turns. The first has all keys in its window. The second has a window of %s keys, and %s keys within their TTL, spread
over 20 hours. All but half a window of them are only in the index, so each new key is looked up there before the decision. Its journal was written directly, in the format of a node.
The replays send %s of the keys that are only in the index, at random. Each response must have the bytes of the first one, as rendered when the journal was written.`

func mib(n int64) string { return sheet.Number(float64(n)/(1<<20)) + " MiB" }

// size is the bytes of all files below a directory.
func size(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, f os.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		is, err := f.Info()
		if err == nil {
			bytes += is.Size()
		}
		return err
	})
	return bytes, err
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// probe runs one measurement in its own process and directory.
func (b *bench) probe(ctx context.Context, what string, args ...any) (sample.Sample, error) {
	dir := filepath.Join(b.work, "probe")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return sample.Sample{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the directory is removed at the end
	return b.probeIn(ctx, dir, what, args...)
}

func (b *bench) probeIn(ctx context.Context, dir, what string, args ...any) (sample.Sample, error) {
	reply := []string{what, "-dir", dir, "-warm", b.warm.String(), "-time", b.time.String()}
	for _, a := range args {
		reply = append(reply, fmt.Sprint(a))
	}
	return b.sampled(exec.CommandContext(ctx, b.binary("probe"), reply...), none)
}

// process measures without HTTP, in turn: macronode, the same without syncs, pebble.
func (b *bench) process(ctx context.Context) error {
	callers := [...]int{64, 256}
	parties := [...]struct{ what, name string }{{"ours", "macronode"}, {"nosync", "macronode without syncs"}, {"pebble", "pebble, synced"}}
	runs := map[string]sample.Series{}
	at := func(what string, n int) string { return fmt.Sprint(what, n) }
	for round := range b.rounds {
		for _, n := range callers {
			for _, w := range parties {
				s, err := b.probe(ctx, w.what, "-callers", n)
				if err != nil {
					return fmt.Errorf("round %d, %d callers: %w", round+1, n, err)
				}
				runs[at(w.what, n)] = append(runs[at(w.what, n)], s)
			}
		}
		b.say("in process, round %d of %d", round+1, b.rounds)
	}
	rows := [][]string{}
	for _, n := range callers {
		ours := runs[at("ours", n)]
		for _, w := range parties {
			s := runs[at(w.what, n)]
			bytes := ""
			if w.what == "ours" {
				bytes = cell(s, sample.Bytes)
			}
			rows = append(rows, []string{fmt.Sprint(n), w.name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
				times(ours.Ratio(s, sample.Rate)), times(s.Ratio(ours, sample.CPU)), bytes, percent(s)})
		}
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "In process, without HTTP", Text: processText,
		Head: []string{"callers", "system", "transfers/s", "p50 µs", "p99 µs", "CPU µs each", "ours is faster by", "takes more CPU by", "journal bytes each", "other load"}, Rows: rows})
	against := func(what string, least float64, n int, other string) {
		ours, theirs := runs[at("ours", n)], runs[at(other, n)]
		b.page.Goals = append(b.page.Goals, sheet.Goal{What: what, Want: sheet.Least(least), Got: ours.Ratio(theirs, sample.Rate).Median,
			Unit: "×", CPU: theirs.Ratio(ours, sample.CPU).Median})
	}
	against("transfers/s in process, 64 callers: ours against pebble with sync", 2.5, 64, "pebble")
	against("the same, 256 callers", 5, 256, "pebble")
	against("the same, 64 callers, against ours without syncs", 0.85, 64, "nosync")
	b.page.Goals = append(b.page.Goals, sheet.Goal{What: "bytes of journal a transfer", Want: sheet.Most(400),
		Got: runs[at("ours", 256)].Spread(sample.Bytes).Median, Unit: " B"})
	return nil
}

const processText = `There are 100,000 accounts. Each caller pays from 16 of its own, to any account. CPU is that of the whole process, including the callers.

* **macronode**: dispatcher, loop, node, journal with chain and fdatasync, a second state for reads, rendered receipt, and the index of keys, refs, statements and
  lists. It is the whole durable path without HTTP and its parsing.
* **macronode without syncs**: the same, but the sync of the journal does nothing: the limit without the disk.
* **pebble, synced**: under the locks of both accounts the key is looked up and three rows are read. One batch writes two balances, the nonce and the
  key with a receipt of 128 bytes. The batch is applied under the locks. The wait for its sync is without them, so that syncs are shared. The memtable has 64 MiB; other options have their defaults.
  It has no chain, no rendered receipt, no ceilings, no second state, and neither statements nor lists.`

// scale measures whether a commit costs more with more data.
func (b *bench) scale(ctx context.Context) error {
	var one, many sample.Series
	for round := range b.rounds {
		for _, side := range []struct {
			accounts int
			to       *sample.Series
		}{{1, &one}, {b.many, &many}} {
			s, err := b.probe(ctx, "issue", "-callers", 64, "-accounts", side.accounts)
			if err != nil {
				return fmt.Errorf("round %d, %d accounts: %w", round+1, side.accounts, err)
			}
			*side.to = append(*side.to, s)
		}
		b.say("scale, round %d of %d", round+1, b.rounds)
	}
	long, err := b.probe(ctx, "flat", "-callers", 256, "-count", b.flat)
	if err != nil {
		return fmt.Errorf("long run: %w", err)
	}
	row := func(n int, s sample.Series) []string {
		return []string{sheet.Count(n), cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.CPU), times(s.Ratio(one, sample.CPU)), percent(s)}
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "Cost of a commit as the ledger grows", Text: scaleText,
		Head: []string{"accounts and keys before", "commits/s", "p50 µs", "CPU µs each", "CPU against one account", "other load"},
		Rows: [][]string{row(1, one), row(b.many, many)}})
	b.long(long)
	b.page.Goals = append(b.page.Goals, sheet.Goal{What: fmt.Sprintf("CPU a commit at %s accounts, against one", sheet.Count(b.many)),
		Want: sheet.Most(1.5), Got: many.Ratio(one, sample.CPU).Median, Unit: "×"})
	return nil
}

// long reports the long run in ten parts.
func (b *bench) long(s sample.Sample) {
	parts := sample.Series(s.Tenths)
	rows := [][]string{}
	for i := range parts {
		rows = append(rows, []string{fmt.Sprint(i + 1), sheet.Number(sample.Rate(&parts[i])), fmt.Sprintf("%.1f", sample.CPU(&parts[i]))})
	}
	half := len(parts) / 2
	ratio := parts[half:].Spread(sample.CPU).Median / parts[:half].Spread(sample.CPU).Median
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: fmt.Sprintf("%s transfers in one go", sheet.Count(int(s.Counted))),
		Text: fmt.Sprintf("256 callers, in process, durable; keys have a TTL of ten seconds, so that keys are added and evicted all the time. The p99 of all is %s µs, the maximum %s µs.",
			sheet.Number(sample.P99(&s)), sheet.Number(float64(s.Max.Microseconds()))),
		Head: []string{"tenth", "transfers/s", "CPU µs each"}, Rows: rows})
	b.page.Goals = append(b.page.Goals, sheet.Goal{What: "CPU a transfer, second half of the long run against the first", Want: sheet.Most(1.15), Got: ratio, Unit: "×"})
}

const scaleText = `In process, 64 callers, durable. The operation is an issue, the only one that is possible with a single account; with many, each goes to any of them. Every account
was paid before, under a key of its own that is still in the window. Both sides have the same code, and a ledger of just the size that they need.`

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

const fewAccounts = 1000

// journal is where a node keeps its journal below its directory.
func journal(data string) string { return filepath.Join(data, "journal") }

// recovery measures how long a start takes: over a journal of many frames, in process
// and by the binary, and over nothing.
func (b *bench) recovery(ctx context.Context) error {
	data := filepath.Join(b.work, "recovery")
	if err := os.MkdirAll(journal(data), 0o700); err != nil {
		return err
	}
	args := []any{"-accounts", fewAccounts, "-count", b.frames}
	wrote, err := b.probeIn(ctx, journal(data), "write", args...)
	if err != nil {
		return err
	}
	var folded sample.Series
	for range b.rounds {
		s, err := b.probeIn(ctx, journal(data), "recover", args...)
		if err != nil {
			return err
		}
		folded = append(folded, s)
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "Recovery", Text: fmt.Sprintf(recoveryText, sheet.Count(b.frames),
		sheet.Number(wrote.Bytes), sheet.Count(fewAccounts)), Head: []string{"what", "s", "CPU s"}, Rows: [][]string{
		{"in process: read, check every root, fold, copy for the follower, write the tail anew", spread1(folded.Spread(took), ""), spread1(folded.Spread(spent), "")}}})
	b.page.Goals = append(b.page.Goals, sheet.Goal{What: fmt.Sprintf("recovery of %s frames, in process", sheet.Count(b.frames)),
		Want: sheet.Most(2), Got: folded.Spread(took).Median, Unit: " s"})
	b.say("recovered in process")
	config, err := b.config(data, fewAccounts+1000, b.frames+1000, "24h")
	if err != nil {
		return err
	}
	full, err := b.starts(ctx, config, func(int) string { return data })
	if err != nil {
		return err
	}
	empty, err := b.startsEmpty(ctx)
	if err != nil {
		return err
	}
	b.say("recovered by the binary")
	last := &b.page.Sections[len(b.page.Sections)-1]
	last.Rows = append(last.Rows,
		[]string{"`macronode serve` on it, from its start until `/readyz` says 200", spread1(full.Spread(took), ""), spread1(full.Spread(spent), "")},
		[]string{"`macronode serve` on an empty directory with the default configuration", spread1(empty.Spread(took), ""), spread1(empty.Spread(spent), "")})
	b.page.Goals = append(b.page.Goals,
		sheet.Goal{What: fmt.Sprintf("`macronode serve` on %s frames until it is ready", sheet.Count(b.frames)), Want: sheet.Most(2), Got: full.Spread(took).Median, Unit: " s"},
		sheet.Goal{What: "`macronode serve` on nothing until it is ready", Want: sheet.Most(0.1), Got: empty.Spread(took).Median, Unit: " s"})
	return nil
}

func took(s *sample.Sample) float64  { return s.Took.Seconds() }
func spent(s *sample.Sample) float64 { return s.CPU.Seconds() }

const recoveryText = "A journal of %s frames, %s B each, in segments: %s accounts, an issue to each and then transfers, each frame with one record. Its files are in the page cache."

// starts serves a directory once a round, until it is ready.
func (b *bench) starts(ctx context.Context, config string, data func(round int) string) (all sample.Series, err error) {
	for round := range b.rounds {
		n, err := b.serve(ctx, config, data(round))
		if err != nil {
			return all, err
		}
		used, err := gauge.CPU(n.pid())
		if err = errors.Join(err, n.stop()); err != nil {
			return all, err
		}
		all = append(all, sample.Sample{Took: n.took, CPU: used})
	}
	return all, nil
}

// startsEmpty serves a new directory each time, with nothing set but where.
func (b *bench) startsEmpty(ctx context.Context) (all sample.Series, err error) {
	for round := range b.rounds {
		data := filepath.Join(b.work, fmt.Sprintf("empty%d", round))
		text := fmt.Sprintf("data: %s\nlisten:\n  http: 127.0.0.1:0\n  admin: 127.0.0.1:0\n", data)
		if err := os.WriteFile(data+".yaml", []byte(text), 0o600); err != nil {
			return all, err
		}
		n, err := b.serve(ctx, data+".yaml", data)
		if err != nil {
			return all, err
		}
		used, err := gauge.CPU(n.pid())
		if err = errors.Join(err, n.stop()); err != nil {
			return all, err
		}
		all = append(all, sample.Sample{Took: n.took, CPU: used})
	}
	return all, nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
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

const fewAccounts = 1000

// journal returns the directory of a node's journal, snapshots that of its snapshots.
func journal(data string) string   { return filepath.Join(data, "journal") }
func snapshots(data string) string { return filepath.Join(data, "snapshots") }

// recovery measures a start: with a long journal, in process and with the binary, from a
// snapshot, and without data; and the verification of that journal.
func (b *bench) recovery(ctx context.Context) error {
	data := filepath.Join(b.work, "recovery")
	if err := os.MkdirAll(journal(data), 0o700); err != nil {
		return err
	}
	tail := b.frames / 100
	args := []any{"-accounts", fewAccounts, "-count", b.frames, "-window", b.frames}
	wrote, err := b.probeIn(ctx, journal(data), "write", append(args, "-span", "20h", "-tail", tail)...)
	if err != nil {
		return err
	}
	aside := data + ".snapshots"
	if err := os.Rename(snapshots(data), aside); err != nil {
		return err
	}
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "Recovery", Text: strings.ReplaceAll(fmt.Sprintf(recoveryText, sheet.Count(b.frames),
		sheet.Number(wrote.Bytes), sheet.Count(fewAccounts), sheet.Count(b.frames), sheet.Count(b.frames/2)), "¢", "`"), Head: []string{"what", "s", "CPU s"}})
	at := len(b.page.Sections) - 1
	say := func(what string, s sample.Series) {
		to := &b.page.Sections[at]
		to.Rows = append(to.Rows, []string{what, spread1(s.Spread(took), ""), spread1(s.Spread(spent), "")})
	}
	goal := func(what string, most float64, s sample.Series) {
		b.page.Goals = append(b.page.Goals, sheet.Goal{What: what, Want: sheet.Most(most), Got: s.Spread(took).Median, Unit: " s"})
	}
	folded, err := b.repeated(func(int) (sample.Sample, error) { return b.probeIn(ctx, journal(data), "recover", args...) })
	if err != nil {
		return err
	}
	say("in process: read, check every root, fold, copy for the follower, write the tail anew", folded)
	goal(fmt.Sprintf("recovery of %s frames, in process", sheet.Count(b.frames)), 2, folded)
	b.say("recovered in process")
	config, err := b.config(data, fewAccounts+1000, b.frames, "24h", "snapshot_interval_bytes: 64GiB") // none is made meanwhile
	if err != nil {
		return err
	}
	checked, err := b.repeated(func(int) (sample.Sample, error) { return b.verify(ctx, config) })
	if err != nil {
		return err
	}
	if err := b.prime(ctx, config, data); err != nil {
		return err
	}
	full, err := b.starts(ctx, config, data)
	if err != nil {
		return err
	}
	say("`macronode serve` on it, from its start until `/readyz` says 200", full)
	goal(fmt.Sprintf("`macronode serve` on %s frames until it is ready", sheet.Count(b.frames)), 2, full)
	if err := errors.Join(os.Remove(snapshots(data)), os.Rename(aside, snapshots(data))); err != nil { // there is an empty one by now
		return err
	}
	short, err := b.starts(ctx, config, data)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("the same with a snapshot of all but the last %s frames", sheet.Count(tail)), short)
	goal("the same with a snapshot of all but a hundredth", 0.3, short)
	empty, err := b.startsEmpty(ctx)
	if err != nil {
		return err
	}
	say("`macronode serve` on an empty directory with the default configuration", empty)
	goal("`macronode serve` on nothing until it is ready", 0.1, empty)
	say("`macronode verify`, a million frames: chain, checksums, each movement against the state before it", checked)
	b.say("recovered by the binary, and verified")
	return nil
}

func took(s *sample.Sample) float64  { return s.Took.Seconds() }
func spent(s *sample.Sample) float64 { return s.CPU.Seconds() }

const recoveryText = `A journal of %s frames, %s B each, in segments: %s accounts, an issue to each and then transfers, spread over 20 hours, each frame with one outcome. The window
has room for %s keys. As in a node with a complete index, records of eviction leave at most %s of them. The files are in the page cache, and the
index is complete when the node starts. The snapshot was made by the same code as in the node.`

// repeated does something once a round.
func (b *bench) repeated(do func(round int) (sample.Sample, error)) (all sample.Series, err error) {
	for round := range b.rounds {
		s, err := do(round)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// prime serves a directory until its index has all: it is there when it is served again.
func (b *bench) prime(ctx context.Context, config, data string) error {
	n, err := b.serve(ctx, config, data)
	if err != nil {
		return err
	}
	if _, err = n.indexed(ctx, uint64(b.frames)); err == nil {
		_, err = n.quiet(ctx)
	}
	return errors.Join(err, n.stop())
}

// verify verifies a closed journal, and reports the time per million frames.
func (b *bench) verify(ctx context.Context, config string) (s sample.Sample, err error) {
	cmd := exec.CommandContext(ctx, b.binary("macronode"), "verify", "--config", config, "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	began := time.Now()
	_, s.OtherLoad, err = b.watched(cmd, none)
	s.Took = time.Since(began)
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, out.Bytes())
	}
	var report struct {
		OK     bool   `json:"ok"`
		Frames uint64 `json:"frames"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || !report.OK || report.Frames < uint64(b.frames) {
		return s, fmt.Errorf("verify returned %s: %w", out.Bytes(), err)
	}
	million := 1e6 / float64(report.Frames)
	s.CPU = time.Duration(million * float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	s.Took = time.Duration(million * float64(s.Took))
	return s, nil
}

// starts serves a directory once a round, until it is ready.
func (b *bench) starts(ctx context.Context, config, data string) (sample.Series, error) {
	return b.repeated(func(int) (sample.Sample, error) { return b.start(ctx, config, data) })
}

func (b *bench) start(ctx context.Context, config, data string) (s sample.Sample, err error) {
	n, err := b.serve(ctx, config, data)
	if err != nil {
		return s, err
	}
	used, err := gauge.CPU(n.pid())
	return sample.Sample{Took: n.took, CPU: used}, errors.Join(err, n.stop())
}

// startsEmpty serves a new directory each time, with defaults.
func (b *bench) startsEmpty(ctx context.Context) (sample.Series, error) {
	return b.repeated(func(round int) (s sample.Sample, err error) {
		data := filepath.Join(b.work, fmt.Sprintf("empty%d", round))
		text := fmt.Sprintf("data: %s\nlisten:\n  http: 127.0.0.1:0\n  admin: 127.0.0.1:0\n", data)
		if err := os.WriteFile(data+".yaml", []byte(text), 0o600); err != nil {
			return s, err
		}
		return b.start(ctx, data+".yaml", data)
	})
}

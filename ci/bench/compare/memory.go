package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sheet"
)

// memory compares the memory of a full node with the bound of its configuration.
func (b *bench) memory(ctx context.Context) (err error) {
	const rest = 20_000 // keys that the load adds
	data := filepath.Join(b.work, "memory")
	if err := os.MkdirAll(journal(data), 0o700); err != nil {
		return err
	}
	if _, err := b.probeIn(ctx, journal(data), "write", "-accounts", b.many, "-count", b.many); err != nil {
		return err
	}
	config, err := b.config(data, b.many, b.many+rest, "24h")
	if err != nil {
		return err
	}
	bound, err := b.bound(ctx, config)
	if err != nil {
		return err
	}
	n, err := b.serve(ctx, config, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	start, _, err := gauge.Memory(n.pid())
	if err != nil {
		return err
	}
	if _, err := b.sampled(exec.CommandContext(ctx, b.binary("load"), "-addr", n.http, "-key-file", n.keyFile(), "-conns", "256",
		"-accounts", fmt.Sprint(b.many), "-count", fmt.Sprint(rest), "-salt", "m"), none); err != nil {
		return err
	}
	full, most, err := gauge.Memory(n.pid())
	if err != nil {
		return err
	}
	mib := func(n int64) string { return sheet.Number(float64(n) / (1 << 20)) }
	b.page.Sections = append(b.page.Sections, sheet.Section{Title: "Memory", Text: fmt.Sprintf(memoryText, sheet.Count(b.many), sheet.Count(b.many+rest)),
		Head: []string{"what", "MiB"}, Rows: [][]string{{"bound that `macronode config check` states", mib(bound)},
			{"resident when ready", mib(start)}, {"resident when full, after the load", mib(full)}, {"resident at most, since the start", mib(most)}}})
	b.page.Goals = append(b.page.Goals, sheet.Goal{What: "resident at most, against the stated bound", Want: sheet.Most(1), Got: float64(most) / float64(bound), Unit: "×"})
	b.say("memory of %s accounts", sheet.Count(b.many))
	return nil
}

const memoryText = "`macronode serve` starts on a journal of %s accounts, each paid once. Then 256 clients send transfers until there are %s keys, which fill the window. The table of accounts is full too. " +
	"Resident memory is what the kernel counts, with Go's runtime, the connections, the index and a snapshot that is made meanwhile."

// bound returns the memory bound that the binary computes for a configuration, in bytes.
func (b *bench) bound(ctx context.Context, config string) (int64, error) {
	out, err := exec.CommandContext(ctx, b.binary("macronode"), "config", "check", "--config", config, "--json").Output()
	if err != nil {
		return 0, fmt.Errorf("config check: %w: %s", err, out)
	}
	var reply struct {
		Memory int64 `json:"memory_bytes"`
	}
	if err := json.Unmarshal(out, &reply); err != nil || reply.Memory <= 0 {
		return 0, fmt.Errorf("config check: %w: %s", err, out)
	}
	return reply.Memory, nil
}

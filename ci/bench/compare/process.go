package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/sample"
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 15 * time.Second
)

// A program is a running server.
type program struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer
}

// start runs a server in its own process group. It ends with this process at the latest.
func start(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Stderr = &p.output
	if cmd.Stdout == nil {
		cmd.Stdout = &p.output
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // stop returns how it ended
		close(p.ended)
	}()
	return p, nil
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// stop stops a server with SIGTERM, and kills it if that does not help.
func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d: %s", filepath.Base(p.cmd.Path), code, p.output.String())
	}
	return nil
}

// node is a running macronode.
type node struct {
	*program
	data  string
	http  string // address
	admin string
	took  time.Duration // from its start until ready
}

// keyFile returns the file with the first API key.
func (n *node) keyFile() string { return filepath.Join(n.data, "bootstrap.key") }

// serve runs the binary until it is ready.
func (b *bench) serve(ctx context.Context, config, data string) (*node, error) {
	n := &node{data: data}
	began := time.Now()
	var err error
	if n.program, err = start(exec.Command(b.binary("macronode"), "serve", "--config", config)); err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(ctx, startLimit)
	defer done()
	for ctx.Err() == nil {
		if n.find() && n.ready(ctx) {
			n.took = time.Since(began)
			return n, nil
		}
		select {
		case <-n.ended:
			return nil, fmt.Errorf("macronode ended at the start: %s", n.output.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil, errors.Join(fmt.Errorf("macronode was not ready: %w", ctx.Err()), n.stop())
}

// find reads the addresses of the process.
func (n *node) find() bool {
	raw, err := os.ReadFile(filepath.Join(n.data, "run.json"))
	if err != nil {
		return false
	}
	var run struct {
		PID    int
		Listen struct{ HTTP, Admin string }
	}
	if json.Unmarshal(raw, &run) != nil || run.PID != n.pid() || run.Listen.HTTP == "" || run.Listen.Admin == "" {
		return false
	}
	n.http, n.admin = run.Listen.HTTP, run.Listen.Admin
	return true
}

func (n *node) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.admin+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// watch starts measuring the machine's CPU. The returned function reports the share used by other
// processes since then: all except this one, its children, and the servers, whose CPU time is
// given.
func watch() (otherLoad func(servers time.Duration) (float64, error), err error) {
	busy, total, err := gauge.Machine()
	used := gauge.Own()
	return func(servers time.Duration) (float64, error) {
		busyAfter, totalAfter, err := gauge.Machine()
		ours := servers + gauge.Own() - used
		if totalAfter == total {
			return 0, err
		}
		return max(0, (busyAfter-busy-ours).Seconds()/(totalAfter-total).Seconds()), err
	}, err
}

// watched runs a command, and reports the share of other processes and the CPU of the servers, if
// there are any.
func (b *bench) watched(cmd *exec.Cmd, servers func() (time.Duration, error)) (used time.Duration, otherLoad float64, err error) {
	end, err := watch()
	if err != nil {
		return 0, 0, err
	}
	before, err := servers()
	if err != nil {
		return 0, 0, err
	}
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, output.String())
	}
	after, err := servers()
	if err != nil {
		return 0, 0, err
	}
	used = after - before
	otherLoad, err = end(used)
	b.noise = append(b.noise, otherLoad)
	return used, otherLoad, err
}

func none() (time.Duration, error) { return 0, nil }

// sampled runs a program that writes a sample. If servers are measured, CPU is theirs.
func (b *bench) sampled(cmd *exec.Cmd, servers func() (time.Duration, error)) (s sample.Sample, err error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	used, otherLoad, err := b.watched(cmd, servers)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	if used > 0 {
		s.CPU, s.Over = used, s.All
	}
	s.OtherLoad = otherLoad
	return s, nil
}

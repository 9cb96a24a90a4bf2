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

// A program is a server that we started.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	said  bytes.Buffer
}

// start runs a server in a process group of its own. It ends with us, if not before.
func start(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Stderr = &p.said
	if cmd.Stdout == nil {
		cmd.Stdout = &p.said
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // how it ended, stop says
		close(p.ended)
	}()
	return p, nil
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// stop ends a server as an operator does, and by force only when that does not help.
func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill() // it may be gone
		<-p.ended
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d: %s", filepath.Base(p.cmd.Path), code, p.said.String())
	}
	return nil
}

// node is the real binary, serving.
type node struct {
	*program
	data  string
	http  string // address
	admin string
	took  time.Duration // from its start until it was ready
}

// keyFile is where a node leaves the first API key.
func (n *node) keyFile() string { return filepath.Join(n.data, "bootstrap.key") }

// serve runs the binary on a directory until it is ready for traffic.
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
			return nil, fmt.Errorf("macronode ended at the start: %s", n.said.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil, errors.Join(fmt.Errorf("macronode was not ready: %w", ctx.Err()), n.stop())
}

// find reads where this process listens.
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

// peer is the service over PostgreSQL, serving.
type peer struct {
	*program
	http string
}

func (b *bench) peer(dsn, keyFile string) (*peer, error) {
	p, at, err := spoken(exec.Command(b.binary("pgservice"), "-dsn", dsn, "-key-file", keyFile, "-conns", fmt.Sprint(b.pool)))
	if err != nil {
		return nil, err
	}
	return &peer{p, at}, nil
}

// watch begins to look at the machine. Who calls what it returns is told which share of
// it strangers took since: all but us, those whom we waited for, and the servers, which
// have used so much.
func watch() (strangers func(servers time.Duration) (float64, error), err error) {
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

// watched runs a command to its end and reports what strangers took meanwhile, and what
// the servers, if there are any, used.
func (b *bench) watched(cmd *exec.Cmd, servers func() (time.Duration, error)) (used time.Duration, strangers float64, err error) {
	end, err := watch()
	if err != nil {
		return 0, 0, err
	}
	before, err := servers()
	if err != nil {
		return 0, 0, err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, said.String())
	}
	after, err := servers()
	if err != nil {
		return 0, 0, err
	}
	used = after - before
	strangers, err = end(used)
	b.noise = append(b.noise, strangers)
	return used, strangers, err
}

func none() (time.Duration, error) { return 0, nil }

// sampled runs a program that writes a sample. Where servers are measured, CPU is
// theirs.
func (b *bench) sampled(cmd *exec.Cmd, servers func() (time.Duration, error)) (s sample.Sample, err error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	used, strangers, err := b.watched(cmd, servers)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	if used > 0 {
		s.CPU, s.Over = used, s.All
	}
	s.Strangers = strangers
	return s, nil
}

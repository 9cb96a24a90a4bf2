package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"macronode/ci/bench/conf"
)

// A front is a running gateway.
type front struct {
	*program
	at   string // its address
	soft syscall.Signal
	node *node // if it is macronode
}

// The gateways, in the order of their turns.
var fronts = [...]string{"nginx", "HAProxy", "Caddy", "ReverseProxy", "macronode"}

// front starts a gateway before the origin of its setting.
func (b *bench) front(ctx context.Context, name string, s conf.Setting) (*front, error) {
	dir, err := os.MkdirTemp(b.work, strings.ToLower(name))
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers run as another user
		return nil, err
	}
	s.Dir, s.Cores = dir, runtime.NumCPU()
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	f := &front{at: fmt.Sprintf("127.0.0.1:%d", s.Port), soft: syscall.SIGTERM}
	switch name {
	case "nginx":
		f.soft = syscall.SIGQUIT
		err = f.run(ctx, "nginx.conf", s, "nginx", "-e", "stderr", "-p", dir, "-c")
	case "HAProxy":
		f.soft = syscall.SIGUSR1
		err = f.run(ctx, "haproxy.cfg", s, "haproxy", "-db", "-f")
	case "Caddy":
		err = f.run(ctx, "Caddyfile", s, "caddy", "run", "--adapter", "caddyfile", "--config")
	case "ReverseProxy":
		f.program, f.at, err = spoken(exec.Command(b.binary("reverse"), "-to", s.Origin, "-rate", fmt.Sprint(s.Rate), "-burst", fmt.Sprint(min(s.Burst, s.Rate))))
	case "macronode":
		var file string
		if file, err = conf.Write("macronode.yaml", s); err == nil {
			f.node, err = b.serve(ctx, file, filepath.Join(dir, "data"))
		}
		if err == nil {
			f.program, f.at = f.node.program, f.node.http
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// run starts a gateway with its configuration as the last argument, and waits until it answers.
func (f *front) run(ctx context.Context, name string, s conf.Setting, program string, args ...string) error {
	file, err := conf.Write(name, s)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(args, file)...)
	cmd.Env = append(os.Environ(), "HOME="+s.Dir, "XDG_DATA_HOME="+s.Dir, "XDG_CONFIG_HOME="+s.Dir)
	if f.program, err = start(cmd); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, startLimit)
	defer done()
	for !answers(ctx, f.at) {
		select {
		case <-f.ended:
			return fmt.Errorf("it ended at the start: %s", f.output.String())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("it never answered: %w", ctx.Err()), f.stop())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// answers reports whether there is any answer.
func answers(ctx context.Context, at string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/1", nil)
	if err != nil {
		return false
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	return err == nil && resp.Body.Close() == nil
}

// end stops a gateway without cutting requests.
func (f *front) end() error {
	_ = f.cmd.Process.Signal(f.soft) // it may have ended
	select {
	case <-f.ended:
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("%s did not end", filepath.Base(f.cmd.Path)), f.stop())
	}
}

// freePort returns a free port.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// spoken starts a server that prints its address on the first line.
func spoken(cmd *exec.Cmd) (*program, string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout = w
	p, err := start(cmd)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, p.output.String()), p.stop())
	}
	return p, strings.TrimSpace(line), nil
}

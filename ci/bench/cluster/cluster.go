// Package cluster runs a PostgreSQL of its own: a fresh data directory, one unix
// socket, no network, an unprivileged user.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrMissing says that no PostgreSQL is installed.
var ErrMissing = errors.New("cluster: no PostgreSQL found; Debian's package is postgresql")

const (
	startLimit = 30 * time.Second
	stopLimit  = 15 * time.Second
)

// Cluster is a running PostgreSQL.
type Cluster struct {
	Socket string // directory of the unix socket

	bin    string // directory of its programs
	cred   *syscall.Credential
	server *exec.Cmd
	ended  chan struct{} // closed when the server has
	said   bytes.Buffer
}

// Find is the directory of the newest PostgreSQL's programs.
func Find() (string, error) {
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b string) int { return release(a) - release(b) })
	if len(all) > 0 {
		return all[len(all)-1], nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", ErrMissing
}

func release(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin))) // 0 for what is no release
	return n
}

// Start makes a cluster below dir, which must be new, and runs it with settings
// beside its defaults, each "name=value".
func Start(ctx context.Context, dir string, settings ...string) (*Cluster, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Socket: filepath.Join(dir, "socket"), bin: bin, ended: make(chan struct{})}
	if c.cred, err = unprivileged(); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	for _, d := range []string{dir, c.Socket, data} {
		if err := c.make(d); err != nil {
			return nil, fmt.Errorf("cluster: make %s: %w", d, err)
		}
	}
	made := c.command(ctx, "initdb", "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	if out, err := made.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cluster: initdb: %w\n%s", err, out)
	}
	args := []string{"-D", data, "-k", c.Socket, "-c", "listen_addresses="}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	c.server = c.command(context.WithoutCancel(ctx), "postgres", args...)
	c.server.Stdout, c.server.Stderr = &c.said, &c.said
	c.server.SysProcAttr.Pdeathsig = syscall.SIGINT // a fast shutdown, should we be killed
	if err := c.server.Start(); err != nil {
		return nil, fmt.Errorf("cluster: start: %w", err)
	}
	go func() {
		_ = c.server.Wait() // how it ended, it says itself
		close(c.ended)
	}()
	if err := c.await(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) make(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if c.cred == nil {
		return nil
	}
	return os.Chown(dir, int(c.cred.Uid), int(c.cred.Gid))
}

// unprivileged is whom PostgreSQL runs as: it refuses root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("cluster: user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("cluster: PostgreSQL refuses root, and there is neither a user postgres nor nobody")
}

// command is one of PostgreSQL's programs, in a process group of its own so that it
// does not hear the terminal.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir = filepath.Dir(c.Socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.cred}
	return cmd
}

func (c *Cluster) await(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	for {
		if _, err := c.SQL(ctx, "select 1"); err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("cluster: ended at the start\n%s", c.said.Bytes())
		case <-ctx.Done():
			return fmt.Errorf("cluster: never came up: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// SQL runs statements one by one and returns what they say, without frames.
func (c *Cluster) SQL(ctx context.Context, statements ...string) (string, error) {
	out, err := c.psql(ctx, statements...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cluster: psql: %w\n%s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Copy runs one statement and hands on what it says, as it comes.
func (c *Cluster) Copy(ctx context.Context, statement string, to io.Writer) error {
	cmd := c.psql(ctx, statement)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = to, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cluster: psql: %w\n%s", err, said.Bytes())
	}
	return nil
}

func (c *Cluster) psql(ctx context.Context, statements ...string) *exec.Cmd {
	args := []string{"-h", c.Socket, "-U", "bench", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"}
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	return c.command(ctx, "psql", append(args, "postgres")...)
}

// Bench is a run of pgbench, yet to be started, in a directory that it may write to.
func (c *Cluster) Bench(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	if err := c.make(dir); err != nil {
		return nil, fmt.Errorf("cluster: make %s: %w", dir, err)
	}
	cmd := c.command(ctx, "pgbench", append([]string{"-h", c.Socket, "-U", "bench", "-n"}, append(args, "postgres")...)...)
	cmd.Dir = dir
	return cmd, nil
}

// DSN is how clients reach it.
func (c *Cluster) DSN() string { return "host=" + c.Socket + " user=bench dbname=postgres" }

// PID is the postmaster's: all others are its children.
func (c *Cluster) PID() int { return c.server.Process.Pid }

// Log is what the server wrote. It is whole when the cluster has ended.
func (c *Cluster) Log() string {
	<-c.ended
	return c.said.String()
}

// Stop ends the cluster: at once, but cleanly where it can.
func (c *Cluster) Stop() error {
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := c.server.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("cluster: stop: %w", err)
		}
		select {
		case <-c.ended:
			return nil
		case <-time.After(stopLimit):
		}
	}
	return errors.New("cluster: does not end")
}

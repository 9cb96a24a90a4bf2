// Package cluster runs a temporary PostgreSQL: a fresh data directory, one unix socket, no
// network, an unprivileged user.
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

// ErrMissing reports that PostgreSQL is not installed.
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
	ended  chan struct{} // closed when the server has ended
	output bytes.Buffer
}

// Find returns the program directory of the newest PostgreSQL.
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

// Start creates a cluster in dir, which must not exist, and runs it with settings in addition to
// the defaults, each "name=value".
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
	c.server.Stdout, c.server.Stderr = &c.output, &c.output
	c.server.SysProcAttr.Pdeathsig = syscall.SIGINT // a fast shutdown if this process is killed
	if err := c.server.Start(); err != nil {
		return nil, fmt.Errorf("cluster: start: %w", err)
	}
	go func() {
		_ = c.server.Wait() // the log has the reason
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

// unprivileged returns the user that runs PostgreSQL, which rejects root.
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

// command returns a PostgreSQL program in its own process group, so that it gets no signals of
// the terminal.
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
			return fmt.Errorf("cluster: ended at the start\n%s", c.output.Bytes())
		case <-ctx.Done():
			return fmt.Errorf("cluster: never came up: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// SQL runs statements and returns their output, without frames.
func (c *Cluster) SQL(ctx context.Context, statements ...string) (string, error) {
	out, err := c.psql(ctx, statements...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cluster: psql: %w\n%s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Copy runs one statement and streams its output.
func (c *Cluster) Copy(ctx context.Context, statement string, to io.Writer) error {
	cmd := c.psql(ctx, statement)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = to, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cluster: psql: %w\n%s", err, output.Bytes())
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

// Bench returns a pgbench command in a directory that it may write to.
func (c *Cluster) Bench(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	if err := c.make(dir); err != nil {
		return nil, fmt.Errorf("cluster: make %s: %w", dir, err)
	}
	cmd := c.command(ctx, "pgbench", append([]string{"-h", c.Socket, "-U", "bench", "-n"}, append(args, "postgres")...)...)
	cmd.Dir = dir
	return cmd, nil
}

// DSN is the connection string of clients.
func (c *Cluster) DSN() string { return "host=" + c.Socket + " user=bench dbname=postgres" }

// PID is that of the postmaster: all others are its children.
func (c *Cluster) PID() int { return c.server.Process.Pid }

// Log returns the server's log. It is complete when the cluster has ended.
func (c *Cluster) Log() string {
	<-c.ended
	return c.output.String()
}

// Stop stops the cluster: immediately, and cleanly if possible.
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

package export

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// database is a real server of PostgreSQL in a directory of its own, which only its Unix socket reaches. All tests share it.
type database struct {
	dir  string // with the socket
	stop func()
}

var server struct {
	sync.Once
	*database
	err error
}

// postgresServer returns the server, and skips the test if there is no PostgreSQL.
func postgresServer(t testing.TB) *database {
	t.Helper()
	bin := postgresPrograms()
	if bin == "" {
		t.Skip("no PostgreSQL: apt-get install postgresql")
	}
	server.Do(func() { server.database, server.err = startPostgres(bin) })
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.database
}

// postgresPrograms returns the directory of initdb and postgres; empty if there is none. Debian has them outside of PATH.
func postgresPrograms() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if at, err := exec.LookPath("initdb"); err == nil {
		found = append(found, at)
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[0])
}

func startPostgres(bin string) (*database, error) {
	dir, err := os.MkdirTemp("/tmp", "pg") // a short path, which another user can enter: it has a socket
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &database{dir: dir, stop: func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // at once
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}}
	for n := 0; ; n++ { // until it accepts connections
		conn, err := pgx.Connect(context.Background(), d.url(dir, ""))
		if err == nil {
			return d, conn.Close(context.Background())
		}
		if n == 600 {
			d.stop()
			return nil, fmt.Errorf("postgres does not start: %w", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unprivileged returns how to run PostgreSQL, which refuses to run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	is, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(is.Uid)
	gid, _ := strconv.Atoi(is.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, uid, gid)
}

// url returns the URL of the server behind a socket in a directory. Each target has a schema of its own.
func (d *database) url(dir, schema string) string {
	u := "postgres://tester@/postgres?host=" + dir
	if schema != "" {
		u += "&search_path=" + schema
	}
	return u
}

var schemas atomic.Uint64

// postgresTarget is a schema of the server, behind a proxy with faults.
type postgresTarget struct {
	t      testing.TB
	of     *database
	schema string
	dir    string // with the socket of the proxy
	proxy  net.Listener

	faulty
	conns map[net.Conn]bool
}

func newPostgresTarget(t testing.TB) *postgresTarget {
	of := postgresServer(t)
	p := &postgresTarget{t: t, of: of, schema: "s" + strconv.FormatUint(schemas.Add(1), 10), conns: map[net.Conn]bool{}}
	p.query("CREATE SCHEMA " + p.schema)
	var err error
	if p.dir, err = os.MkdirTemp("/tmp", "px"); err != nil {
		t.Fatal(err)
	}
	if p.proxy, err = net.Listen("unix", filepath.Join(p.dir, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go p.serve(served)
	t.Cleanup(func() {
		_ = p.proxy.Close()
		p.cut()
		<-served
		_ = os.RemoveAll(p.dir)
	})
	return p
}

func (p *postgresTarget) sink() Sink {
	s, err := New(Config{Name: "test", Kind: KindPostgres, URL: p.of.url(p.dir, p.schema), Inflight: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// faults: the connection is refused; cut before the server gets the statement, or before the client gets its outcome; or the
// server ends the session.
func (p *postgresTarget) faults() []string {
	return []string{"refuse", "drop", "take and drop", "terminate"}
}

// arm makes the next attempt meet a fault.
func (p *postgresTarget) arm(fault string) {
	switch fault {
	case "refuse":
		p.cut()
	case "terminate":
		p.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'macronode'")
		return
	}
	p.mu.Lock()
	p.fault = fault
	p.mu.Unlock()
}

func (p *postgresTarget) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *postgresTarget) serve(done chan struct{}) {
	defer close(done)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := p.proxy.Accept()
		if err != nil {
			return
		}
		if p.met("refuse") != "" {
			_ = c.Close()
			continue
		}
		s, err := net.Dial("unix", filepath.Join(p.of.dir, ".s.PGSQL.5432"))
		if err != nil {
			_ = c.Close()
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[s] = true, true
		p.mu.Unlock()
		var inserting atomic.Bool
		pump := func(to, from net.Conn, before func([]byte) bool) {
			defer func() {
				_, _ = to.Close(), from.Close()
				p.mu.Lock()
				delete(p.conns, from)
				p.mu.Unlock()
			}()
			b := make([]byte, 64<<10)
			for {
				n, err := from.Read(b)
				if n > 0 && before(b[:n]) {
					return
				}
				if _, failed := to.Write(b[:n]); err != nil || failed != nil {
					return
				}
			}
		}
		all.Go(func() {
			pump(s, c, func(b []byte) bool {
				if strings.Contains(string(b), `{"tenant"`) { // the item: after this the statement is executed
					inserting.Store(true)
					return p.met("drop") != ""
				}
				return false
			})
		})
		all.Go(func() {
			pump(c, s, func([]byte) bool { return inserting.Load() && p.met("take and drop") != "" })
		})
	}
}

// query runs a statement past the proxy.
func (p *postgresTarget) query(sql string) {
	conn, err := pgx.Connect(context.Background(), p.of.url(p.of.dir, p.schema))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *postgresTarget) seqs() (all []uint64) {
	conn, err := pgx.Connect(context.Background(), p.of.url(p.of.dir, p.schema))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), "SELECT seq, id, stream, tenant, dimension, source, time, body::text FROM macronode_items ORDER BY seq")
	if err != nil {
		p.t.Fatal(err)
	}
	for rows.Next() {
		var seq int64
		var got Item
		var body string
		if err := rows.Scan(&seq, &got.ID, &got.Stream, &got.Tenant, &got.Dimension, &got.Source, &got.Time, &body); err != nil {
			p.t.Fatal(err)
		}
		want := item(uint64(seq))
		if got.ID != want.ID || got.Stream != want.Stream || got.Tenant != want.Tenant || got.Dimension != want.Dimension || got.Source != want.Source || !got.Time.Equal(want.Time) || body != string(want.Body) {
			p.t.Errorf("%+v with %s, not %+v", got, body, want)
		}
		all = append(all, uint64(seq))
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// TestDatabaseKeepsOneItem: a repeated item is a duplicate, another item with its id or its seq is rejected for ever, and so is
// one whose text the database does not take.
func TestDatabaseKeepsOneItem(t *testing.T) {
	to := newPostgresTarget(t)
	sink := to.sink()
	defer sink.Close()
	other, reused, broken := item(1), item(1), item(2)
	other.Body, reused.ID, broken.Body = []byte(`{"tenant":"2"}`), "usage_x", []byte(`{"tenant":"\x00"}`)
	for _, c := range []struct {
		item *Item
		want Outcome
	}{{item(1), OK}, {item(1), Duplicate}, {other, Permanent}, {reused, Permanent}, {broken, Permanent}, {item(2), OK}} {
		if got := sink.Deliver(t.Context(), c.item); got.Outcome != c.want || (got.Outcome == Permanent) != (got.Reason != "") {
			t.Errorf("%s: %+v, want %v", c.item.ID, got, c.want)
		}
	}
	if got := to.seqs(); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("the table has %v", got)
	}
}

// TestDatabaseWithoutRights: a table that was made beforehand needs no right to create it, and a missing right is retried.
func TestDatabaseWithoutRights(t *testing.T) {
	to := newPostgresTarget(t)
	role := "w" + to.schema
	to.query("CREATE ROLE " + role + " LOGIN; GRANT USAGE ON SCHEMA " + to.schema + " TO " + role)
	sink, err := New(Config{Name: "test", Kind: KindPostgres, URL: strings.Replace(to.of.url(to.dir, to.schema), "tester", role, 1), Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, "permission denied") {
		t.Errorf("without the right to create the table: %+v", got)
	}
	to.query(createTable)
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, "permission denied") {
		t.Errorf("without the right to insert: %+v", got)
	}
	to.query("GRANT SELECT, INSERT ON macronode_items TO " + role)
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != OK {
		t.Errorf("with the rights: %+v", got)
	}
}

// TestDatabaseReasonsHideThePassword: what an operator reads has neither the password nor the address.
func TestDatabaseReasonsHideThePassword(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("hidden-password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"/nowhere", "127.0.0.1&port=1"} {
		sink, err := New(Config{Name: "test", Kind: KindPostgres, URL: "postgres://secret-user@/db?connect_timeout=1&host=" + at, SecretFile: secret, Inflight: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := sink.Deliver(t.Context(), item(1))
		if got.Outcome != Retryable || strings.Contains(got.Reason, "hidden-password") || strings.Contains(got.Reason, "secret-user") {
			t.Errorf("%s: %+v", at, got)
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	}
}

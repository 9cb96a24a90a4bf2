package export

import (
	"bytes"
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
	dir     string // with the socket
	start   func() (*exec.Cmd, error)
	process *exec.Cmd
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
	d := &database{dir: dir, start: func() (*exec.Cmd, error) {
		cmd := run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
		return cmd, cmd.Start()
	}}
	return d, d.up()
}

// up starts the server, and waits until it accepts connections.
func (d *database) up() (err error) {
	if d.process, err = d.start(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		conn, err := pgx.Connect(context.Background(), d.url(d.dir, ""))
		if err == nil {
			return conn.Close(context.Background())
		}
		if n == 600 {
			d.stop()
			return fmt.Errorf("postgres does not start: %w", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// down ends the server at once, as a crash does.
func (d *database) down() {
	_ = d.process.Process.Signal(syscall.SIGQUIT)
	_ = d.process.Wait()
}

func (d *database) stop() {
	d.down()
	_ = os.RemoveAll(d.dir)
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
	undo   func() // removes the fault that is in the database; nil: there is none

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
	return attempts{s, &p.faulty, func() {
		if p.undo != nil {
			p.undo()
			p.undo = nil
		}
	}}
}

// arm: the connection is refused; cut before the server gets the statement, or before the client gets its outcome; the server ends the
// session, or has no room; another transaction holds the row until the attempt has ended; there is no outcome, or one that is no answer;
// the server crashes before it gets the statement, or after it has executed it.
func (p *postgresTarget) arm(fault string, seq uint64) {
	switch fault {
	case "refuse":
		p.cut()
	case "terminate":
		p.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'macronode'")
		return
	case "disk full":
		p.query(createTable)
		p.query("CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$")
		p.query("CREATE TRIGGER refuse BEFORE INSERT ON macronode_items FOR EACH ROW EXECUTE FUNCTION refuse()")
		p.undo = func() { p.query("DROP TRIGGER refuse ON macronode_items") }
		return
	case "locked":
		p.query(createTable)
		i := item(seq)
		conn := p.connect()
		for _, sql := range []string{"BEGIN", fmt.Sprintf("INSERT INTO macronode_items VALUES ('%s', '%s', '', '', '', %d, now(), '{}') ON CONFLICT DO NOTHING", i.Source, i.ID, seq)} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				p.t.Fatal(err)
			}
		}
		p.undo = func() { _ = conn.Close(context.Background()) } // and rolls back
	}
	p.set(fault)
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
		all.Go(func() { p.pump(s, c, func(b []byte) []byte { return p.toServer(b, &inserting) }) })
		all.Go(func() { p.pump(c, s, func(b []byte) []byte { return p.toSink(b, &inserting) }) })
	}
}

// toServer returns what the server gets; nil: the connection is cut.
func (p *postgresTarget) toServer(b []byte, inserting *atomic.Bool) []byte {
	if !strings.Contains(string(b), `{"tenant"`) {
		return b
	}
	inserting.Store(true) // it is the item: after this the statement is executed
	switch p.met("drop", "locked", "restart") {
	case "drop":
		return nil
	case "locked":
		p.endAttempt()
	case "restart":
		p.crash()
		return nil
	}
	return b
}

// toSink returns what the sink gets; nil: the connection is cut.
func (p *postgresTarget) toSink(b []byte, inserting *atomic.Bool) []byte {
	if !inserting.Load() {
		return b
	}
	switch p.met("take and drop", "silence", "garbage", "take and restart") {
	case "take and drop":
		return nil
	case "silence":
		p.endAttempt()
		return []byte{}
	case "garbage":
		return bytes.Repeat([]byte{0xff}, len(b))
	case "take and restart":
		p.crash()
		return nil
	}
	return b
}

// pump passes on what change returns.
func (p *postgresTarget) pump(to, from net.Conn, change func([]byte) []byte) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			pass := change(b[:n:n])
			if pass == nil {
				return
			}
			if _, failed := to.Write(pass); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// connect connects past the proxy.
func (p *postgresTarget) connect() *pgx.Conn {
	conn, err := pgx.Connect(context.Background(), p.of.url(p.of.dir, p.schema))
	if err != nil {
		p.t.Fatal(err)
	}
	return conn
}

// crash ends the server, and starts it again.
func (p *postgresTarget) crash() {
	p.of.down()
	if err := p.of.up(); err != nil {
		p.t.Error(err)
	}
}

// query runs a statement past the proxy.
func (p *postgresTarget) query(sql string) {
	conn := p.connect()
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p *postgresTarget) seqs() (all []uint64) {
	conn := p.connect()
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

// TestDroppedTableIsMadeAgain: a retry of the item that did not find the table creates it.
func TestDroppedTableIsMadeAgain(t *testing.T) {
	to := newPostgresTarget(t)
	sink := to.sink()
	defer sink.Close()
	for _, want := range []Outcome{OK, Retryable, OK} {
		if got := sink.Deliver(t.Context(), item(1)); got.Outcome != want {
			t.Fatalf("%+v, want %v", got, want)
		}
		if want == OK {
			to.query("DROP TABLE macronode_items")
		}
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

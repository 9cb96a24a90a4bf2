package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// message returns a message of a server of PostgreSQL that says that it has size bytes.
func message(kind byte, size int, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+size)), body...)
}

var (
	authenticated = message('R', 4, "\x00\x00\x00\x00")
	ready         = message('Z', 1, "I")
)

// reports sends what a server reports of itself, each under another name, until the client closes the connection.
func reports(conn io.Writer) {
	for n := 0; ; n++ {
		var b bytes.Buffer
		for i := range 1000 {
			text := fmt.Sprintf("p%d-%d\x00x\x00", n, i)
			b.Write(message('S', len(text), text))
		}
		if _, err := conn.Write(b.Bytes()); err != nil {
			return
		}
	}
}

// hostileDatabase starts a server of PostgreSQL, which serves each connection after the first message of the client.
func hostileDatabase(t *testing.T, serve func(net.Conn)) (url string) {
	return "postgres://a@" + serveEach(t, func(conn net.Conn) {
		if _, err := pgproto3.NewBackend(conn, conn).ReceiveStartupMessage(); err == nil {
			serve(conn)
		}
	}) + "/db?sslmode=disable"
}

// TestHostileServerOfPostgreSQL: what a server sends cannot take the memory of the process. The attempt fails, and says why.
func TestHostileServerOfPostgreSQL(t *testing.T) {
	large := message('N', 1<<30, strings.Repeat("x", 1<<20))
	starts := func(conn net.Conn) {
		_, _ = conn.Write(append(bytes.Clone(authenticated), ready...))
		_, _ = conn.Read(make([]byte, 1000))
	}
	for name, c := range map[string]struct {
		serve func(net.Conn)
		want  string
	}{
		"reports at the start":     {func(conn net.Conn) { _, _ = conn.Write(authenticated); reports(conn) }, errDatabaseBytes.Error()},
		"reports after the start":  {func(conn net.Conn) { starts(conn); reports(conn) }, errDatabaseBytes.Error()},
		"a message of 1 GiB":       {func(conn net.Conn) { _, _ = conn.Write(large) }, "invalid body length"},
		"a message of 1 GiB later": {func(conn net.Conn) { starts(conn); _, _ = conn.Write(large) }, "invalid body length"},
	} {
		got := deliverOnce(t, Config{Name: "test", Kind: KindPostgres, URL: hostileDatabase(t, c.serve), Inflight: 1}, item(1))
		if got.Outcome != Retryable || !strings.Contains(got.Reason, c.want) {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// TestClosedSinkHasNoConnection: closing a sink closes its connections at once, also those on which a statement is cancelled, and lets none
// be opened.
func TestClosedSinkHasNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := &databaseConns{open: map[*databaseConn]bool{}}
	var open [2]net.Conn
	for i := range open {
		if open[i], err = d.dial(t.Context(), "tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	if err := open[0].Close(); err != nil || len(d.open) != 1 {
		t.Errorf("%v; %d are open", err, len(d.open))
	}
	d.close()
	if _, err := open[1].Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := d.dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, errSinkClosed) {
		t.Error(err)
	}
}

// TestConnectionIsReplaced: a connection on which half of what is permitted has come is closed, and the next item opens another one.
func TestConnectionIsReplaced(t *testing.T) {
	to := newPostgresTarget(t)
	s, err := newPostgres(Config{Name: "test", Kind: KindPostgres, URL: to.of.url(to.dir, to.schema), Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	received := func(add int64) (n int64) {
		c, err := s.pool.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		return c.Conn().PgConn().Conn().(*databaseConn).received.Add(add)
	}
	if got := s.Deliver(t.Context(), item(1)); got.Outcome != OK {
		t.Fatalf("%+v", got)
	}
	before := received(0)
	if before == 0 || received(databaseBytes/2) < databaseBytes/2 {
		t.Errorf("%d bytes were received", before)
	}
	if got := s.Deliver(t.Context(), item(2)); got.Outcome != OK {
		t.Fatalf("%+v", got)
	}
	if after := received(0); after >= databaseBytes/2 {
		t.Errorf("the connection goes on after %d bytes", after)
	}
}

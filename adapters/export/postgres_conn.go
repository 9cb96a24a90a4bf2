package export

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// databaseBytes is the number of bytes that a server of PostgreSQL may send on a connection, and the limit of a message. An answer has
// some hundred bytes, and the client keeps what the server reports of itself for as long as a connection lasts. So a connection is
// closed between two items when half of it has come.
const databaseBytes = 256 << 10

// PostgresBytes is the memory of a connection to PostgreSQL: the client needs some times as much for many short reports as they have
// bytes. It keeps the certificates of the files of its URL, too.
const PostgresBytes = 16*databaseBytes + 2*databaseFile

var (
	errDatabaseBytes = fmt.Errorf("the server has sent more than %d bytes", databaseBytes)
	errSinkClosed    = errors.New("the sink is closed")
)

// databaseConns are the open connections of a sink, with those on which its client cancels a statement. The client waits some time
// for the server before it closes a connection; closing the sink does not.
type databaseConns struct {
	mu     sync.Mutex // guards what follows
	open   map[*databaseConn]bool
	closed bool
}

// A databaseConn limits what its server sends.
type databaseConn struct {
	net.Conn
	of       *databaseConns
	received atomic.Int64 // bytes
}

// dial opens a connection.
func (d *databaseConns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(errSinkClosed, conn.Close())
	}
	c := &databaseConn{Conn: conn, of: d}
	d.open[c] = true
	return c, nil
}

// close closes all connections, and lets none be opened.
func (d *databaseConns) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Conn.Close()
	}
}

// Read reads until the server has sent too much.
func (c *databaseConn) Read(b []byte) (int, error) {
	read, err := c.Conn.Read(b)
	if c.received.Add(int64(read)) > databaseBytes {
		return 0, errors.Join(errDatabaseBytes, c.Close())
	}
	return read, err
}

// Close closes the connection.
func (c *databaseConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// limitedFrontend returns the reader of messages of a connection.
func limitedFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	f.SetMaxBodyLen(databaseBytes)
	return f
}

// lasts reports whether a connection can be used for another item.
func lasts(c *pgx.Conn) bool {
	conn := c.PgConn().Conn()
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	is, ok := conn.(*databaseConn)
	return ok && is.received.Load() < databaseBytes/2
}

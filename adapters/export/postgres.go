package export

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements of a table of items. The body is json, not jsonb: the text stays as it was delivered.
const (
	createTable = `CREATE TABLE IF NOT EXISTS macronode_items (
		source text NOT NULL, id text NOT NULL, stream text NOT NULL, tenant text NOT NULL, dimension text NOT NULL, seq bigint NOT NULL, time timestamptz NOT NULL, body json NOT NULL,
		PRIMARY KEY (source, id), UNIQUE (source, stream, tenant, dimension, seq))`
	tableExists = `SELECT to_regclass('macronode_items') IS NOT NULL`
	insertItem  = `INSERT INTO macronode_items (source, id, stream, tenant, dimension, seq, time, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`
	hasItem     = `SELECT body::text = $3 FROM macronode_items WHERE source = $1 AND id = $2`
)

// postgres inserts items into the table macronode_items of a database, which it creates if it is missing. An item is one
// statement, so it is there as a whole or not at all. The primary key makes a repeated item a duplicate.
type postgres struct {
	config  Config
	conns   *databaseConns
	opening sync.Mutex    // guards pool
	pool    *pgxpool.Pool // nil: not made yet
	made    atomic.Bool   // the table exists
}

func newPostgres(c Config) (*postgres, error) {
	if err := CheckDatabase(c.URL); err != nil {
		return nil, fmt.Errorf("export: the database of sink %s %w", c.Name, err)
	}
	return &postgres{config: c, conns: &databaseConns{open: map[*databaseConn]bool{}}}, nil
}

// Close closes all connections. It does not wait for the server.
func (p *postgres) Close() error {
	p.conns.close()
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.pool != nil {
		p.pool.Close()
	}
	return nil
}

// Deliver inserts an item, unless it is there.
func (p *postgres) Deliver(ctx context.Context, item *Item) Result {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	pool, err := p.open()
	if err != nil {
		return databaseResult(err)
	}
	if err := p.makeTable(ctx, pool); err != nil {
		return p.result(err)
	}
	// The time of an item has milliseconds, and the database keeps microseconds.
	inserted, err := pool.Exec(ctx, insertItem, item.Source, item.ID, item.Stream, item.Tenant, item.Dimension, int64(item.Seq), item.Time.UTC().Truncate(time.Microsecond), string(item.Body))
	switch {
	case err != nil:
		return p.result(err)
	case inserted.RowsAffected() == 1:
		return Result{Outcome: OK}
	}
	var same bool
	switch err = pool.QueryRow(ctx, hasItem, item.Source, item.ID, string(item.Body)).Scan(&same); {
	case errors.Is(err, pgx.ErrNoRows):
		return Result{Outcome: Permanent, Reason: "the table has another item with this seq"}
	case err != nil:
		return p.result(err)
	case !same:
		return Result{Outcome: Permanent, Reason: "the table has another item with this id"}
	}
	return Result{Outcome: Duplicate}
}

// result returns what an error means. A table that was dropped is created by the next attempt.
func (p *postgres) result(err error) Result {
	if at := new(pgconn.PgError); errors.As(err, &at) && at.Code == undefinedTable {
		p.made.Store(false)
	}
	return databaseResult(err)
}

// makeTable creates the table, unless it exists. Only the creation needs a right to create.
func (p *postgres) makeTable(ctx context.Context, pool *pgxpool.Pool) error {
	if p.made.Load() {
		return nil
	}
	var exists bool
	if err := pool.QueryRow(ctx, tableExists).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := pool.Exec(ctx, createTable); err != nil {
			return err
		}
	}
	p.made.Store(true)
	return nil
}

// Classes of errors of PostgreSQL that concern the item itself: a value that the table does not take, or a constraint that
// was added to it.
const (
	classData       = "22"
	classConstraint = "23"
)

// undefinedTable is the error that the table does not exist.
const undefinedTable = "42P01"

// databaseResult returns what an error means. The text of an error of the server is shown, for it has no password; other
// errors can have the address and the user.
func databaseResult(err error) Result {
	switch at := new(pgconn.PgError); {
	case errors.As(err, &at) && (at.Code[:2] == classData || at.Code[:2] == classConstraint):
		return Result{Outcome: Permanent, Reason: printable(at.Message)}
	case errors.As(err, &at):
		return retryable("%s (%s)", at.Message, at.Code)
	case errors.Is(err, context.Canceled):
		return retryable("cancelled")
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return retryable("timed out")
	case errors.Is(err, errPassword), errors.As(err, new(databaseError)):
		return retryable("%v", err)
	}
	return retryable("the connection failed: %v", rootCause(err))
}

// rootCause returns the innermost error: the ones around it repeat the address and the user.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

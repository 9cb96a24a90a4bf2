// pgservice is the compared service on PostgreSQL: POST /v1/transfer with macronode's API, and
// POST /v1/batch for atomic batches. It uses one function call, one round trip and one
// transaction, and omits what would cost more: the hash chain, gapless numbers, daily limits,
// amounts over 63 bits. POST /v1/usage-events inserts a batch of events with one statement; it
// sums nothing, and seals nothing.
//
//	request ─► checks, the same as ours ─► select transfer(…) ─► commit, fsync ─► receipt
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schema.sql
var schema string

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pgservice:", err)
		os.Exit(1)
	}
}

func run() error {
	dsn := flag.String("dsn", "", "how PostgreSQL is reached")
	conns := flag.Int("conns", 64, "connections to it, at most and at least")
	keyFile := flag.String("key-file", "", "file with the API key that clients show")
	install := flag.Bool("install", false, "make the tables and functions, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := pgxpool.ParseConfig(*dsn)
	if err != nil {
		return fmt.Errorf("dsn: %w", err)
	}
	config.MaxConns, config.MinConns = int32(*conns), int32(*conns)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	if *install {
		_, err := pool.Exec(ctx, schema)
		return err
	}
	key, err := os.ReadFile(*keyFile)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	return serve(ctx, newDesk(pool, strings.TrimSpace(string(key))))
}

// serve prints its address, and serves until ctx ends.
func serve(ctx context.Context, d *desk) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: d.routes(), ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	fmt.Println(l.Addr())
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer stop()
	if err := srv.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}

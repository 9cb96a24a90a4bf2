package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/gauge"
)

// settings of the cluster: room for the connections, memory for all data, and no checkpoint
// during a round.
var settings = []string{"shared_buffers=1GB", "max_connections=400", "max_wal_size=4GB", "checkpoint_timeout=30min"}

// postgres runs a new PostgreSQL with the tables of the peer.
func (b *bench) postgres(ctx context.Context, name string) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, filepath.Join(b.work, name), settings...)
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, b.binary("pgservice"), "-dsn", c.DSN(), "-install").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("install the peer's tables: %w: %s", err, out), c.Stop())
	}
	return c, nil
}

// peer is the service on PostgreSQL.
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

// cpu returns the CPU of the service and of its database.
func (p *peer) cpu(c *cluster.Cluster) (time.Duration, error) {
	service, err := gauge.CPU(p.pid())
	if err != nil {
		return 0, err
	}
	database, err := databaseCPU(c)
	return service + database, err
}

// databaseCPU returns the CPU of PostgreSQL: the postmaster and all its children.
func databaseCPU(c *cluster.Cluster) (time.Duration, error) {
	used, _, err := gauge.Family(c.PID())
	return used, err
}

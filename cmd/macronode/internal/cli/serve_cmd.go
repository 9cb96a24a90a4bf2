package cli

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"

	"macronode/adapters/config"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/server"
	"macronode/core/event"
)

// Run runs a node until it has stopped.
func (v *serveCmd) Run(c *Console) error {
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	return c.serve(cfg, c.isTerminal, v.flags()...)
}

// Run runs a node on a temporary directory, which is removed.
func (v *devCmd) Run(c *Console) (err error) {
	if c.tree.Data != "" {
		return exit.Unable(errors.New("dev keeps nothing, so it has no --data: use macronode serve"))
	}
	c.tree.Data, err = os.MkdirTemp("", "macronode-dev-")
	if err != nil {
		return exit.Unable(fmt.Errorf("create a temporary directory: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.tree.Data)) }()
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	return c.serve(cfg, true, v.flags()...)
}

// serve runs a node. show allows it to print the bootstrap key. flags are those of the command line.
func (c *Console) serve(cfg *config.Config, show bool, flags ...config.Flag) error {
	log, level := server.NewLog(cfg.Log, c.err)
	others := slog.NewLogLogger(log.Handler(), slog.LevelDebug) // net/http logs unexpected behaviour of upstreams there
	stdlog.SetOutput(others.Writer())
	stdlog.SetFlags(others.Flags())
	return server.Serve(context.Background(), cfg, server.Options{Log: log, Level: level, Load: func() (*config.Config, error) { return c.load(flags...) }, Version: thisBuild().Version, Signals: server.CatchSignals(),
		Ready:   func(r nodedir.Run) { nodeReport{c}.printGreeting(log, cfg.Data, r, show) },
		Drained: func(s event.Status) { nodeReport{c}.printDrainReport(log, s) }})
}

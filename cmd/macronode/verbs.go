package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"

	"macronode/adapters/config"
	"macronode/adapters/nodedir"
	"macronode/core/event"
)

// options are what a node is served with beside its configuration.
type options struct {
	log     *slog.Logger
	version string
	signals *signals                       // what the operator wants
	ready   func(nodedir.Run)              // is called once, when the node has become ready
	drained func(event.Status)             // is called once, when it has drained
	load    func() (*config.Config, error) // reads the configuration again
	level   *slog.LevelVar                 // of log
}

// Run serves until the node has stopped.
func (v *serveCmd) Run(c *console) error {
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	return c.serve(cfg, c.terminal, v.flags()...)
}

// Run serves a node that leaves nothing behind.
func (v *devCmd) Run(c *console) (err error) {
	if c.tree.Data != "" {
		return cannot(errors.New("dev keeps nothing, so it has no --data: use macronode serve"))
	}
	c.tree.Data, err = os.MkdirTemp("", "macronode-dev-")
	if err != nil {
		return cannot(fmt.Errorf("create a temporary directory: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.tree.Data)) }()
	cfg, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	return c.serve(cfg, true, v.flags()...)
}

// serve runs a node; show says that the first key may be printed. Flags are those that it
// was started with.
func (c *console) serve(cfg *config.Config, show bool, flags ...config.Flag) error {
	log, level := newLog(cfg.Log, c.err)
	others := slog.NewLogLogger(log.Handler(), slog.LevelDebug) // net/http says there what upstreams do that it does not expect
	stdlog.SetOutput(others.Writer())
	stdlog.SetFlags(others.Flags())
	return serve(context.Background(), cfg, options{log: log, level: level, load: func() (*config.Config, error) { return c.load(flags...) }, version: thisBuild().Version, signals: catchSignals(),
		ready:   func(r nodedir.Run) { c.greet(log, cfg.Data, r, show) },
		drained: func(s event.Status) { c.farewell(log, s) }})
}

// newLog writes lines for the operator.
func newLog(l config.Log, to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(levelOf(l))
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inMilliseconds}
	if isJSON(l) {
		return slog.New(slog.NewJSONHandler(to, o)), level
	}
	return slog.New(slog.NewTextHandler(to, o)), level
}

// isJSON reports that lines are written as JSON.
func isJSON(l config.Log) bool { return l.Format == "json" }

// inMilliseconds gives each duration of a line one unit, whatever the format: took becomes
// took_ms, with three decimals.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
}

// levelOf is the least important level that is written.
func levelOf(l config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo // the configuration lets no other text through
	}
	return level
}

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"macronode/core/event"
)

// signals hears what the process is told from the moment it is made, so that an end
// that is asked for during the start is not lost.
type signals struct{ heard chan os.Signal }

func catchSignals() *signals {
	s := &signals{make(chan os.Signal, 8)}
	signal.Notify(s.heard, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	return s
}

// Run carries what is heard to the node, until ctx ends. The first termination or
// interrupt drains, later ones abort; a hang-up has the configuration read again; a quit
// writes all goroutines to dump, and changes nothing.
func (s *signals) Run(ctx context.Context, log *slog.Logger, dump io.Writer, say func(event.Event), reload func()) error {
	defer signal.Stop(s.heard)
	wish := event.Drain
	for {
		select {
		case <-ctx.Done():
			return nil
		case got := <-s.heard:
			switch got {
			case syscall.SIGHUP:
				reload()
			case syscall.SIGQUIT:
				if err := pprof.Lookup("goroutine").WriteTo(dump, 2); err != nil {
					log.Error("goroutine dump failed", "err", err)
				}
			default:
				log.Info("signal received", "signal", got.String(), "again", wish == event.Abort)
				say(event.Signal{Kind: wish})
				wish = event.Abort
			}
		}
	}
}

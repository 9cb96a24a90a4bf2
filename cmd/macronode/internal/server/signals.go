package server

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

// signals receives the signals of the process from its creation, so that a termination during the start is not
// lost.
type signals struct{ received chan os.Signal }

func CatchSignals() *signals {
	s := &signals{make(chan os.Signal, 8)}
	signal.Notify(s.received, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGPIPE) // otherwise a log without a reader would end the node
	return s
}

// Run passes signals to the node until ctx ends. The first termination or interrupt drains, later ones abort; a
// hang-up reloads the configuration; a quit writes all goroutines to dump and changes nothing. A signal that comes later has no effect:
// the process is about to exit, and its status is that of the drain.
func (s *signals) Run(ctx context.Context, log *slog.Logger, dump io.Writer, say func(event.Event), reload func()) error {
	wish := event.Drain
	for {
		select {
		case <-ctx.Done():
			return nil
		case got := <-s.received:
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

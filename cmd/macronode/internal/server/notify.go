package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"macronode/adapters/hostclock"
)

// notifyReady and notifyStopping notify the service manager, if there is one.
func notifyReady(log *slog.Logger)    { notify(log, daemon.SdNotifyReady) }
func notifyStopping(log *slog.Logger) { notify(log, daemon.SdNotifyStopping) }

// notifyReloading notifies the service manager that a reload has begun; notifyReady ends it.
func notifyReloading(log *slog.Logger) {
	notify(log, fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, hostclock.Awake().Microseconds()))
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("service manager notification failed", "state", state, "err", err)
	}
}

// watchdog pings the service manager twice in its interval while alive returns true. It returns at once if there
// is no watchdog.
func watchdog(ctx context.Context, log *slog.Logger, alive func() bool) error {
	allowed, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd watchdog not available", "err", err)
	}
	if allowed > 0 {
		tickWatchdog(ctx, allowed/2, alive, func() { notify(log, daemon.SdNotifyWatchdog) })
	}
	return nil
}

func tickWatchdog(ctx context.Context, every time.Duration, alive func() bool, ping func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if alive() {
				ping()
			}
		}
	}
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"macronode/adapters/hostclock"
)

// notifyReady and notifyStopping tell the service manager, if there is one.
func notifyReady(log *slog.Logger)    { notify(log, daemon.SdNotifyReady) }
func notifyStopping(log *slog.Logger) { notify(log, daemon.SdNotifyStopping) }

// notifyReloading tells it that the configuration is read again; notifyReady ends that.
func notifyReloading(log *slog.Logger) {
	notify(log, fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, hostclock.Awake().Microseconds()))
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("service manager notification failed", "state", state, "err", err)
	}
}

// watchdog tells the service manager that the node is alive, twice in the time it
// allows, for as long as alive says so. It returns at once where nobody watches.
func watchdog(ctx context.Context, log *slog.Logger, alive func() bool) error {
	allowed, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd watchdog not available", "err", err)
	}
	if allowed > 0 {
		beat(ctx, allowed/2, alive, func() { notify(log, daemon.SdNotifyWatchdog) })
	}
	return nil
}

func beat(ctx context.Context, every time.Duration, alive func() bool, ping func()) {
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

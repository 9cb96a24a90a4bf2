package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// systemd is a service manager that returns the notifications it gets.
func systemd(t *testing.T) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		var b [256]byte
		n, err := l.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestServiceManagerIsNotified(t *testing.T) {
	received, log := systemd(t), slog.New(slog.DiscardHandler)
	notifyReady(log)
	if got := received(); got != "READY=1" {
		t.Fatal(got)
	}
	notifyStopping(log)
	if got := received(); got != "STOPPING=1" {
		t.Fatal(got)
	}
	t.Setenv("WATCHDOG_USEC", "2000")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- watchdog(ctx, log, func() bool { return true }) }()
	if got := received(); got != "WATCHDOG=1" {
		t.Fatal(got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// Without a service manager nothing is sent; if it is gone, a warning is logged. The node continues in both cases.
func TestNotifyWithoutServiceManager(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	t.Setenv("NOTIFY_SOCKET", "")
	notifyReady(log)
	if err := watchdog(t.Context(), log, nil); err != nil || lines.Len() > 0 {
		t.Fatal(err, &lines)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	t.Setenv("WATCHDOG_USEC", "soon")
	notifyReady(log)
	if err := watchdog(t.Context(), log, nil); err != nil {
		t.Fatal(err)
	}
	if text := lines.String(); strings.Count(text, "level=WARN") != 2 {
		t.Fatal(text)
	}
}

func TestWatchdogStopsWithLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second+1)
		defer stop()
		asked, pings := 0, 0
		tickWatchdog(ctx, time.Second, func() bool { asked++; return asked <= 4 }, func() { pings++ })
		if asked != 10 || pings != 4 {
			t.Fatalf("asked %d times, told %d times", asked, pings)
		}
	})
}

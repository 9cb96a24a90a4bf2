package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/decisions"
	"macronode/core/event"
)

// startAccessLog starts the writer of the access log. The returned function stops it and waits at most one second for lines that are not
// written: an output that blocks must not delay the shutdown.
func startAccessLog(l *accesslog.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx) // it ends with ctx
	}()
	return func() {
		cancel()
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		}
	}
}

// accessAttrs returns the fields of the line of a request. Of the request itself these are method and path: no query, no header
// and no body.
func accessAttrs(d *decisions.Decision, in, out uint64) []slog.Attr {
	all := []slog.Attr{slog.String("decision", d.ID), slog.String("method", d.Method), slog.String("path", d.Path), slog.String("route", d.Target()),
		slog.Int("status", d.Status), slog.String("code", d.Code), slog.String("reason", d.Why), slog.String("class", d.Class),
		slog.Uint64("tenant", uint64(d.Tenant)), slog.String("peer", d.Peer), slog.Uint64("in", in), slog.Uint64("out", out),
		slog.Duration("waited", time.Duration(d.WaitedUS)*time.Microsecond), slog.Duration("took", time.Duration(d.TookUS)*time.Microsecond)}
	if d.Sent != "" {
		all = append(all, slog.String("request_id", d.Sent))
	}
	if d.Why == event.RejectQuotaExceeded.String() {
		all = append(all, slog.String("quota", d.Rule))
	}
	if len(d.Shadow) > 0 {
		all = append(all, slog.String("shadow", strings.Join(d.Shadow, ",")))
	}
	if len(d.Legs) == 0 {
		return all
	}
	l := &d.Legs[0] // of several parts, the first missing one
	for i := range d.Legs {
		if d.Legs[i].Missing != "" {
			l = &d.Legs[i]
			break
		}
	}
	all = append(all, slog.String("upstream", l.Upstream), slog.Int("tries", l.Count))
	if n := len(l.Tries); n > 0 {
		all = append(all, slog.String("endpoint", l.Tries[n-1].Endpoint))
	}
	if l.Outcome != "" {
		all = append(all, slog.String("outcome", l.Outcome))
	}
	return all
}

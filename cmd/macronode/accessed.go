package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"macronode/adapters/accesslog"
	"macronode/adapters/decisions"
	"macronode/core/event"
)

// startAccess has requests written into the log, once that is turned on. What it returns ends
// that, and waits a second at most for what is not written: a log that takes nothing must
// not keep the node.
func (l *life) startAccess() (end func()) {
	l.access = accesslog.New(l.log.Handler())
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.access.Run(ctx) // it ends with ctx
	}()
	return func() {
		stop()
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		}
	}
}

// accessed is what is said of a request: of what it came with its method and its path, no
// query, no header and nothing of its body.
func accessed(d *decisions.Decision, in, out uint64) []slog.Attr {
	all := []slog.Attr{slog.String("decision", d.ID), slog.String("method", d.Method), slog.String("path", d.Path), slog.String("route", route(d)),
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
	l := &d.Legs[0] // of an answer of parts, the first that is missing says most
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

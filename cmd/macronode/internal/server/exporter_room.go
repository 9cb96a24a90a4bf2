package server

import (
	"context"
	"time"

	"macronode/adapters/hostclock"
	"macronode/core/command"
	"macronode/core/event"
	plane "macronode/core/export"
	"macronode/core/types"
)

// This file has what an exporter records in the tables of the node, and how it waits for room there.

// waitForRoom notes why some streams get nothing, if there is no room; empty: each has its lane.
func (e *exporter) waitForRoom(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := &e.state; {
	case reason == "":
		s.NoRoom = ""
	case s.Full || len(e.full) > 0:
		if s.NoRoom == "" {
			s.Since = time.Now()
		}
		s.NoRoom = reason
	}
}

// beginCommand returns the command that records the sink.
func (e *exporter) beginCommand() *plane.Begin {
	return &plane.Begin{Header: command.Header{Tenant: types.DefaultTenant}, Sink: []byte(e.settings.Name), Now: e.settings.FromNow}
}

// begin records the sink if it is seen for the first time, and returns the last frame whose items it does not get. It returns
// false if there is no room, or the node does not take it now: then it is recorded later. Usually the start or the reload has recorded it.
func (e *exporter) begin(ctx context.Context) (after types.LSN, recorded bool) {
	name := e.settings.Name
	if after, recorded = e.of.streams.journal.readModel.Sink(name); recorded {
		return after, true
	}
	reply := e.of.execute(ctx, e.beginCommand())
	e.setFull(&e.state.Full, &reply, "no room for another sink: "+noRoomForSink)
	return e.of.streams.journal.readModel.Sink(name)
}

// open makes a lane after a position. It returns false if there is no room, or the node does not take it now: then it is opened
// later.
func (e *exporter) open(ctx context.Context, lane plane.Lane, after uint64) bool {
	reply := e.of.execute(ctx, &plane.Open{Header: command.Header{Tenant: lane.Tenant}, Lane: lane, After: after})
	e.setFull(&e.state.Full, &reply, "no room for another lane", "tenant", lane.Tenant.Text(), "stream", string(lane.Stream))
	if reply.Shortage.Limit == event.ExportTenantLanes {
		e.full[lane.Tenant] = true
	}
	return reply.Problem == event.None
}

// retryFull lets tenants that had no room for another lane be tried again, after a pause. A look in between passes them over, so that it
// reaches the others.
func (e *exporter) retryFull() {
	if now := hostclock.Mono(); now >= e.fullTo {
		clear(e.full)
		e.fullTo = now.Add(missingPause)
	}
	e.missing = len(e.full) > 0
}

// setFull logs once that there is no room, and notes it in is.
func (e *exporter) setFull(is *bool, reply *event.Reply, message string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	full := reply.Problem == event.ExportCapacity
	if full && !*is {
		if detail := reply.Shortage.Detail(); detail != "" {
			args = append(args, "detail", detail)
		}
		e.log.Error(message, args...)
	}
	*is = full
}

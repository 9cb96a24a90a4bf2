package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"macronode/adapters/adminapi"
	"macronode/core/command"
	"macronode/core/event"
	plane "macronode/core/export"
	"macronode/core/types"
)

// adminTimeout is the time for a change that an operator makes; a longer one has an unknown outcome.
const adminTimeout = 10 * time.Second

// slowAnswer is how long an attempt takes before the sink is shown as waiting, and longLag how old an item is that it still does not have.
const (
	slowAnswer = 5 * time.Second
	longLag    = time.Minute
)

// exportsAdmin is what operators see and change of the exports.
type exportsAdmin struct{ *exports }

// config returns what the admin API does with exports.
func (e exportsAdmin) config() adminapi.ExportsConfig {
	return adminapi.ExportsConfig{Status: e.status, Quarantine: e.quarantine, Redrive: e.redrive, Skip: e.skip, Backfill: e.backfill, Resume: e.resume, Remove: e.remove}
}

// A laneName identifies a stream of a tenant.
type laneName struct {
	tenant types.Tenant
	stream string
}

// heads returns the last item of each stream, as far as they were read.
func (e exportsAdmin) knownHeads() map[laneName]uint64 {
	heads := map[laneName]uint64{}
	if streams := e.streams.known.Load(); streams != nil {
		for _, s := range *streams {
			heads[laneName{s.Tenant, streamName(s.Stream)}] = s.head
		}
	}
	return heads
}

// status returns the state of all sinks.
func (e exportsAdmin) status() adminapi.Exports {
	isRead := e.streams.known.Load() != nil // read before the heads: then they are those of this or a later look
	heads, bySink := e.knownHeads(), map[string][]adminapi.Lane{}
	e.streams.journal.readModel.Lanes(func(l plane.LaneState) bool {
		name := string(l.Sink)
		bySink[name] = append(bySink[name], adminapi.Lane{Tenant: l.Tenant.Text(), Stream: string(l.Stream), Cursor: l.Cursor,
			Head: max(l.Cursor, heads[laneName{l.Tenant, string(l.Stream)}]), Quarantined: l.Quarantined, Redriven: l.Due})
		return true
	})
	is := adminapi.Exports{Sinks: []adminapi.Sink{}}
	for _, at := range e.sinks() {
		s := at.status()
		if !isRead && s.State == "ok" {
			s.State = "starting"
		}
		s.setLanes(at.withMissing(bySink[s.Name], heads), isRead)
		is.Sinks = append(is.Sinks, s.Sink)
		delete(bySink, s.Name)
	}
	for name, lanes := range bySink { //nolint:maporder // sorted below
		s := sinkStatus{adminapi.Sink{Name: name, State: "unknown"}}
		if old, any := e.leavingOf(name, time.Now()); any {
			s.Reason = old.reason(name)
		}
		s.setLanes(lanes, isRead)
		is.Sinks = append(is.Sinks, s.Sink)
	}
	slices.SortStableFunc(is.Sinks, func(a, b adminapi.Sink) int { return cmp.Compare(a.Name, b.Name) })
	return is
}

// sinkStatus is the state of a sink, with methods to complete it.
type sinkStatus struct{ adminapi.Sink }

// setLanes sets the lanes, those that need attention first, and the sums over them. While the streams were not read, it is not known
// what is pending: 0 would end a wait for the sink at once.
func (s *sinkStatus) setLanes(all []adminapi.Lane, isRead bool) {
	pending := uint64(0)
	for _, l := range all {
		pending += l.Head - l.Cursor
		s.Quarantined += l.Quarantined
		s.Redriven += l.Redriven
	}
	if isRead {
		s.Pending = &pending
	}
	slices.SortFunc(all, func(a, b adminapi.Lane) int {
		return cmp.Or(cmp.Compare(b.Head-b.Cursor, a.Head-a.Cursor), cmp.Compare(b.Quarantined, a.Quarantined), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Stream, b.Stream))
	})
	s.Lanes = append([]adminapi.Lane{}, all[:min(len(all), adminapi.MaxLanes)]...)
	s.MoreLanes = len(all) - len(s.Lanes)
}

// status returns the state of a sink without its lanes.
func (e *exporter) status() sinkStatus {
	now := time.Now()
	old, waits := e.waitsFor(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	stats, s := e.machine.Stats(), adminapi.Sink{Name: e.settings.Name, Kind: e.settings.Kind, State: "ok", Reason: e.state.Reason, FailedAt: e.state.At}
	s.InFlight, s.Blocked = stats.Inflight, stats.Blocked
	switch {
	case e.state.Stopped:
		s.State = "stopped"
	case e.state.Failing || stats.Down:
		s.State = "failing"
	}
	longest := time.Duration(0)
	for _, at := range e.began { //nolint:maporder // the largest counts
		longest = max(longest, now.Sub(at))
	}
	lag := time.Duration(0)
	for _, at := range e.oldest { //nolint:maporder // the largest counts
		lag = max(lag, now.Sub(at))
	}
	if !old.oldest.IsZero() {
		lag = max(lag, now.Sub(old.oldest))
	}
	if e.state.NoRoom != "" {
		lag = max(lag, now.Sub(e.state.Since))
	}
	s.LagSeconds = lag.Seconds()
	switch {
	case s.State != "ok":
	case waits:
		s.State, s.Reason = "waiting", old.reason(s.Name)
	case e.state.NoRoom != "":
		s.State, s.Reason = "waiting", e.state.NoRoom
	case s.Blocked > 0:
		s.State, s.Reason = "waiting", blockedReason(s.Blocked)
	case longest > slowAnswer:
		s.State, s.Reason = "waiting", fmt.Sprintf("no answer for %v", longest.Round(time.Second))
	case lag > longLag:
		s.State, s.Reason = "waiting", fmt.Sprintf("the oldest item waits for %v", lag.Round(time.Second))
	}
	return sinkStatus{s}
}

// blockedReason says for people why streams wait for the quarantine. Its items may be those of other sinks.
func blockedReason(streams int) string {
	wait := "1 stream waits with its item"
	if streams > 1 {
		wait = fmt.Sprintf("%d streams wait with their items", streams)
	}
	return "the quarantine is full, so " + wait + ": see macronode exports quarantine, then deliver its items again with macronode exports redrive, or give them up with macronode exports skip"
}

// withMissing adds the streams that have no lane yet.
func (e *exporter) withMissing(lanes []adminapi.Lane, heads map[laneName]uint64) []adminapi.Lane {
	streams := e.of.streams.known.Load()
	if streams == nil {
		return lanes
	}
	for _, s := range *streams {
		lane, err := plane.NewLane(e.settings.Name, s.Tenant, streamName(s.Stream))
		if err != nil || !e.settings.Delivers(s.Tenant, kindOf(s.Stream)) {
			continue
		}
		if _, known := e.of.streams.journal.readModel.Lane(lane.LaneID); !known {
			lanes = append(lanes, adminapi.Lane{Tenant: s.Tenant.Text(), Stream: string(lane.Stream), Head: heads[laneName{s.Tenant, string(lane.Stream)}]})
		}
	}
	return lanes
}

// lanesOf returns the lanes of a sink that are wanted; sink empty: of all.
func (e exportsAdmin) lanesOf(sink string, wanted func(plane.LaneState) bool) (all []plane.Lane) {
	e.streams.journal.readModel.Lanes(func(l plane.LaneState) bool {
		if (sink == "" || string(l.Sink) == sink) && wanted(l) {
			all = append(all, plane.Lane{LaneID: l.LaneID, Sink: slices.Clone(l.Sink), Stream: slices.Clone(l.Stream)})
		}
		return true
	})
	slices.SortFunc(all, func(a, b plane.Lane) int {
		return cmp.Or(cmp.Compare(string(a.Sink), string(b.Sink)), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(string(a.Stream), string(b.Stream)))
	})
	return all
}

// hasRows reports whether items of a lane are quarantined.
func hasRows(l plane.LaneState) bool { return l.Quarantined > 0 }

// rowsOf returns the quarantined positions of a lane in order.
func (e exportsAdmin) rowsOf(id types.LaneID) (rows []plane.Quarantined) {
	e.streams.journal.readModel.Quarantined(id, func(q plane.Quarantined) bool {
		rows = append(rows, q)
		return true
	})
	slices.SortFunc(rows, func(a, b plane.Quarantined) int { return cmp.Compare(a.Position, b.Position) })
	return rows
}

// quarantine returns the quarantined items of a sink; sink empty: of all.
func (e exportsAdmin) quarantine(sink string) adminapi.Quarantine {
	is := adminapi.Quarantine{Items: []adminapi.QuarantinedItem{}}
	for _, l := range e.lanesOf(sink, hasRows) {
		for _, q := range e.rowsOf(l.LaneID) {
			if len(is.Items) == adminapi.MaxLanes {
				is.More++
				continue
			}
			is.Items = append(is.Items, adminapi.QuarantinedItem{Sink: string(l.Sink), Tenant: l.Tenant.Text(), Stream: string(l.Stream), Position: q.Position,
				Reason: q.Reason.String(), Status: int(q.Status), At: time.UnixMilli(int64(q.At)).UTC(), Due: q.Due})
		}
	}
	return is
}

// redrive marks quarantined items to be delivered again: one, or those of a lane, or those of a sink.
func (e exportsAdmin) redrive(at adminapi.LaneRef) (items int, problem event.Problem) {
	if e.exporter(at.Sink) == nil {
		return 0, event.NotFound
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(exportCommands)
	var done, failed atomic.Int64 // failed: the last problem
	for _, l := range e.lanesOf(at.Sink, hasRows) {
		if at.Stream != "" && (string(l.Stream) != at.Stream || l.Tenant != at.Tenant) {
			continue
		}
		for _, q := range e.rowsOf(l.LaneID) {
			if at.Position != 0 && q.Position != at.Position {
				continue
			}
			group.Go(func() error {
				p := e.execute(ctx, &plane.Redrive{Header: command.Header{Tenant: l.Tenant}, Lane: l.LaneID, Position: q.Position}).Problem
				if p == event.None {
					done.Add(1)
				} else {
					failed.Store(int64(p))
				}
				return nil
			})
		}
	}
	_ = group.Wait() // the problem says what failed
	e.exporter(at.Sink).lookAgain()
	problem = event.Problem(failed.Load())
	if items = int(done.Load()); items == 0 && problem == event.None && at.Position != 0 {
		problem = event.NotFound
	}
	return items, problem
}

// skip gives up a quarantined item, or all items of a lane up to a position.
func (e exportsAdmin) skip(at adminapi.LaneRef) event.Problem {
	return e.change(at, func(h command.Header, l plane.LaneState, head uint64) command.Command {
		for _, q := range e.rowsOf(l.LaneID) {
			if q.Position == at.Position {
				return &plane.Discard{Header: h, Lane: l.LaneID, Position: at.Position}
			}
		}
		if at.Position > head {
			return nil
		}
		return &plane.Skip{Header: h, Lane: l.LaneID, To: at.Position}
	})
}

// backfill delivers all items of a lane from a position again.
func (e exportsAdmin) backfill(at adminapi.LaneRef) event.Problem {
	return e.change(at, func(h command.Header, l plane.LaneState, _ uint64) command.Command {
		return &plane.Rewind{Header: h, Lane: l.LaneID, To: at.Position - 1}
	})
}

// change gives the node a command for a lane. No command is a bad request.
func (e exportsAdmin) change(at adminapi.LaneRef, of func(h command.Header, l plane.LaneState, head uint64) command.Command) event.Problem {
	lane, err := plane.NewLane(at.Sink, at.Tenant, at.Stream)
	if err != nil {
		return event.BadRequest
	}
	is, known := e.streams.journal.readModel.Lane(lane.LaneID)
	if !known {
		return event.NotFound
	}
	c := of(command.Header{Tenant: at.Tenant}, is, e.knownHeads()[laneName{at.Tenant, at.Stream}])
	if c == nil {
		return event.BadRequest
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	problem := e.execute(ctx, c).Problem
	if sink := e.exporter(at.Sink); sink != nil {
		sink.lookAgain(lane.LaneID)
	}
	return problem
}

// resume lets a stopped sink go on. It reports whether the sink was stopped.
func (e exportsAdmin) resume(sink string) (bool, event.Problem) {
	at := e.exporter(sink)
	if at == nil {
		return false, event.NotFound
	}
	return at.resume(), event.None
}

// remove ends the lanes of a sink that the configuration does not have, forgets it, and returns the number of its lanes. If an earlier
// delivery has not ended, it changes nothing, and why says so.
func (e exportsAdmin) remove(sink string) (lanes int, why string, problem event.Problem) {
	if e.exporter(sink) != nil {
		return 0, "", event.BadRequest
	}
	if old, any := e.leavingOf(sink, time.Now()); any {
		return 0, "The sink cannot be removed yet: " + old.reason(sink) + ".", event.Busy
	}
	lanes, problem = e.forget(sink)
	return lanes, "", problem
}

// forget is remove for a sink of which nothing runs.
func (e exportsAdmin) forget(sink string) (lanes int, problem event.Problem) {
	all := e.lanesOf(sink, func(plane.LaneState) bool { return true })
	_, seen := e.streams.journal.readModel.Sink(sink)
	if len(all) == 0 && !seen {
		return 0, event.NotFound
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(exportCommands)
	var failed atomic.Int64 // the last problem
	for _, l := range all {
		group.Go(func() error {
			if p := e.execute(ctx, &plane.Remove{Header: command.Header{Tenant: l.Tenant}, Lane: l.LaneID}).Problem; p != event.None {
				failed.Store(int64(p))
			}
			return nil
		})
	}
	_ = group.Wait() // the problem says what failed
	problem = event.Problem(failed.Load())
	if seen && problem == event.None { // last, so that a repeated attempt finds the sink
		problem = e.execute(ctx, &plane.Forget{Header: command.Header{Tenant: types.DefaultTenant}, Sink: []byte(sink)}).Problem
	}
	return len(all), problem
}

// exporter returns the exporter of a sink; nil if the configuration has no such sink.
func (e *exports) exporter(sink string) *exporter {
	for _, at := range e.sinks() {
		if at.settings.Name == sink {
			return at
		}
	}
	return nil
}

package main

import (
	"sync"
	"sync/atomic"

	"macronode/adapters/adminapi"
	"macronode/adapters/fs"
	"macronode/adapters/httpapi"
	"macronode/adapters/loop"
	"macronode/adapters/registry"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/types"
)

// What operators see of the parts: each queue of the registry is shown once it is there.

// A board has all that something waits in, by the names of the registry.
type board struct {
	mu    sync.Mutex
	shown map[string]gauge

	http, admin   atomic.Int64 // open connections
	second, looks atomic.Int64 // requests of HTTP/2, of the same listeners
}

// listenerGauges are what is open at one listener, and which share of it a peer has.
type listenerGauges struct {
	connections, requests *atomic.Int64 // requests of HTTP/2
	share                 func(peerSettings) int
}

func (b *board) publicListener() listenerGauges { return listenerGauges{&b.http, &b.second, ofPublic} }
func (b *board) adminListener() listenerGauges  { return listenerGauges{&b.admin, &b.looks, ofAdmin} }

// A gauge is how full something is, and how full it may be. Dropped is what its policy
// has lost; nil: nothing, ever.
type gauge struct {
	is      func() (depth, limit int)
	dropped func() uint64
}

func (b *board) put(name string, g gauge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil {
		b.shown = make(map[string]gauge)
	}
	b.shown[name] = g
}

func (b *board) get(name string) (g gauge, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok = b.shown[name]
	return g, ok
}

// queues is everything bounded that something waits in.
func (l *life) queues() []adminapi.Queue {
	all := []adminapi.Queue{}
	for _, q := range registry.Queues {
		g, ok := l.board.get(q.Name)
		if !ok {
			continue // it is not there yet
		}
		row := adminapi.Queue{Name: q.Name, Unit: q.Unit, Policy: string(q.Policy)}
		if row.Depth, row.Limit = g.is(); g.dropped != nil {
			row.Dropped = g.dropped()
		}
		all = append(all, row)
	}
	return all
}

// show has a queue shown, once for ever.
func (l *life) show(name string, is func() (depth, limit int)) { l.showLossy(name, is, nil) }

func (l *life) showLossy(name string, is func() (depth, limit int), dropped func() uint64) {
	l.board.put(name, gauge{is, dropped})
	l.metrics.Sample("queue_depth", func() float64 {
		depth, _ := is()
		return float64(depth)
	}, name)
}

// showDoor shows what is there before the journal is read.
func (l *life) showDoor(s *signals) {
	n := l.settings().core
	for c := range types.NumClasses {
		l.show("work_"+c.String(), func() (int, int) { return l.desk.Depth(c), l.desk.Limit(c) })
	}
	in := func() (n int) {
		for c := range types.NumClasses {
			n += l.desk.In(c)
		}
		return n
	}
	l.show("tickets", func() (int, int) { return in(), l.desk.Size() })
	l.metrics.Sample("worker_inflight", func() float64 { return float64(in()) })
	l.show("cancellations", l.desk.Gone)
	l.showGate()
	l.show("startup_events", l.ear.waiting)
	l.show("signals", func() (int, int) { return len(s.heard), cap(s.heard) })
	l.show("reloads", l.changes.waiting)
	l.show("connections_http", func() (int, int) { return int(l.board.http.Load()), l.publicServer().MaxConns })
	l.show("connections_admin", func() (int, int) { return int(l.board.admin.Load()), l.adminServer().MaxConns })
	l.show("streams_http", func() (int, int) { return int(l.board.second.Load()), l.publicServer().MaxConns })
	l.show("streams_admin", func() (int, int) { return int(l.board.looks.Load()), l.adminServer().MaxConns })
	status := func(of func(event.Status) int, limit int) func() (int, int) {
		return func() (int, int) { return of(l.ear.status()), limit }
	}
	l.show("held_replies", status(func(s event.Status) int { return int(s.HeldReplies) }, n.MaxHeldReplies))
	l.show("idempotency_keys", status(func(s event.Status) int { return int(s.Keys) }, n.State.Idempotency.Keys))
	l.show("holds", status(func(s event.Status) int { return int(s.Holds) }, n.State.Ledger.Holds))
	l.show("backlog_bytes", status(func(s event.Status) int { return int(s.Backlog) }, int(n.MaxUnsyncedBytes)))
	l.showLossy("audit", l.audit.Waiting, func() uint64 { return l.audit.Counts().Lost })
	l.showLossy("access", l.access.Waiting, func() uint64 { return l.access.Counts().Lost })
	l.metrics.Sample("access_lines_total", func() float64 { return float64(l.access.Counts().Written) }, "written")
	l.metrics.Sample("access_lines_total", func() float64 { return float64(l.access.Counts().LeftOut) }, "left_out")
	l.metrics.Sample("access_lines_total", func() float64 { return float64(l.access.Counts().Lost) }, "lost")
	l.metrics.Sample("audit_lines_total", func() float64 { return float64(l.audit.Counts().Written) })
	l.metrics.Sample("audit_lost_total", func() float64 { return float64(l.audit.Counts().Lost) })
	l.metrics.Sample("audit_errors_total", func() float64 { return float64(l.audit.Counts().Failed) })
	l.metrics.Sample("tls_certificate_not_after_timestamp_seconds", func() float64 {
		if l.tls == nil {
			return 0
		}
		return float64(l.tls.Shown().Ends().Unix())
	})
	for c := range types.NumServices {
		l.metrics.Sample("tasks_spawned_total", func() float64 { return float64(l.children.Counts(c).Started) }, c.String())
		l.metrics.Sample("tasks_completed_total", func() float64 { return float64(l.children.Counts(c).Stopped) }, c.String())
		l.metrics.Sample("tasks_canceled_total", func() float64 { return float64(l.children.Counts(c).Killed) }, c.String())
		l.metrics.Sample("tasks_aborted_total", func() float64 { return float64(l.children.Counts(c).Died) }, c.String())
	}
}

// showBooks shows what is there once the journal was read.
func (l *life) showBooks(running *loop.Loop) {
	journal, index, kept := l.journal, l.index, fs.Dir(l.snapshots())
	l.desk.Again = func() { l.metrics.Retried("look") }
	l.show("loop_events", running.Late)
	l.show("folds", running.Folds)
	l.show("recent_frames", l.follower.Recent)
	l.show("await_seq", l.follower.Waiting)
	l.show("index_ring", index.Handed)
	l.show("index_tail", index.Tails)
	l.show("index_await", index.Awaited)
	l.metrics.Sample("journal_bytes_total", func() float64 { return float64(journal.Grown()) })
	l.metrics.Sample("snapshot_lsn", func() float64 {
		all, err := snapshot.List(kept)
		if err != nil || len(all) == 0 {
			return 0
		}
		return float64(all[0])
	})
	l.metrics.Sample("index_lag_lsn", func() float64 {
		durable, mark := journal.Durable(), index.Mark().LSN
		return float64(durable - min(durable, mark))
	})
	l.metrics.Sample("index_tables", func() float64 { return float64(index.Stats().Tables) })
	l.metrics.Sample("index_disk_bytes", func() float64 { return float64(index.Stats().Disk) })
	l.metrics.Sample("index_rebuilds_total", func() float64 { return float64(index.Stats().Rebuilt) })
}

// showAPI shows what the public API lends.
func (l *life) showAPI(a *httpapi.API) {
	l.show("large_bodies", a.LargeBodies)
}

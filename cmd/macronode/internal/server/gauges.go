package server

import (
	"macronode/adapters/fs"
	"macronode/adapters/loop"
	"macronode/adapters/snapshot"
	"macronode/core/event"
	"macronode/core/types"
)

// addStartGauges reports what exists before the journal is read.
func addStartGauges(s *Server) {
	addDispatcherGauges(s)
	addAdmissionGauges(s)
	addCoreGauges(s)
	addLogGauges(s)
	heard := s.options.Signals.received
	s.gauges.add("startup_events", s.inbox.depth)
	s.gauges.add("signals", func() (int, int) { return len(heard), cap(heard) })
	s.gauges.add("reloads", s.reloader.depth)
	public, admin := s.listeners.public().MaxConns, s.listeners.admin().MaxConns
	s.gauges.add("connections_http", func() (int, int) { return int(s.gauges.http.Load()), public })
	s.gauges.add("connections_admin", func() (int, int) { return int(s.gauges.admin.Load()), admin })
	s.gauges.add("connections_s3", func() (int, int) { return int(s.gauges.s3.Load()), public })
	s.gauges.add("streams_s3", func() (int, int) { return int(s.gauges.s3Streams.Load()), public })
	s.gauges.add("streams_http", func() (int, int) { return int(s.gauges.httpStreams.Load()), public })
	s.gauges.add("streams_admin", func() (int, int) { return int(s.gauges.adminStreams.Load()), admin })
	s.metrics.Sample("tls_certificate_not_after_timestamp_seconds", s.certificates.notAfter)
	s.metrics.Sample("metered_requests_waiting", func() float64 { return float64(s.metering.Waiting()) })
	s.metrics.Sample("prepaid_uncollected_tenants", func() float64 { return float64(s.metering.Uncollected()) })
	for c := range types.NumServices {
		s.metrics.Sample("tasks_spawned_total", func() float64 { return float64(s.services.Counts(c).Started) }, c.String())
		s.metrics.Sample("tasks_completed_total", func() float64 { return float64(s.services.Counts(c).Stopped) }, c.String())
		s.metrics.Sample("tasks_canceled_total", func() float64 { return float64(s.services.Counts(c).Killed) }, c.String())
		s.metrics.Sample("tasks_aborted_total", func() float64 { return float64(s.services.Counts(c).Died) }, c.String())
	}
}

// addDispatcherGauges reports the requests that are in the core.
func addDispatcherGauges(s *Server) {
	d := s.dispatcher
	for c := range types.NumClasses {
		s.gauges.add("work_"+c.String(), func() (int, int) { return d.Depth(c), d.Limit(c) })
	}
	in := func() (n int) {
		for c := range types.NumClasses {
			n += d.InFlight(c)
		}
		return n
	}
	s.gauges.add("tickets", func() (int, int) { return in(), d.Size() })
	s.metrics.Sample("worker_inflight", func() float64 { return float64(in()) })
	s.gauges.add("cancellations", d.Cancellations)
}

// addAdmissionGauges reports the requests that wait for admission and those that are admitted.
func addAdmissionGauges(s *Server) {
	g, limits := s.dispatcher.Admission, s.applied.Load().Policy.Facets
	s.gauges.add("admission_slots", func() (depth, limit int) {
		for c := range types.NumClasses {
			depth += g.InFlight(c)
		}
		return depth, g.Size()
	})
	s.gauges.add("admission_updates", g.Updates)
	s.gauges.add("admission_queue_parts", func() (depth, limit int) { return int(s.inbox.status().PacedParts), g.Size() })
	s.gauges.add("upstream_queries", s.dispatcher.Upstreams.InFlight)
	s.gauges.add("decompressors", s.builder.inflaters.Depth)
	s.gauges.add("decompressor_waits", s.builder.inflaters.Waiting)
	s.gauges.add("decisions", s.decisions.Kept)
	for f := range types.NumFacets {
		s.gauges.add("admission_queue_"+f.String(), func() (depth, limit int) {
			for _, n := range s.inbox.status().Queued[f] {
				depth += int(n)
			}
			return depth, limits[f].Queue
		})
		s.metrics.Sample("semaphore_inflight", func() float64 { return float64(s.inbox.status().Permits[f]) }, f.String())
		for c := range types.NumClasses {
			s.metrics.Sample("fq_queued", func() float64 { return float64(s.inbox.status().Queued[f][c]) }, f.String(), c.String())
		}
	}
	for c := range types.NumClasses {
		s.metrics.Sample("fq_inflight", func() float64 { return float64(g.InFlight(c)) }, c.String())
		s.metrics.Sample("fq_tokens", func() float64 { return float64(s.inbox.status().Deficits[c]) }, c.String())
	}
	s.metrics.Sample("permits_revoked_total", func() float64 { return float64(s.inbox.status().PermitsRevoked) })
}

// addCoreGauges reports the queues whose depth is in the status of the core.
func addCoreGauges(s *Server) {
	n := s.start.Core
	status := func(of func(event.Status) int, limit int) func() (int, int) {
		return func() (int, int) { return of(s.inbox.status()), limit }
	}
	s.gauges.add("held_replies", status(func(s event.Status) int { return int(s.HeldReplies) }, n.MaxHeldReplies))
	s.gauges.add("idempotency_keys", status(func(s event.Status) int { return int(s.Keys) }, n.State.Idempotency.Keys))
	s.gauges.add("holds", status(func(s event.Status) int { return int(s.Holds) }, n.State.Ledger.Holds))
	s.gauges.add("backlog_bytes", status(func(s event.Status) int { return int(s.Backlog) }, int(n.MaxUnsyncedBytes)))
}

// addLogGauges reports the access log and the audit log.
func addLogGauges(s *Server) {
	access := s.accessLog
	s.gauges.addLossy("audit", s.audit.Waiting, func() uint64 { return s.audit.Counts().Lost })
	s.gauges.addLossy("access", access.Waiting, func() uint64 { return access.Counts().Lost })
	s.metrics.Sample("access_lines_total", func() float64 { return float64(access.Counts().Written) }, "written")
	s.metrics.Sample("access_lines_total", func() float64 { return float64(access.Counts().LeftOut) }, "left_out")
	s.metrics.Sample("access_lines_total", func() float64 { return float64(access.Counts().Lost) }, "lost")
	s.metrics.Sample("audit_lines_total", func() float64 { return float64(s.audit.Counts().Written) })
	s.metrics.Sample("audit_lost_total", func() float64 { return float64(s.audit.Counts().Lost) })
	s.metrics.Sample("audit_omitted_total", func() float64 { return float64(s.audit.Counts().Omitted) })
	s.metrics.Sample("audit_errors_total", func() float64 { return float64(s.audit.Counts().Failed) })
}

// addJournalGauges reports what exists once the journal is read.
func addJournalGauges(s *Server, running *loop.Loop) {
	journal, index, kept := s.store.journal, s.index, fs.Dir(s.store.snapshotsDir())
	s.dispatcher.OnStaleRead = func() { s.metrics.Retried("look") }
	s.gauges.add("loop_events", running.QueuedEvents)
	s.gauges.add("folds", running.Folds)
	s.gauges.add("recent_frames", s.store.readModel.Recent)
	s.gauges.add("await_seq", s.store.readModel.Waiting)
	s.gauges.add("index_ring", index.Handed)
	s.gauges.add("index_tail", index.Tails)
	s.gauges.add("index_await", index.Awaited)
	s.metrics.Sample("journal_bytes_total", func() float64 { return float64(journal.Grown()) })
	s.metrics.Sample("snapshot_lsn", func() float64 {
		all, err := snapshot.List(kept)
		if err != nil || len(all) == 0 {
			return 0
		}
		return float64(all[0])
	})
	s.metrics.Sample("index_lag_lsn", func() float64 {
		durable, mark := journal.Durable(), index.Mark().LSN
		return float64(durable - min(durable, mark))
	})
	s.metrics.Sample("index_tables", func() float64 { return float64(index.Stats().Tables) })
	s.metrics.Sample("index_abandoned_engines", func() float64 { return float64(index.Stats().Abandoned) })
	s.metrics.Sample("index_disk_bytes", func() float64 { return float64(index.Stats().Disk) })
	s.metrics.Sample("index_rebuilds_total", func() float64 { return float64(index.Stats().Rebuilt) })
}

// addUpstreamSeries reports the state of each configured upstream.
func addUpstreamSeries(s *Server) {
	s.metrics.Standings(func(name string) (event.UpstreamStats, bool) {
		for n, of := range s.applied.Load().Numbers.Upstreams.Names {
			if of == name && s.inbox.attached() {
				return s.dispatcher.Upstreams.Stats(uint16(n))
			}
		}
		return event.UpstreamStats{}, false
	})
}

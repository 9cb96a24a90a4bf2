package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"macronode/adapters/audit"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/cmd/macronode/internal/testkit/journaldir"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

func classOf(name string) (c types.Class) {
	for c = range types.NumClasses {
		if c.String() == name {
			return c
		}
	}
	panic(name)
}

func facetOf(name string) (f types.Facet) {
	for f = range types.NumFacets {
		if f.String() == name {
			return f
		}
	}
	panic(name)
}

func childNamed(name string) (c types.Service) {
	for c = range types.NumServices {
		if c.String() == name {
			return c
		}
	}
	panic(name)
}

func problemOf(code string) event.Problem {
	for _, p := range registry.BeforeWork {
		if p.Code() == code {
			return p
		}
	}
	panic(code)
}

// ofCourse keeps a request that met this behind the gate.
func (m *metered) ofCourse(legs ...proxy.UpstreamTrace) *proxy.Trace {
	return &proxy.Trace{Upstreams: legs}
}

func (m *metered) keep(d httpapi.Decision) {
	d.Config = &m.applied.Load().Face
	m.sink.Keep(d)
}

// one more decision is kept with each request.
func withDecision(others testkit.Moves) testkit.Moves {
	if others == nil {
		others = testkit.Moves{}
	}
	others[testkit.QueueSeries("decisions")]++
	return others
}

// legThat is a leg whose outcome is the given word.
func legThat(upstream, outcome string) proxy.UpstreamTrace {
	l := proxy.UpstreamTrace{Upstream: upstream}
	switch {
	case outcome == "ok":
		l.Attempts = []proxy.Attempt{{Result: event.AttemptCompleted}}
	case slices.Contains(registry.Symptoms, outcome):
		l.Attempts = []proxy.Attempt{{Result: event.AttemptFailed, Reason: proxy.FailureReason(outcome)}}
	case outcome == proxy.NoDecompressor:
		l.NoDecompressor = true
	default:
		for s := event.EndpointPicked + 1; s < event.NumNoEndpointReasons; s++ {
			if s.String() == outcome {
				l.NoEndpoint = s
			}
		}
	}
	return l
}

func answeredBy(upstream string) string {
	return testkit.Series("upstream_requests_total", "upstream", upstream, "outcome", "ok")
}

func failedTry(upstream, symptom string) string {
	return testkit.Series("upstream_fail_total", "upstream", upstream, "symptom", symptom)
}

// runs starts a child, and ends it as end says.
func (m *metered) runs(name string, end func(types.Service)) {
	c := childNamed(name)
	m.services.Do(event.ServiceCommand{Service: c, Verb: event.StartService})
	if end == nil {
		return
	}
	end(c)
	testkit.Must(m.t, m.services.Wait(m.t.Context(), c))
}

func spawned(name string) testkit.Moves {
	return testkit.Moves{testkit.Series("tasks_spawned_total", "kind", name): 1}
}

// pays writes one frame into the journal.
func (m *metered) pays() (bytes float64) {
	before := m.store.journal.Grown()
	journaldir.Pay(m.t, m.store.journal, m.store.journal.Durable()+1)
	return float64(m.store.journal.Grown() - before)
}

// circuit returns the circuit of an upstream for a group of callers.
func (m *metered) circuit(l []string) *event.CircuitStats {
	return &m.upstreams[l[0]].Circuits[map[string]event.Callers{"authenticated": event.Authenticated, "anonymous": event.Anonymous}[l[1]]]
}

func standing(set func(s *event.UpstreamStats)) cause {
	return func(m *metered, l []string) (float64, testkit.Moves) {
		set(m.upstreams[l[0]])
		return 3, nil
	}
}

func status(by float64, set func(s *event.Status)) cause {
	return func(m *metered, _ []string) (float64, testkit.Moves) {
		set(&m.core.status)
		return by, nil
	}
}

// causes are by the name of the metric.
var causes = map[string]cause{
	"request_latency_seconds": func(m *metered, l []string) (float64, testkit.Moves) {
		answered, _ := m.meter.Endpoint(l[0], l[1])
		answered(2*time.Second, 200, []byte("d_1"))
		return 1, testkit.Moves{testkit.Series("request_latency_seconds_sum", "endpoint", l[0], "method", l[1]): 2, testkit.Series("http_requests_total", "route", l[0], "method", l[1], "code", "2xx"): 1}
	},
	"http_requests_total": func(m *metered, l []string) (float64, testkit.Moves) {
		answered, _ := m.meter.Endpoint(l[0], l[1])
		answered(2*time.Second, 100*slices.Index(registry.StatusClasses, l[2]), []byte("d_1"))
		return 1, testkit.Moves{testkit.Series("request_latency_seconds_sum", "endpoint", l[0], "method", l[1]): 2, testkit.Series("request_latency_seconds_count", "endpoint", l[0], "method", l[1]): 1}
	},
	"decision_seconds": func(m *metered, l []string) (float64, testkit.Moves) {
		m.meter.Decided(3 * time.Second)
		return 1, testkit.Moves{testkit.Series("decision_seconds_sum", "plane", l[0]): 3}
	},
	"busy_rejections_total": func(m *metered, l []string) (float64, testkit.Moves) {
		at := slices.IndexFunc(registry.Endpoints, func(e []string) bool { return e[0] == l[0] })
		_, busy := m.meter.Endpoint(l[0], registry.Endpoints[at][1])
		busy()
		return 1, nil
	},
	"rejected_total": func(m *metered, l []string) (float64, testkit.Moves) {
		switch {
		case l[1] == "max_conns":
			m.hooks().Refused()
		case l[1] == "max_conns_per_peer":
			m.hooks().PeerRefused()
		case l[1] == "framing":
			m.hooks().AmbiguousRequest()
		case l[1] == "frame_flood":
			m.hooks().Flooded()
		case l[1] == "rejected_flood":
			m.hooks().RejectedFlood()
		case l[0] == "proxy":
			m.meter.Refused(types.FacetProxy, problemOf(l[1]))
		case l[0] == "storage":
			m.meter.Refused(types.FacetStorage, problemOf(l[1]))
		default:
			m.meter.Refused(types.FacetWallet, problemOf(l[1]))
			m.meter.Refused(types.FacetQuery, problemOf(l[1]))
			return 2, nil
		}
		return 1, nil
	},
	"connections_delayed_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.hooks().Delayed()
		return 1, nil
	},
	"admission_refused_total": func(m *metered, l []string) (float64, testkit.Moves) {
		for why := event.Admitted + 1; why < event.NumRejectReasons; why++ {
			if why.String() == l[1] {
				m.meter.Rejected(classOf(l[0]), why)
			}
		}
		return 1, nil
	},
	"quota_refused_total": func(m *metered, l []string) (float64, testkit.Moves) {
		at := slices.IndexFunc(m.applied.Load().Face.Quotas, func(q httpapi.Policy) bool { return q.Name == l[0] })
		v := event.Decision{Problem: event.Busy, Reason: event.RejectQuotaExceeded, Rule: uint8(at) + 1}
		if l[1] == "shadow" {
			v = event.Decision{Shadow: 1 << at}
		}
		m.keep(httpapi.Decision{Verdict: v})
		return 1, withDecision(nil)
	},
	"fq_inflight": func(m *metered, l []string) (float64, testkit.Moves) {
		m.dispatcher.Admission.Enter(event.Admit{Class: classOf(l[0])})
		return 1, testkit.Moves{testkit.QueueSeries("admission_slots"): 1, testkit.QueueSeries("work_" + l[0]): 1}
	},
	"fq_queued": func(m *metered, l []string) (float64, testkit.Moves) {
		m.core.status.Queued[facetOf(l[0])][classOf(l[1])] += 7
		return 7, testkit.Moves{testkit.QueueSeries("admission_queue_" + l[0]): 7}
	},
	"fq_tokens": func(m *metered, l []string) (float64, testkit.Moves) {
		m.core.status.Deficits[classOf(l[0])] += 9
		return 9, nil
	},
	"semaphore_inflight": func(m *metered, l []string) (float64, testkit.Moves) {
		m.core.status.Permits[facetOf(l[0])] += 5
		return 5, nil
	},
	"permits_revoked_total":     status(6, func(s *event.Status) { s.PermitsRevoked += 6 }),
	"idempotency_replays_total": func(m *metered, _ []string) (float64, testkit.Moves) { m.meter.Replayed(); return 1, nil },
	"worker_inflight": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.submits(types.ClassAuthed)
		return 1, testkit.Moves{testkit.QueueSeries("tickets"): 1, testkit.QueueSeries("work_authed"): 1}
	},
	"io_errors_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.store.fault(errors.New("no disk"))
		return 1, nil
	},
	"io_timeouts_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.meter.TimedOut(map[string]event.Problem{"reply": event.OutcomeUnknown, "await_seq": event.Timeout}[l[0]])
		return 1, nil
	},
	"backoff_retries_total": func(m *metered, l []string) (float64, testkit.Moves) {
		if l[0] == "look" {
			m.dispatcher.OnStaleRead()
			return 1, nil
		}
		ctx, stop := context.WithCancel(m.t.Context())
		b := m.bootstrap()
		b.dir = "/dev/null" // no directory
		b.log = slog.New(stopper{slog.DiscardHandler, stop})
		b.run(ctx, false)
		return 1, nil
	},
	"readyz_state":         status(2, func(s *event.Status) { s.Ready, s.Phase = true, types.Ready }),
	"journal_lsn":          status(4, func(s *event.Status) { s.Durable += 4 }),
	"follower_lag_lsn":     status(3, func(s *event.Status) { s.LSN, s.Applied = 8, 5 }),
	"clock_offset_seconds": status(1.5, func(s *event.Status) { s.Offset = 1500 * time.Millisecond }),
	"ready_dependency_unmet": func(m *metered, l []string) (float64, testkit.Moves) {
		for c := range types.AllDependencies.Each {
			if c.String() == l[0] {
				m.core.status.WaitingFor = m.core.status.WaitingFor.With(c)
			}
		}
		return 1, nil
	},
	"service_restarts_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.core.status.Restarts[childNamed(l[0])] += 2
		return 2, nil
	},
	"tasks_spawned_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.runs(l[0], nil)
		m.t.Cleanup(func() { m.services.Do(event.ServiceCommand{Service: childNamed(l[0]), Verb: event.KillService}) })
		return 1, nil
	},
	"tasks_completed_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.runs(l[0], func(c types.Service) { m.services.Do(event.ServiceCommand{Service: c, Verb: event.StopService}) })
		return 1, spawned(l[0])
	},
	"tasks_canceled_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.runs(l[0], func(c types.Service) { m.services.Do(event.ServiceCommand{Service: c, Verb: event.KillService}) })
		return 1, spawned(l[0])
	},
	"tasks_aborted_total": func(m *metered, l []string) (float64, testkit.Moves) {
		if l[0] == "request" {
			m.meter.Panicked()
			return 1, nil
		}
		m.runs(l[0], func(types.Service) { m.fail <- struct{}{} })
		return 1, spawned(l[0])
	},
	"handshakes_total": func(m *metered, l []string) (float64, testkit.Moves) {
		for g := range httpserver.NumHandshakeResults {
			if g.String() == l[0] {
				m.hooks().HandshakeDone(g)
			}
		}
		return 1, nil
	},
	"idle_connections_closed_total": func(m *metered, l []string) (float64, testkit.Moves) {
		for by := range httpserver.NumConnLimits {
			if by.String() == l[0] {
				m.hooks().IdleClosed(by)
			}
		}
		return 1, nil
	},
	"tls_certificate_not_after_timestamp_seconds": func(m *metered, _ []string) (float64, testkit.Moves) {
		dir := m.t.TempDir()
		testkit.WriteCertificate(m.t, dir, time.Now().Add(30*24*time.Hour))
		read, err := httpserver.ReadCertificate(dir+"/cert", dir+"/key", time.Now())
		testkit.Must(m.t, err)
		m.certificates.tls = httpserver.NewTLS(read, false)
		return float64(read.NotAfter().Unix()), nil
	},
	"upstream_requests_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.keep(httpapi.Decision{Trace: m.ofCourse(legThat(l[0], l[1]))})
		others := withDecision(nil)
		if slices.Contains(registry.Fails, l[1]) {
			others[failedTry(l[0], l[1])] = 1
		}
		return 1, others
	},
	// Of a request that another try answered, the tries that failed are counted as well.
	"upstream_fail_total": func(m *metered, l []string) (float64, testkit.Moves) {
		leg := legThat(l[0], l[1])
		leg.Attempts = append(leg.Attempts, leg.Attempts[0], proxy.Attempt{Result: event.AttemptCompleted})
		m.keep(httpapi.Decision{Trace: m.ofCourse(leg)})
		return 2, withDecision(testkit.Moves{answeredBy(l[0]): 1})
	},
	"downstream_latency_seconds": func(m *metered, l []string) (float64, testkit.Moves) {
		c := m.ofCourse(legThat(l[0], "ok"))
		c.FirstByte = 2 * time.Second
		m.keep(httpapi.Decision{Trace: c})
		return 1, withDecision(testkit.Moves{answeredBy(l[0]): 1, testkit.Series("downstream_latency_seconds_sum", "upstream", l[0]): 2})
	},
	"upstream_bytes_total": func(m *metered, l []string) (float64, testkit.Moves) {
		c := m.ofCourse(legThat(l[0], "ok"))
		if l[1] == "up" {
			c.BytesUp.Store(11)
		} else {
			c.BytesDown.Store(11)
		}
		m.keep(httpapi.Decision{Trace: c})
		return 11, withDecision(testkit.Moves{answeredBy(l[0]): 1})
	},
	"upstream_inflight": standing(func(s *event.UpstreamStats) { s.InFlight = 3 }),
	"upstream_endpoints": func(m *metered, l []string) (float64, testkit.Moves) {
		s := m.upstreams[l[0]]
		*map[string]*uint8{"healthy": &s.Healthy, "ejected": &s.Ejected[event.Authenticated], "ejected_anonymous": &s.Ejected[event.Anonymous], "unhealthy": &s.Unhealthy}[l[1]] += 3
		return 3, nil
	},
	"upstream_retries_total":         standing(func(s *event.UpstreamStats) { s.Retries = 3 }),
	"upstream_retries_refused_total": standing(func(s *event.UpstreamStats) { s.RetriesDenied = 3 }),
	"circuit_open_total": func(m *metered, l []string) (float64, testkit.Moves) {
		m.circuit(l).Opened = 3
		return 3, nil
	},
	"circuit_state": func(m *metered, l []string) (float64, testkit.Moves) {
		m.circuit(l).State = event.CircuitOpen
		return 2, nil
	},
	"journal_sync_seconds": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.Flushed(3, 1000, 2*time.Second)
		return 1, testkit.Moves{"journal_sync_seconds_sum": 2, "journal_batch_frames_count": 1, "journal_batch_frames_sum": 3}
	},
	"journal_batch_frames": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.Flushed(5, 1000, 4*time.Second)
		return 1, testkit.Moves{"journal_sync_seconds_sum": 4, "journal_sync_seconds_count": 1, "journal_batch_frames_sum": 5}
	},
	"journal_bytes_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		return m.pays(), testkit.Moves{"index_lag_lsn": 1}
	},
	"index_lag_lsn": func(m *metered, _ []string) (float64, testkit.Moves) {
		return 1, testkit.Moves{"journal_bytes_total": m.pays()}
	},
	"snapshot_lsn": func(m *metered, _ []string) (float64, testkit.Moves) {
		bytes := m.pays()
		testkit.Must(m.t, snapshotKeeper{m.store, m.start, m.store.inbox, m.log}.maker(m.t.Context()).Make(m.t.Context()))
		return float64(m.store.journal.Durable()), testkit.Moves{"journal_bytes_total": bytes, "index_lag_lsn": 1} // it is the first snapshot
	},
	"access_lines_total": func(m *metered, l []string) (float64, testkit.Moves) { return m.logsRequests(l[0]) },
	"audit_lines_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.audit.Note(audit.Line{})
		m.endsAudit()
		return 1, nil
	},
	"audit_lost_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.endsAudit()
		m.audit.Note(audit.Line{})
		return 1, nil
	},
	"audit_omitted_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		kept := audit.DefaultLimits().Rejected.Burst
		for range kept + 3 {
			m.audit.Note(audit.Line{Tenant: 1, Status: http.StatusForbidden})
		}
		m.endsAudit()
		return 3, testkit.Moves{"audit_lines_total": float64(kept)}
	},
	"audit_errors_total": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.audit = audit.New("/dev/null", m.start.Audit, m.log)
		m.endsAudit()
		return float64(m.audit.Counts().Failed), nil
	},
}

// queueCauses are by the name of the queue.
var queueCauses = map[string]cause{
	"connections_http": func(m *metered, _ []string) (float64, testkit.Moves) { m.hooks().Open(3); return 3, nil },
	"streams_http":     func(m *metered, _ []string) (float64, testkit.Moves) { m.hooks().Stream(2); return 2, nil },
	"connections_s3": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.listeners.hooks(m.gauges.s3Listener()).Open(3)
		return 3, nil
	},
	"streams_s3": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.listeners.hooks(m.gauges.s3Listener()).Stream(2)
		return 2, nil
	},
	"connections_admin": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.listeners.hooks(m.gauges.adminListener()).Open(3)
		return 3, nil
	},
	"streams_admin": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.listeners.hooks(m.gauges.adminListener()).Stream(2)
		return 2, nil
	},
	"admission_slots": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.dispatcher.Admission.Enter(event.Admit{Class: types.ClassAnon})
		return 1, testkit.Moves{testkit.Series("fq_inflight", "class", "anon"): 1, testkit.QueueSeries("work_anon"): 1}
	},
	"admission_updates": func(m *metered, _ []string) (float64, testkit.Moves) {
		at, _ := m.dispatcher.Admission.Enter(event.Admit{Class: types.ClassAuthed})
		ticket := types.NewTicket(at, 1)
		m.dispatcher.Admission.Deliver(event.Decision{Ticket: ticket})
		m.dispatcher.Admission.Finish(ticket, 0, event.Completion(0))
		return 1, testkit.Moves{testkit.QueueSeries("admission_slots"): 1, testkit.Series("fq_inflight", "class", "authed"): 1, testkit.QueueSeries("work_authed"): 1}
	},
	"admission_queue_parts":   status(4, func(s *event.Status) { s.PacedParts += 4 }),
	"admission_queue_wallet":  waiting(types.FacetWallet),
	"admission_queue_query":   waiting(types.FacetQuery),
	"admission_queue_proxy":   waiting(types.FacetProxy),
	"admission_queue_streams": waiting(types.Streams),
	"admission_queue_storage": waiting(types.FacetStorage),
	"decisions":               func(m *metered, _ []string) (float64, testkit.Moves) { m.keep(httpapi.Decision{}); return 1, nil },
	"upstream_queries": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.dispatcher.Upstreams.Report(event.AttemptResult{})
		return 1, nil
	},
	"tickets": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.submits(types.ClassInternal)
		return 1, testkit.Moves{"worker_inflight": 1, testkit.QueueSeries("work_internal"): 1}
	},
	"work_internal": comes(types.ClassInternal),
	"work_authed":   comes(types.ClassAuthed),
	"work_anon":     comes(types.ClassAnon),
	"cancellations": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.submits(types.ClassAuthed)()
		return 1, testkit.Moves{testkit.QueueSeries("work_authed"): 1}
	},
	"startup_events": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.inbox.early = append(m.inbox.early, event.Tick{})
		return 1, nil
	},
	"loop_events": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.running.Send(m.t.Context(), event.Tick{})
		return 1, nil
	},
	"signals": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.signals.received <- os.Signal(syscall.SIGHUP)
		return 1, nil
	},
	"reloads": func(m *metered, _ []string) (float64, testkit.Moves) { m.reloader.request(); return 1, nil },

	"backlog_bytes":    status(7, func(s *event.Status) { s.Backlog += 7 }),
	"held_replies":     status(8, func(s *event.Status) { s.HeldReplies += 8 }),
	"idempotency_keys": status(9, func(s *event.Status) { s.Keys += 9 }),
	"holds":            status(10, func(s *event.Status) { s.Holds += 10 }),
	"recent_frames": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.store.readModel.Keep(record.Sealed{LSN: 1})
		return 1, nil
	},
	"await_seq": func(m *metered, _ []string) (float64, testkit.Moves) {
		go m.store.readModel.AwaitSeq(m.t.Context(), 1, 5)
		testkit.Until(func() bool { n, _ := m.store.readModel.Waiting(); return n == 1 })
		return 1, nil
	},
	"index_ring": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.index.Offer([]record.Sealed{{LSN: 1}})
		return 1, nil
	},
	"access": func(m *metered, _ []string) (float64, testkit.Moves) {
		m.accessLog.Turn(true)
		m.accessLog.Note(false, func() []slog.Attr { return nil })
		return 1, nil
	},
	"audit": func(m *metered, _ []string) (float64, testkit.Moves) { m.audit.Note(audit.Line{}); return 1, nil },
}

func waiting(f types.Facet) cause {
	return func(m *metered, _ []string) (float64, testkit.Moves) {
		m.core.status.Queued[f][types.ClassAnon] += 2
		m.core.status.Queued[f][types.ClassAuthed]++
		return 3, testkit.Moves{testkit.Series("fq_queued", "facet", f.String(), "class", "anon"): 2, testkit.Series("fq_queued", "facet", f.String(), "class", "authed"): 1}
	}
}

func comes(c types.Class) cause {
	return func(m *metered, _ []string) (float64, testkit.Moves) {
		m.dispatcher.Admission.Enter(event.Admit{Class: c})
		return 1, testkit.Moves{testkit.Series("fq_inflight", "class", c.String()): 1, testkit.QueueSeries("admission_slots"): 1}
	}
}

// submits hands a request to the core, which does not answer. The function that it returns has its
// client leave.
func (m *metered) submits(c types.Class) (leave func()) {
	ctx, stop := context.WithCancel(m.t.Context())
	was, over := m.dispatcher.Depth(c), make(chan struct{})
	go func() {
		defer close(over)
		m.dispatcher.Submit(ctx, c, &event.Request{})
	}()
	testkit.Until(func() bool { return m.dispatcher.Depth(c) == was+1 })
	return func() {
		stop()
		<-over
	}
}

// endsAudit has the audit log write what it has, and end.
func (m *metered) endsAudit() {
	ctx, stop := context.WithCancel(m.t.Context())
	stop()
	testkit.Must(m.t, m.audit.Run(ctx))
}

// logsRequests has more requests than the access log takes, or one that it writes.
func (m *metered) logsRequests(fate string) (own float64, others testkit.Moves) {
	was := m.accessLog.Counts()
	before, _ := m.accessLog.Waiting()
	m.accessLog.Turn(true)
	note := func(failed bool) { m.accessLog.Note(failed, func() []slog.Attr { return nil }) }
	if note(false); fate == "written" {
		ctx, stop := context.WithCancel(m.t.Context())
		stop()
		testkit.Must(m.t, m.accessLog.Run(ctx))
	}
	for grown := func() bool {
		is := m.accessLog.Counts()
		return is.LeftOut > was.LeftOut && (fate != "lost" || is.Lost > was.Lost)
	}; fate != "written" && !grown(); {
		note(false)
		note(true)
	}
	is := m.accessLog.Counts()
	after, _ := m.accessLog.Waiting()
	others = testkit.Moves{}
	for name, by := range map[string]uint64{"written": is.Written - was.Written, "left_out": is.LeftOut - was.LeftOut, "lost": is.Lost - was.Lost} {
		switch {
		case name == fate:
			own = float64(by)
		case by > 0:
			others[testkit.Series("access_lines_total", "outcome", name)] = float64(by)
		}
	}
	if after != before {
		others[testkit.QueueSeries("access")] = float64(after - before)
	}
	return own, others
}

// stopper is a handler of a log that ends a context with the first line.
type stopper struct {
	slog.Handler
	stop context.CancelFunc
}

func (s stopper) Enabled(context.Context, slog.Level) bool { return true }
func (s stopper) Handle(context.Context, slog.Record) error {
	s.stop()
	return nil
}

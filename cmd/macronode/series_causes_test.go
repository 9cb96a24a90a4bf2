package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"macronode/adapters/audit"
	"macronode/adapters/httpapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/proxy"
	"macronode/adapters/registry"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// until waits until done reports true. It panics after a minute, so that a bug is not seen as a
// test that hangs.
func until(done func() bool) {
	for end := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			panic("what a test waits for does not happen")
		}
	}
}

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
func (m *metered) ofCourse(legs ...proxy.Leg) *proxy.Course {
	return &proxy.Course{Legs: legs}
}

func (m *metered) keep(d httpapi.Decision) {
	d.Under = &m.edition.Load().face
	keeps{m.life}.Keep(d)
}

// one more decision is kept with each request.
func withDecision(others moves) moves {
	if others == nil {
		others = moves{}
	}
	others[queueSeries("decisions")]++
	return others
}

// legThat is a leg whose outcome is the given word.
func legThat(upstream, outcome string) proxy.Leg {
	l := proxy.Leg{Upstream: upstream}
	switch {
	case outcome == "ok":
		l.Tries = []proxy.Try{{Ending: event.AttemptCompleted}}
	case slices.Contains(registry.Symptoms, outcome):
		l.Tries = []proxy.Try{{Ending: event.AttemptFailed, Symptom: proxy.Symptom(outcome)}}
	default:
		for s := event.EndpointPicked + 1; s < event.NumNoEndpointReasons; s++ {
			if s.String() == outcome {
				l.Stop = s
			}
		}
	}
	return l
}

func answeredBy(upstream string) string {
	return seriesOf("upstream_requests_total", "upstream", upstream, "outcome", "ok")
}

func failedTry(upstream, symptom string) string {
	return seriesOf("upstream_fail_total", "upstream", upstream, "symptom", symptom)
}

// runs starts a child, and ends it as end says.
func (m *metered) runs(name string, end func(types.Service)) {
	c := childNamed(name)
	m.children.Do(event.ServiceCommand{Service: c, Verb: event.StartService})
	if end == nil {
		return
	}
	end(c)
	must(m.t, m.children.Wait(m.t.Context(), c))
}

func spawned(name string) moves { return moves{seriesOf("tasks_spawned_total", "kind", name): 1} }

// pays writes one frame into the journal.
func (m *metered) pays() (bytes float64) {
	before := m.journal.Grown()
	pay(m.t, m.journal, m.journal.Durable()+1)
	return float64(m.journal.Grown() - before)
}

func standing(set func(s *event.UpstreamStats)) cause {
	return func(m *metered, l []string) (float64, moves) {
		set(m.upstreams[l[0]])
		return 3, nil
	}
}

func status(by float64, set func(s *event.Status)) cause {
	return func(m *metered, _ []string) (float64, moves) {
		set(&m.core.status)
		return by, nil
	}
}

// causes are by the name of the metric.
var causes = map[string]cause{
	"request_latency_seconds": func(m *metered, l []string) (float64, moves) {
		answered, _ := m.meter.Endpoint(l[0], l[1])
		answered(2*time.Second, 200, []byte("d_1"))
		return 1, moves{seriesOf("request_latency_seconds_sum", "endpoint", l[0], "method", l[1]): 2, seriesOf("http_requests_total", "route", l[0], "method", l[1], "code", "2xx"): 1}
	},
	"http_requests_total": func(m *metered, l []string) (float64, moves) {
		answered, _ := m.meter.Endpoint(l[0], l[1])
		answered(2*time.Second, 100*slices.Index(registry.StatusClasses, l[2]), []byte("d_1"))
		return 1, moves{seriesOf("request_latency_seconds_sum", "endpoint", l[0], "method", l[1]): 2, seriesOf("request_latency_seconds_count", "endpoint", l[0], "method", l[1]): 1}
	},
	"decision_seconds": func(m *metered, l []string) (float64, moves) {
		m.meter.Decided(3 * time.Second)
		return 1, moves{seriesOf("decision_seconds_sum", "plane", l[0]): 3}
	},
	"busy_rejections_total": func(m *metered, l []string) (float64, moves) {
		at := slices.IndexFunc(registry.Endpoints, func(e []string) bool { return e[0] == l[0] })
		_, busy := m.meter.Endpoint(l[0], registry.Endpoints[at][1])
		busy()
		return 1, nil
	},
	"rejected_total": func(m *metered, l []string) (float64, moves) {
		switch {
		case l[1] == "max_conns":
			m.hooks().Refused()
		case l[1] == "max_conns_per_peer":
			m.hooks().PeerRefused()
		case l[1] == "framing":
			m.hooks().Smuggle()
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
	"admission_refused_total": func(m *metered, l []string) (float64, moves) {
		for why := event.Admitted + 1; why < event.NumRejectReasons; why++ {
			if why.String() == l[1] {
				m.meter.Barred(classOf(l[0]), why)
			}
		}
		return 1, nil
	},
	"quota_refused_total": func(m *metered, l []string) (float64, moves) {
		at := slices.IndexFunc(m.edition.Load().face.Quotas, func(q httpapi.Policy) bool { return q.Name == l[0] })
		v := event.Decision{Problem: event.Busy, Reason: event.RejectQuotaExceeded, Rule: uint8(at) + 1}
		if l[1] == "shadow" {
			v = event.Decision{Shadow: 1 << at}
		}
		m.keep(httpapi.Decision{Verdict: v})
		return 1, withDecision(nil)
	},
	"fq_inflight": func(m *metered, l []string) (float64, moves) {
		m.desk.Gate.Enter(event.Admit{Class: classOf(l[0])})
		return 1, moves{queueSeries("admission_slots"): 1, queueSeries("work_" + l[0]): 1}
	},
	"fq_queued": func(m *metered, l []string) (float64, moves) {
		m.core.status.Queued[facetOf(l[0])][classOf(l[1])] += 7
		return 7, moves{queueSeries("admission_queue_" + l[0]): 7}
	},
	"fq_tokens": func(m *metered, l []string) (float64, moves) {
		m.core.status.Deficits[classOf(l[0])] += 9
		return 9, nil
	},
	"semaphore_inflight": func(m *metered, l []string) (float64, moves) {
		m.core.status.Permits[facetOf(l[0])] += 5
		return 5, nil
	},
	"permits_revoked_total":     status(6, func(s *event.Status) { s.PermitsRevoked += 6 }),
	"idempotency_replays_total": func(m *metered, _ []string) (float64, moves) { m.meter.Replayed(); return 1, nil },
	"worker_inflight": func(m *metered, _ []string) (float64, moves) {
		m.submits(types.ClassAuthed)
		return 1, moves{queueSeries("tickets"): 1, queueSeries("work_authed"): 1}
	},
	"io_errors_total": func(m *metered, _ []string) (float64, moves) { m.fault(errors.New("no disk")); return 1, nil },
	"io_timeouts_total": func(m *metered, l []string) (float64, moves) {
		m.meter.TimedOut(map[string]event.Problem{"reply": event.OutcomeUnknown, "await_seq": event.Timeout}[l[0]])
		return 1, nil
	},
	"backoff_retries_total": func(m *metered, l []string) (float64, moves) {
		if l[0] == "look" {
			m.desk.Again()
			return 1, nil
		}
		ctx, stop := context.WithCancel(m.t.Context())
		dir, log := m.dir, m.log
		defer func() { m.dir, m.log = dir, log }()
		m.dir = "/dev/null" // no directory
		m.log = slog.New(stopper{slog.DiscardHandler, stop})
		m.enrol(ctx, false)
		return 1, nil
	},
	"readyz_state":         status(2, func(s *event.Status) { s.Ready, s.Phase = true, types.Ready }),
	"journal_lsn":          status(4, func(s *event.Status) { s.Durable += 4 }),
	"follower_lag_lsn":     status(3, func(s *event.Status) { s.LSN, s.Applied = 8, 5 }),
	"clock_offset_seconds": status(1.5, func(s *event.Status) { s.Offset = 1500 * time.Millisecond }),
	"ready_dependency_unmet": func(m *metered, l []string) (float64, moves) {
		for c := range types.AllDependencies.Each {
			if c.String() == l[0] {
				m.core.status.WaitingFor = m.core.status.WaitingFor.With(c)
			}
		}
		return 1, nil
	},
	"service_restarts_total": func(m *metered, l []string) (float64, moves) {
		m.core.status.Restarts[childNamed(l[0])] += 2
		return 2, nil
	},
	"tasks_spawned_total": func(m *metered, l []string) (float64, moves) {
		m.runs(l[0], nil)
		m.t.Cleanup(func() { m.children.Do(event.ServiceCommand{Service: childNamed(l[0]), Verb: event.KillService}) })
		return 1, nil
	},
	"tasks_completed_total": func(m *metered, l []string) (float64, moves) {
		m.runs(l[0], func(c types.Service) { m.children.Do(event.ServiceCommand{Service: c, Verb: event.StopService}) })
		return 1, spawned(l[0])
	},
	"tasks_canceled_total": func(m *metered, l []string) (float64, moves) {
		m.runs(l[0], func(c types.Service) { m.children.Do(event.ServiceCommand{Service: c, Verb: event.KillService}) })
		return 1, spawned(l[0])
	},
	"tasks_aborted_total": func(m *metered, l []string) (float64, moves) {
		if l[0] == "request" {
			m.meter.Panicked()
			return 1, nil
		}
		m.runs(l[0], func(types.Service) { m.fail <- struct{}{} })
		return 1, spawned(l[0])
	},
	"handshakes_total": func(m *metered, l []string) (float64, moves) {
		for g := range httpserver.Greetings {
			if g.String() == l[0] {
				m.hooks().Greeted(g)
			}
		}
		return 1, nil
	},
	"idle_connections_closed_total": func(m *metered, l []string) (float64, moves) {
		for by := range httpserver.Bounds {
			if by.String() == l[0] {
				m.hooks().IdleClosed(by)
			}
		}
		return 1, nil
	},
	"tls_certificate_not_after_timestamp_seconds": func(m *metered, _ []string) (float64, moves) {
		dir := m.t.TempDir()
		certifies(m.t, dir, time.Now().Add(30*24*time.Hour))
		read, err := httpserver.ReadCertificate(dir+"/cert", dir+"/key", time.Now())
		must(m.t, err)
		m.tls = httpserver.NewTLS(read, false)
		return float64(read.Ends().Unix()), nil
	},
	"upstream_requests_total": func(m *metered, l []string) (float64, moves) {
		m.keep(httpapi.Decision{Course: m.ofCourse(legThat(l[0], l[1]))})
		others := withDecision(nil)
		if slices.Contains(registry.Fails, l[1]) {
			others[failedTry(l[0], l[1])] = 1
		}
		return 1, others
	},
	// Of a request that another try answered, the tries that failed are counted as well.
	"upstream_fail_total": func(m *metered, l []string) (float64, moves) {
		leg := legThat(l[0], l[1])
		leg.Tries = append(leg.Tries, leg.Tries[0], proxy.Try{Ending: event.AttemptCompleted})
		m.keep(httpapi.Decision{Course: m.ofCourse(leg)})
		return 2, withDecision(moves{answeredBy(l[0]): 1})
	},
	"downstream_latency_seconds": func(m *metered, l []string) (float64, moves) {
		c := m.ofCourse(legThat(l[0], "ok"))
		c.First = 2 * time.Second
		m.keep(httpapi.Decision{Course: c})
		return 1, withDecision(moves{answeredBy(l[0]): 1, seriesOf("downstream_latency_seconds_sum", "upstream", l[0]): 2})
	},
	"upstream_bytes_total": func(m *metered, l []string) (float64, moves) {
		c := m.ofCourse(legThat(l[0], "ok"))
		if l[1] == "up" {
			c.Up.Store(11)
		} else {
			c.Down.Store(11)
		}
		m.keep(httpapi.Decision{Course: c})
		return 11, withDecision(moves{answeredBy(l[0]): 1})
	},
	"upstream_inflight": standing(func(s *event.UpstreamStats) { s.InFlight = 3 }),
	"upstream_endpoints": func(m *metered, l []string) (float64, moves) {
		s := m.upstreams[l[0]]
		*map[string]*uint8{"healthy": &s.Healthy, "ejected": &s.Ejected, "unhealthy": &s.Unhealthy}[l[1]] += 3
		return 3, nil
	},
	"upstream_retries_total":         standing(func(s *event.UpstreamStats) { s.Retries = 3 }),
	"upstream_retries_refused_total": standing(func(s *event.UpstreamStats) { s.RetriesDenied = 3 }),
	"circuit_open_total":             standing(func(s *event.UpstreamStats) { s.Opened = 3 }),
	"circuit_state": func(m *metered, l []string) (float64, moves) {
		m.upstreams[l[0]].Circuit = event.CircuitOpen
		return 2, nil
	},
	"journal_sync_seconds": func(m *metered, _ []string) (float64, moves) {
		m.metrics.Flushed(3, 1000, 2*time.Second)
		return 1, moves{"journal_sync_seconds_sum": 2, "journal_batch_frames_count": 1, "journal_batch_frames_sum": 3}
	},
	"journal_batch_frames": func(m *metered, _ []string) (float64, moves) {
		m.metrics.Flushed(5, 1000, 4*time.Second)
		return 1, moves{"journal_sync_seconds_sum": 4, "journal_sync_seconds_count": 1, "journal_batch_frames_sum": 5}
	},
	"journal_bytes_total": func(m *metered, _ []string) (float64, moves) { return m.pays(), moves{"index_lag_lsn": 1} },
	"index_lag_lsn":       func(m *metered, _ []string) (float64, moves) { return 1, moves{"journal_bytes_total": m.pays()} },
	"snapshot_lsn": func(m *metered, _ []string) (float64, moves) {
		bytes := m.pays()
		must(m.t, m.maker(m.t.Context()).Make(m.t.Context()))
		return float64(m.journal.Durable()), moves{"journal_bytes_total": bytes, "index_lag_lsn": 1} // it is the first snapshot
	},
	"access_lines_total": func(m *metered, l []string) (float64, moves) { return m.logsRequests(l[0]) },
	"audit_lines_total": func(m *metered, _ []string) (float64, moves) {
		m.audit.Note(audit.Line{})
		m.endsAudit()
		return 1, nil
	},
	"audit_lost_total": func(m *metered, _ []string) (float64, moves) {
		m.endsAudit()
		m.audit.Note(audit.Line{})
		return 1, nil
	},
	"audit_errors_total": func(m *metered, _ []string) (float64, moves) {
		m.dir = "/dev/null"
		m.audit = m.newAudit()
		m.endsAudit()
		return float64(m.audit.Counts().Failed), nil
	},
}

// queueCauses are by the name of the queue.
var queueCauses = map[string]cause{
	"connections_http": func(m *metered, _ []string) (float64, moves) { m.hooks().Open(3); return 3, nil },
	"streams_http":     func(m *metered, _ []string) (float64, moves) { m.hooks().Stream(2); return 2, nil },
	"connections_admin": func(m *metered, _ []string) (float64, moves) {
		m.listenerHooks(m.board.adminListener()).Open(3)
		return 3, nil
	},
	"streams_admin": func(m *metered, _ []string) (float64, moves) {
		m.listenerHooks(m.board.adminListener()).Stream(2)
		return 2, nil
	},
	"admission_slots": func(m *metered, _ []string) (float64, moves) {
		m.desk.Gate.Enter(event.Admit{Class: types.ClassAnon})
		return 1, moves{seriesOf("fq_inflight", "class", "anon"): 1, queueSeries("work_anon"): 1}
	},
	"admission_updates": func(m *metered, _ []string) (float64, moves) {
		at, _ := m.desk.Gate.Enter(event.Admit{Class: types.ClassAuthed})
		ticket := types.NewTicket(at, 1)
		m.desk.Gate.Deliver(event.Decision{Ticket: ticket})
		m.desk.Gate.Settle(ticket, 0, event.Completion(0))
		return 1, moves{queueSeries("admission_slots"): 1, seriesOf("fq_inflight", "class", "authed"): 1, queueSeries("work_authed"): 1}
	},
	"admission_queue_parts":   status(4, func(s *event.Status) { s.PacedParts += 4 }),
	"admission_queue_wallet":  waiting(types.FacetWallet),
	"admission_queue_query":   waiting(types.FacetQuery),
	"admission_queue_proxy":   waiting(types.FacetProxy),
	"admission_queue_streams": waiting(types.Streams),
	"admission_queue_storage": waiting(types.FacetStorage),
	"decisions":               func(m *metered, _ []string) (float64, moves) { m.keep(httpapi.Decision{}); return 1, nil },
	"upstream_queries":        func(m *metered, _ []string) (float64, moves) { m.desk.Asks.Tell(event.AttemptResult{}); return 1, nil },
	"tickets": func(m *metered, _ []string) (float64, moves) {
		m.submits(types.ClassInternal)
		return 1, moves{"worker_inflight": 1, queueSeries("work_internal"): 1}
	},
	"work_internal": comes(types.ClassInternal),
	"work_authed":   comes(types.ClassAuthed),
	"work_anon":     comes(types.ClassAnon),
	"cancellations": func(m *metered, _ []string) (float64, moves) {
		m.submits(types.ClassAuthed)()
		return 1, moves{queueSeries("work_authed"): 1}
	},
	"startup_events": func(m *metered, _ []string) (float64, moves) {
		m.ear.early = append(m.ear.early, event.Tick{})
		return 1, nil
	},
	"loop_events": func(m *metered, _ []string) (float64, moves) {
		m.running.Say(m.t.Context(), event.Tick{})
		return 1, nil
	},
	"signals": func(m *metered, _ []string) (float64, moves) {
		m.signals.heard <- os.Signal(syscall.SIGHUP)
		return 1, nil
	},
	"reloads": func(m *metered, _ []string) (float64, moves) { m.changes.want(); return 1, nil },

	"backlog_bytes":    status(7, func(s *event.Status) { s.Backlog += 7 }),
	"held_replies":     status(8, func(s *event.Status) { s.HeldReplies += 8 }),
	"idempotency_keys": status(9, func(s *event.Status) { s.Keys += 9 }),
	"holds":            status(10, func(s *event.Status) { s.Holds += 10 }),
	"recent_frames": func(m *metered, _ []string) (float64, moves) {
		m.follower.Keep(record.Sealed{LSN: 1})
		return 1, nil
	},
	"await_seq": func(m *metered, _ []string) (float64, moves) {
		go m.follower.AwaitSeq(m.t.Context(), 1, 5)
		until(func() bool { n, _ := m.follower.Waiting(); return n == 1 })
		return 1, nil
	},
	"index_ring": func(m *metered, _ []string) (float64, moves) {
		m.index.Offer([]record.Sealed{{LSN: 1}})
		return 1, nil
	},
	"access": func(m *metered, _ []string) (float64, moves) {
		m.access.Turn(true)
		m.access.Note(false, func() []slog.Attr { return nil })
		return 1, nil
	},
	"audit": func(m *metered, _ []string) (float64, moves) { m.audit.Note(audit.Line{}); return 1, nil },
}

func waiting(f types.Facet) cause {
	return func(m *metered, _ []string) (float64, moves) {
		m.core.status.Queued[f][types.ClassAnon] += 2
		m.core.status.Queued[f][types.ClassAuthed]++
		return 3, moves{seriesOf("fq_queued", "facet", f.String(), "class", "anon"): 2, seriesOf("fq_queued", "facet", f.String(), "class", "authed"): 1}
	}
}

func comes(c types.Class) cause {
	return func(m *metered, _ []string) (float64, moves) {
		m.desk.Gate.Enter(event.Admit{Class: c})
		return 1, moves{seriesOf("fq_inflight", "class", c.String()): 1, queueSeries("admission_slots"): 1}
	}
}

// submits hands a request to the core, which does not answer. The function that it returns has its
// client leave.
func (m *metered) submits(c types.Class) (leave func()) {
	ctx, stop := context.WithCancel(m.t.Context())
	was, over := m.desk.Depth(c), make(chan struct{})
	go func() {
		defer close(over)
		m.desk.Submit(ctx, c, &event.Request{})
	}()
	until(func() bool { return m.desk.Depth(c) == was+1 })
	return func() {
		stop()
		<-over
	}
}

// endsAudit has the audit log write what it has, and end.
func (m *metered) endsAudit() {
	ctx, stop := context.WithCancel(m.t.Context())
	stop()
	must(m.t, m.audit.Run(ctx))
}

// logsRequests has more requests than the access log takes, or one that it writes.
func (m *metered) logsRequests(fate string) (own float64, others moves) {
	was := m.access.Counts()
	before, _ := m.access.Waiting()
	m.access.Turn(true)
	note := func(failed bool) { m.access.Note(failed, func() []slog.Attr { return nil }) }
	if note(false); fate == "written" {
		ctx, stop := context.WithCancel(m.t.Context())
		stop()
		must(m.t, m.access.Run(ctx))
	}
	for grown := func() bool {
		is := m.access.Counts()
		return is.LeftOut > was.LeftOut && (fate != "lost" || is.Lost > was.Lost)
	}; fate != "written" && !grown(); {
		note(false)
		note(true)
	}
	is := m.access.Counts()
	after, _ := m.access.Waiting()
	others = moves{}
	for name, by := range map[string]uint64{"written": is.Written - was.Written, "left_out": is.LeftOut - was.LeftOut, "lost": is.Lost - was.Lost} {
		switch {
		case name == fate:
			own = float64(by)
		case by > 0:
			others[seriesOf("access_lines_total", "outcome", name)] = float64(by)
		}
	}
	if after != before {
		others[queueSeries("access")] = float64(after - before)
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

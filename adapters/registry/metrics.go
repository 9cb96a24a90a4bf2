package registry

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// Endpoints are the operations of the public API, by operationId, with their methods;
// other is what is no operation.
var Endpoints = [][]string{
	{"issue", "POST"}, {"transfer", "POST"}, {"burn", "POST"}, {"hold", "POST"}, {"capture", "POST"}, {"release", "POST"},
	{"freeze", "POST"}, {"unfreeze", "POST"}, {"batch", "POST"},
	{"balance", "GET"}, {"balance_at", "GET"}, {"entries", "GET"}, {"holds", "GET"}, {"show_hold", "GET"}, {"tx", "GET"}, {"find_tx", "GET"},
	{"accounts", "GET"}, {"assets", "GET"}, {"changes", "GET"}, {"stream", "GET"}, {"openapi", "GET"},
	{"make_key", "POST"}, {"keys", "GET"}, {"revoke_key", "DELETE"},
	{"beyond", "GET"}, {"beyond", "POST"}, {"beyond", "other"},
	{"other", "GET"}, {"other", "POST"}, {"other", "other"},
}

// notOfEndpoint are the symptoms whose cause is the client, the configuration or this node.
var notOfEndpoint = []string{"idle", "hurried", "gone", "body", "removed", "drained", "held", "invalid_request", "resource_exhausted"}

// BeforeWork are the problems that a request meets before anything is done for it. The
// others are answers.
var BeforeWork = []event.Problem{event.BadRequest, event.Unauthorized, event.Forbidden, event.PayloadTooLarge,
	event.UnsupportedMedia, event.MethodNotAllowed, event.Busy, event.IdempotencyCapacity, event.Unavailable}

// Symptoms are the words for how a try of an upstream ended otherwise than whole, Fails those of
// them whose cause is the endpoint, Stops those for why a request was sent nowhere. An outcome
// is one of them, or whole.
var (
	Symptoms = []string{"refused", "unreachable", "unnamed", "untrusted", "closed", "malformed", "status", "silent", "deadline", "hurried",
		"gone", "body", "unfit", "removed", "drained", "held", "declined", "idle", "invalid_request", "resource_exhausted"}
	Fails    = slices.DeleteFunc(slices.Clone(Symptoms), func(s string) bool { return slices.Contains(notOfEndpoint, s) })
	Stops    = stops()
	outcomes = slices.Concat([]string{"whole"}, Symptoms, Stops)
)

// seconds are the buckets of every latency, so that any two can be compared.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics are all that is counted, from the requests to the disk.
var Metrics = []Metric{
	{Name: "request_latency_seconds", Type: Histogram, Help: "Time from the header of a request to its answer.",
		Labels: []Label{{"endpoint", firsts(Endpoints)}, {"method", []string{"GET", "POST", "DELETE", "other"}}}, Series: Endpoints, Buckets: seconds},
	{Name: "decision_seconds", Type: Histogram, Help: "Time from handing a request to the node to its reply, durability included.",
		Labels: []Label{{"plane", []string{"wallet"}}}, Buckets: seconds},
	{Name: "busy_rejections_total", Type: Counter, Help: "Requests told to come back because a queue was full.",
		Labels: []Label{{"endpoint", firsts(Endpoints)}}},
	{Name: "rejected_total", Type: Counter, Help: "What was refused before any work was done for it: by the listener, by the node's own API, on its way to another service.",
		Labels: []Label{{"plane", []string{"node", "wallet", "beyond"}}, {"reason", append(codes(BeforeWork), "max_conns", "max_conns_per_peer", "framing")}}, Series: rejections()},
	{Name: "idle_connections_closed_total", Type: Counter, Help: "Idle connections that were closed to make room for a new one, by the bound that a new one would have passed.",
		Labels: []Label{{"reason", []string{"max_conns", "max_conns_per_peer"}}}},
	{Name: "admission_refused_total", Type: Counter, Help: "Requests that were refused at the gate, by the bound that refused them.",
		Labels: []Label{{"class", classes()}, {"why", whys()}}},
	{Name: "quota_refused_total", Type: Counter, Help: "Requests that a quota refused, and those that it would have refused if it were not in shadow.",
		Labels: []Label{{"quota", nil}, {"fate", []string{"refused", "shadow"}}}},
	{Name: "fq_inflight", Type: Gauge, Help: "Requests that wait at the gate or are at work.", Labels: []Label{{"class", classes()}}, Sampled: true},
	{Name: "fq_queued", Type: Gauge, Help: "Requests that wait for a permit.", Labels: []Label{{"facet", facets()}, {"class", classes()}}, Sampled: true},
	{Name: "fq_tokens", Type: Gauge, Help: "Bytes that a class may still spend of its turns.", Labels: []Label{{"class", classes()}}, Sampled: true},
	{Name: "semaphore_inflight", Type: Gauge, Help: "Permits that are out.", Labels: []Label{{"facet", facets()}}, Sampled: true},
	{Name: "permits_taken_total", Type: Counter, Help: "Permits that were taken back from requests that kept them beyond their deadline.", Sampled: true},
	{Name: "idempotency_replays_total", Type: Counter, Help: "Answers that were shown again under their idempotency key."},
	{Name: "worker_inflight", Type: Gauge, Help: "Requests admitted and not answered.", Sampled: true},
	{Name: "queue_depth", Type: Gauge, Help: "What a queue holds, in its own unit.", Labels: []Label{{"queue", queueNames()}}, Sampled: true},
	{Name: "queue_dropped_total", Type: Counter, Help: "Items accepted, then dropped by the policy of their queue: of work, never one.",
		Labels: []Label{{"queue", []string{"work"}}, {"reason", []string{"oldest"}}}},
	{Name: "io_errors_total", Type: Counter, Help: "Operations on the world that failed.", Labels: []Label{{"op", []string{"journal"}}}},
	{Name: "io_timeouts_total", Type: Counter, Help: "Waits that ended at their deadline: of a write for its reply, of a read for its movement.",
		Labels: []Label{{"op", []string{"reply", "await_seq"}}}},
	{Name: "backoff_retries_total", Type: Counter, Help: "What was tried again after a pause.", Labels: []Label{{"op", []string{"enrol", "look"}}}},

	{Name: "readyz_state", Type: Gauge, Help: "0 unready, 1 degraded, 2 ready.", Labels: []Label{{"service", []string{"node"}}}, Sampled: true},
	{Name: "ready_dependency_unmet", Type: Gauge, Help: "1 while a dependency is missing.", Labels: []Label{{"dependency", dependencies()}}, Sampled: true},
	{Name: "service_restarts_total", Type: Counter, Help: "How often a child was started again.", Labels: []Label{{"service", children()}}, Sampled: true},
	{Name: "tasks_spawned_total", Type: Counter, Help: "Runs of a child that began.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_completed_total", Type: Counter, Help: "Runs of a child that ended when they were asked to.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_canceled_total", Type: Counter, Help: "Runs of a child that were told to end at once.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_aborted_total", Type: Counter, Help: "Runs of a child that ended by themselves, and requests that met a bug.",
		Labels: []Label{{"kind", append(children(), "request")}}, Sampled: true},

	{Name: "handshakes_total", Type: Counter, Help: "Handshakes of TLS, by how they ended.", Labels: []Label{{"result", []string{"done", "timeout", "failed"}}}},
	{Name: "certificate_end_seconds", Type: Gauge, Help: "When the certificate that listeners show is over, in seconds since 1970; 0: there is none.", Sampled: true},

	{Name: "upstream_requests_total", Type: Counter, Help: "Requests to an upstream that are over, by what became of them; of an answer that is made of parts, each part.",
		Labels: []Label{{"upstream", nil}, {"outcome", outcomes}}},
	{Name: "upstream_fail_total", Type: Counter, Help: "Tries that failed for what their endpoint did, by how.", Labels: []Label{{"upstream", nil}, {"symptom", Fails}}},
	{Name: "downstream_latency_seconds", Type: Histogram, Help: "Time from when a request was sent on until the header of its answer; where parts make one, until the last is there.",
		Labels: []Label{{"upstream", nil}}, Buckets: seconds},
	{Name: "upstream_bytes_total", Type: Counter, Help: "Bytes of bodies and tunnels: up to the upstream, down from it.",
		Labels: []Label{{"upstream", nil}, {"way", []string{"up", "down"}}}},
	{Name: "upstream_inflight", Type: Gauge, Help: "Requests that are with an upstream.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "upstream_endpoints", Type: Gauge, Help: "Endpoints that are well, that are out for their failures, and that health checks call sick; one may be both of these.",
		Labels: []Label{{"upstream", nil}, {"state", []string{"well", "ejected", "sick"}}}, Sampled: true},
	{Name: "upstream_retries_total", Type: Counter, Help: "Tries behind the first of a request.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "upstream_retries_refused_total", Type: Counter, Help: "Retries that the budget did not allow.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "circuit_state", Type: Gauge, Help: "0 closed, 1 half-open, 2 open.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "circuit_open_total", Type: Counter, Help: "How often the breaker of an upstream has opened.", Labels: []Label{{"upstream", nil}}, Sampled: true},

	{Name: "journal_sync_seconds", Type: Histogram, Help: "Time to write a batch and make it durable.", Buckets: seconds},
	{Name: "journal_batch_frames", Type: Histogram, Help: "Frames that one flush made durable.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}},
	{Name: "journal_lsn", Type: Gauge, Help: "The last frame that is durable.", Sampled: true},
	{Name: "follower_lag_lsn", Type: Gauge, Help: "Frames emitted and not folded.", Sampled: true},
	{Name: "clock_offset_seconds", Type: Gauge, Help: "How far the machine's clock is ahead of the node's.", Sampled: true},
	{Name: "journal_bytes_total", Type: Counter, Help: "Bytes of journal behind the place where this start began to read.", Sampled: true},
	{Name: "snapshot_lsn", Type: Gauge, Help: "The frame that the newest snapshot is as of; 0: there is none.", Sampled: true},

	{Name: "index_lag_lsn", Type: Gauge, Help: "Frames that are durable and not in the index.", Sampled: true},
	{Name: "index_tables", Type: Gauge, Help: "Tables of the index.", Sampled: true},
	{Name: "index_disk_bytes", Type: Gauge, Help: "What the index takes on disk.", Sampled: true},
	{Name: "index_rebuilds_total", Type: Counter, Help: "How often the index was thrown away and made anew.", Sampled: true},

	{Name: "access_lines_total", Type: Counter, Help: "Requests while log.access is on: those whose line is written, those left out because there were too many in a second, those lost because the log did not take them.",
		Labels: []Label{{"fate", []string{"written", "left_out", "lost"}}}, Sampled: true},
	{Name: "audit_lines_total", Type: Counter, Help: "Audit lines that are in the file.", Sampled: true},
	{Name: "audit_lost_total", Type: Counter, Help: "Audit lines that are in no file, and never will be.", Sampled: true},
	{Name: "audit_errors_total", Type: Counter, Help: "Times that the disk did not take audit lines; they are tried again.", Sampled: true},
}

// Absences are what the contract names and this node does not have.
var Absences = []Absence{
	{"bus_lagged_total", "there is no bus: a stream of changes is read from the index, at its reader's pace"},
	{"facet_busy_total, shed_total", "admission_refused_total says why each was refused"},
	{"facet_deadline_timeouts_total", "io_timeouts_total counts them"},
	{"config_coalesced_total", "who asks for a reload while one is asked for gets that one, of the file as it is then: nothing is lost by it"},
	{"handshake_timeouts_total", "handshakes_total counts them"},
	{"repair_skipped_total, repair_wait_seconds", "the storage plane"},
	{"accounting_exports_total, accounting_degraded, accounting_journal_corrupt_total, late_events_total, export_lag_seconds", "the accounting plane"},
	{"dto_violation_total", "a body that is none counts in rejected_total, reason bad_request"},
}

func classes() (all []string) {
	for c := range types.NumClasses {
		all = append(all, c.String())
	}
	return all
}

func facets() (all []string) {
	for f := range types.NumFacets {
		all = append(all, f.String())
	}
	return all
}

// whys are the bounds that may refuse.
func whys() (all []string) {
	for w := event.Admitted + 1; w < event.NumRejectReasons; w++ {
		all = append(all, w.String())
	}
	return all
}

// stops are why a request is sent nowhere.
func stops() (all []string) {
	for s := event.EndpointPicked + 1; s < event.NumNoEndpointReasons; s++ {
		all = append(all, s.String())
	}
	return all
}

func firsts(pairs [][]string) (names []string) {
	for _, p := range pairs {
		if !slices.Contains(names, p[0]) {
			names = append(names, p[0])
		}
	}
	return names
}

func codes(problems []event.Problem) (all []string) {
	for _, p := range problems {
		all = append(all, p.Code())
	}
	return all
}

func rejections() [][]string {
	all := [][]string{{"node", "max_conns"}, {"node", "max_conns_per_peer"}, {"node", "framing"}}
	for _, code := range codes(BeforeWork) {
		all = append(all, []string{"wallet", code}, []string{"beyond", code})
	}
	return all
}

// Plane is what a facet is counted under: what is on its way to another service is nothing of
// the wallet.
func Plane(f types.Facet) string {
	if f == types.FacetProxy {
		return f.String()
	}
	return "wallet"
}

func queueNames() (names []string) {
	for _, q := range Queues {
		names = append(names, q.Name)
	}
	return names
}

func dependencies() (names []string) {
	for c := range types.AllDependencies.Each {
		names = append(names, c.String())
	}
	return names
}

func children() (names []string) {
	for c := range types.NumServices {
		names = append(names, c.String())
	}
	return names
}

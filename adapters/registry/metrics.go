package registry

import (
	"slices"

	"macronode/core/event"
	"macronode/core/types"
)

// Endpoints lists the operations of the public API, by operationId, and those of the S3 interface, with
// their methods. The endpoints other and s3_unknown stand for requests that match no operation.
var Endpoints = [][]string{
	{"issue", "POST"}, {"transfer", "POST"}, {"burn", "POST"}, {"hold", "POST"}, {"capture", "POST"}, {"release", "POST"},
	{"freeze", "POST"}, {"unfreeze", "POST"}, {"batch", "POST"},
	{"balance", "GET"}, {"balance_at", "GET"}, {"entries", "GET"}, {"holds", "GET"}, {"get_hold", "GET"}, {"tx", "GET"}, {"lookup_tx", "GET"},
	{"accounts", "GET"}, {"assets", "GET"}, {"changes", "GET"}, {"stream", "GET"}, {"openapi", "GET"},
	{"create_key", "POST"}, {"keys", "GET"}, {"revoke_key", "DELETE"},
	{"s3_credentials", "GET"}, {"put_object", "PUT"}, {"post_object", "POST"}, {"get_object", "GET"}, {"head_object", "HEAD"}, {"delete_object", "DELETE"}, {"objects", "GET"},
	{"append_object_upload", "PATCH"}, {"get_object_upload", "GET"}, {"head_object_upload", "HEAD"}, {"cancel_object_upload", "DELETE"},
	{"record_usage", "POST"}, {"usage", "GET"}, {"usage_slices", "GET"},
	{"proxy", "GET"}, {"proxy", "POST"}, {"proxy", "other"},
	{"other", "GET"}, {"other", "POST"}, {"other", "other"},
	{"s3_unknown", "other"}, {"s3_list_buckets", "GET"}, {"s3_create_bucket", "PUT"}, {"s3_head_bucket", "HEAD"},
	{"s3_delete_bucket", "DELETE"}, {"s3_get_bucket_location", "GET"}, {"s3_get_bucket_versioning", "GET"},
	{"s3_get_bucket_acl", "GET"}, {"s3_list_objects", "GET"}, {"s3_list_objects_v2", "GET"}, {"s3_list_multipart_uploads", "GET"},
	{"s3_delete_objects", "POST"}, {"s3_put_object", "PUT"}, {"s3_copy_object", "PUT"}, {"s3_get_object", "GET"},
	{"s3_head_object", "HEAD"}, {"s3_delete_object", "DELETE"}, {"s3_get_object_acl", "GET"}, {"s3_get_object_tagging", "GET"}, {"s3_create_multipart_upload", "POST"},
	{"s3_upload_part", "PUT"}, {"s3_upload_part_copy", "PUT"}, {"s3_list_parts", "GET"}, {"s3_complete_multipart_upload", "POST"},
	{"s3_abort_multipart_upload", "DELETE"},
}

// notOfEndpoint lists the symptoms that are caused by the client, the configuration or this node.
var notOfEndpoint = []string{"idle_timeout", "client_deadline", "client_disconnected", "request_body_error", "endpoint_removed", "shutdown", "quota_timeout", "gave_way", "lost_decompressor", "key_ended", "invalid_request", "resource_exhausted", "client_slow"}

// BeforeWork lists the problems that reject a request before any work. All other problems are
// results of the work.
var BeforeWork = []event.Problem{event.BadRequest, event.Unauthorized, event.Forbidden, event.PayloadTooLarge,
	event.UnsupportedMedia, event.MethodNotAllowed, event.Busy, event.RateLimited, event.IdempotencyCapacity, event.Unavailable}

// Symptoms lists how an attempt can fail. Fails lists the symptoms that are caused by the endpoint.
// Stops lists the reasons why a request is sent to no endpoint. An outcome is ok, a symptom or
// one of these reasons.
var (
	Symptoms = []string{"connection_refused", "connect_timeout", "dns_error", "tls_error", "connection_reset", "protocol_error", "status", "response_stalled", "deadline", "client_deadline",
		"client_disconnected", "request_body_error", "invalid_part", "endpoint_removed", "shutdown", "quota_timeout", "gave_way", "lost_decompressor", "key_ended", "stream_refused", "idle_timeout", "invalid_request", "resource_exhausted", "client_slow"}
	Fails    = slices.DeleteFunc(slices.Clone(Symptoms), func(s string) bool { return slices.Contains(notOfEndpoint, s) })
	Stops    = stops()
	outcomes = slices.Concat([]string{"ok"}, Symptoms, Stops)
)

// StatusClasses lists the classes of HTTP status codes, by their first digit; none is no response.
// Single codes would be 500 series for each operation, because an upstream may send any of them.
var StatusClasses = []string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// StatusClass returns the class of an HTTP status code; 0 is no response.
func StatusClass(status int) string { return StatusClasses[min(max(status/100, 0), 5)] }

// requests lists the series of http_requests_total.
func requests(endpoints [][]string) (series [][]string) {
	for _, of := range endpoints {
		for _, class := range StatusClasses {
			series = append(series, append(slices.Clone(of), class))
		}
	}
	return series
}

// seconds has the buckets of all latency histograms. They are the same so that histograms can be compared.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics lists every metric, from the requests to the disk.
var Metrics = []Metric{
	latencyOf(Endpoints),
	requestsOf(Endpoints),
	{Name: "decision_seconds", Type: Histogram, Help: "Time from submitting a request to the core to its reply, including durability.",
		Labels: []Label{{"plane", []string{"wallet"}}}, Buckets: seconds},
	busyOf(Endpoints),
	{Name: "rejected_total", Type: Counter, Help: "Requests rejected before any work, by the listener, the API or the proxy.",
		Labels: []Label{{"plane", []string{"node", "wallet", "proxy", "storage"}}, {"reason", append(codes(BeforeWork), "max_conns", "max_conns_per_peer", "framing", "frame_flood", "rejected_flood")}}, Series: rejections()},
	{Name: "idle_connections_closed_total", Type: Counter, Help: "Connections closed to make room for a new one, by the limit reached: idle ones, and those without a credential on the admin listener.",
		Labels: []Label{{"reason", []string{"max_conns", "max_conns_per_peer"}}}},
	{Name: "connections_delayed_total", Type: Counter, Help: "Connections that started with a delay, because their peer had many rejected requests."},
	{Name: "admission_refused_total", Type: Counter, Help: "Requests rejected at admission, by reason.",
		Labels: []Label{{"class", classes()}, {"reason", whys()}}},
	{Name: "quota_refused_total", Type: Counter, Help: "Requests that a quota rejected, or would have rejected if it were not in shadow mode.",
		Labels: []Label{{"quota", nil}, {"outcome", []string{"refused", "shadow"}}}},
	{Name: "fq_inflight", Type: Gauge, Help: "Requests waiting for admission or in progress.", Labels: []Label{{"class", classes()}}, Sampled: true},
	{Name: "fq_queued", Type: Gauge, Help: "Requests waiting for a permit.", Labels: []Label{{"facet", facets()}, {"class", classes()}}, Sampled: true},
	{Name: "fq_tokens", Type: Gauge, Help: "Bytes left in the current turn of a class; 0 while nothing waits.", Labels: []Label{{"class", classes()}}, Sampled: true},
	{Name: "semaphore_inflight", Type: Gauge, Help: "Permits in use.", Labels: []Label{{"facet", facets()}}, Sampled: true},
	{Name: "permits_revoked_total", Type: Counter, Help: "Permits revoked from requests that exceeded their deadline by 1 s.", Sampled: true},
	{Name: "idempotency_replays_total", Type: Counter, Help: "Stored responses returned for a repeated idempotency key."},
	{Name: "worker_inflight", Type: Gauge, Help: "Requests submitted to the core and not yet answered.", Sampled: true},
	{Name: "queue_depth", Type: Gauge, Help: "Number of items in a queue, in its own unit.", Labels: []Label{{"queue", queueNames()}}, Sampled: true},
	{Name: "queue_dropped_total", Type: Counter, Help: "Items dropped from a queue after they were accepted. Requests are never dropped after acceptance.",
		Labels: []Label{{"queue", []string{"work"}}, {"reason", []string{"oldest"}}}},
	{Name: "io_errors_total", Type: Counter, Help: "I/O operations that failed.", Labels: []Label{{"op", []string{"journal"}}}},
	{Name: "io_timeouts_total", Type: Counter, Help: "Waits that reached their deadline: of a write for its reply, or of a read for its position.",
		Labels: []Label{{"op", []string{"reply", "await_seq"}}}},
	{Name: "backoff_retries_total", Type: Counter, Help: "Operations retried after a backoff: registering the bootstrap API key (enrol), or deciding a request again with a newer index (look).", Labels: []Label{{"op", []string{"enrol", "look"}}}},

	{Name: "readyz_state", Type: Gauge, Help: "0 unready, 1 degraded, 2 ready.", Labels: []Label{{"service", []string{"node"}}}, Sampled: true},
	{Name: "ready_dependency_unmet", Type: Gauge, Help: "1 while a dependency is missing.", Labels: []Label{{"dependency", dependencies()}}, Sampled: true},
	{Name: "service_restarts_total", Type: Counter, Help: "Restarts of a service by the supervisor.", Labels: []Label{{"service", children()}}, Sampled: true},
	{Name: "tasks_spawned_total", Type: Counter, Help: "Runs of a service that were started.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_completed_total", Type: Counter, Help: "Runs of a service that stopped on request.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_canceled_total", Type: Counter, Help: "Runs of a service that were cancelled.", Labels: []Label{{"kind", children()}}, Sampled: true},
	{Name: "tasks_aborted_total", Type: Counter, Help: "Runs of a service that ended without being stopped, and requests that panicked.",
		Labels: []Label{{"kind", append(children(), "request")}}, Sampled: true},

	{Name: "handshakes_total", Type: Counter, Help: "TLS handshakes, by result.", Labels: []Label{{"result", []string{"done", "timeout", "failed"}}}},
	{Name: "tls_certificate_not_after_timestamp_seconds", Type: Gauge, Help: "Expiry of the certificate chain of the listeners as a Unix timestamp; 0 without a certificate.", Sampled: true},

	{Name: "upstream_requests_total", Type: Counter, Help: "Requests to an upstream, by outcome. With hydrate, each part counts as a request.",
		Labels: []Label{{"upstream", nil}, {"outcome", outcomes}}},
	{Name: "upstream_fail_total", Type: Counter, Help: "Attempts that failed because of the endpoint, by symptom.", Labels: []Label{{"upstream", nil}, {"symptom", Fails}}},
	{Name: "downstream_latency_seconds", Type: Histogram, Help: "Time from forwarding a request to the header of the response. With hydrate, the time until the last part.",
		Labels: []Label{{"upstream", nil}}, Buckets: seconds},
	{Name: "upstream_bytes_total", Type: Counter, Help: "Bytes of bodies and tunnels, sent to the upstream (up) or received from it (down).",
		Labels: []Label{{"upstream", nil}, {"direction", []string{"up", "down"}}}},
	{Name: "upstream_inflight", Type: Gauge, Help: "Requests in flight to an upstream.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "upstream_endpoints", Type: Gauge, Help: "Endpoints that are healthy, ejected after failures of authenticated or of anonymous callers, or unhealthy by health checks. An endpoint can be both ejected and unhealthy.",
		Labels: []Label{{"upstream", nil}, {"state", []string{"healthy", "ejected", "ejected_anonymous", "unhealthy"}}}, Sampled: true},
	{Name: "upstream_retries_total", Type: Counter, Help: "Attempts after the first of a request.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "upstream_retries_refused_total", Type: Counter, Help: "Retries not made because the retry budget was used up.", Labels: []Label{{"upstream", nil}}, Sampled: true},
	{Name: "circuit_state", Type: Gauge, Help: "State of the circuit breaker of an upstream for a group of callers: 0 closed, 1 half-open, 2 open.", Labels: []Label{{"upstream", nil}, {"callers", callers()}}, Sampled: true},
	{Name: "circuit_open_total", Type: Counter, Help: "Times that the circuit breaker of an upstream has opened for a group of callers.", Labels: []Label{{"upstream", nil}, {"callers", callers()}}, Sampled: true},

	{Name: "journal_sync_seconds", Type: Histogram, Help: "Time to write a batch and make it durable.", Buckets: seconds},
	{Name: "journal_batch_frames", Type: Histogram, Help: "Frames made durable by one flush.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}},
	{Name: "journal_lsn", Type: Gauge, Help: "LSN of the last durable frame.", Sampled: true},
	{Name: "follower_lag_lsn", Type: Gauge, Help: "Frames emitted and not yet applied by the read model.", Sampled: true},
	{Name: "clock_offset_seconds", Type: Gauge, Help: "Offset of the machine's clock from the node's clock; positive if the machine's clock is ahead.", Sampled: true},
	{Name: "journal_bytes_total", Type: Counter, Help: "Bytes of journal written since the position from which this start replayed.", Sampled: true},
	{Name: "snapshot_lsn", Type: Gauge, Help: "LSN of the newest snapshot; 0 without one.", Sampled: true},

	{Name: "index_lag_lsn", Type: Gauge, Help: "Durable frames not yet in the index.", Sampled: true},
	{Name: "index_tables", Type: Gauge, Help: "Tables of the index.", Sampled: true},
	{Name: "index_disk_bytes", Type: Gauge, Help: "Disk space used by the index.", Sampled: true},
	{Name: "index_abandoned_engines", Type: Gauge, Help: "Engines of the index that a disk failure has stopped in this process. Each keeps memory until a restart; 8 stop the index.", Sampled: true},
	{Name: "index_rebuilds_total", Type: Counter, Help: "Rebuilds of the index.", Sampled: true},

	{Name: "storage_objects", Type: Gauge, Help: "Objects: as the buckets count them (logical), and as they are stored (physical).", Labels: []Label{{"kind", []string{"logical", "physical"}}}, Sampled: true},
	{Name: "storage_bytes", Type: Gauge, Help: "Bytes of objects: as the buckets count them (logical), and as they are stored (physical).", Labels: []Label{{"kind", []string{"logical", "physical"}}}, Sampled: true},
	{Name: "storage_transferred_bytes_total", Type: Counter, Help: "Bytes of objects that were uploaded (in) or sent (out).", Labels: []Label{{"direction", []string{"in", "out"}}}},
	{Name: "storage_unreadable_total", Type: Counter, Help: "Reads of objects that are lost or damaged on the disk."},
	{Name: "storage_lost_objects", Type: Gauge, Help: "Objects that no repair can make whole: all their copies, or too many of their shards, are missing or damaged.", Sampled: true},
	{Name: "storage_failed_providers", Type: Gauge, Help: "Providers of objects that cannot be used.", Sampled: true},
	{Name: "repair_skipped_total", Type: Counter, Help: "Repairs that were not queued. They are planned again.", Labels: []Label{{"reason", []string{"full"}}}, Sampled: true},
	{Name: "repair_copies_total", Type: Counter, Help: "Copies of objects that were restored or could not be written (failed); repairs that found no good copy in any provider (lost), or too little while a provider did not answer (waiting).", Labels: []Label{{"outcome", []string{"restored", "failed", "lost", "waiting"}}}},
	{Name: "repair_wait_seconds", Type: Histogram, Help: "Time that a read of a repair or a scrub waits for the byte budget.", Buckets: []float64{0.001, 0.01, 0.1, 1, 10}},
	{Name: "storage_collected_files_total", Type: Counter, Help: "Files removed because no object needs them."},
	{Name: "storage_collected_bytes_total", Type: Counter, Help: "Bytes of files removed because no object needs them."},
	{Name: "storage_unremoved_files", Type: Gauge, Help: "Files that no object needs and that the last collection could not remove. Each collection tries again.", Sampled: true},
	{Name: "storage_collections_deferred_total", Type: Counter, Help: "Removals of unused files that were deferred because a backup was copying the objects."},

	{Name: "usage_events_total", Type: Counter, Help: "Usage events of requests that were accepted: recorded, or recorded before (duplicate).", Labels: []Label{{"outcome", []string{"recorded", "duplicate"}}}},
	{Name: "late_events_total", Type: Counter, Help: "Recorded usage events that came after the seal of their window. They are in a correction."},
	{Name: "prepaid_uncollected_tenants", Type: Gauge, Help: "Tenants that owe for prepaid usage that no entry of accounting.prepaid collects, because a reload or a start removed the tenant or a price.", Sampled: true},
	{Name: "prepaid_rejected_total", Type: Counter, Help: "Requests that were rejected because the available balance of the prepaid account was less than the price of the request or of its usage events. Also requests without room for their line of prepaid usage."},
	{Name: "metered_requests_total", Type: Counter, Help: "Requests that the node metered, by outcome: recorded; lost, because there was no room or the node rejects them for ever; unknown, recorded or not.",
		Labels: []Label{{"outcome", []string{"recorded", "lost", "unknown"}}}},
	{Name: "metered_requests_waiting", Type: Gauge, Help: "Metered requests that are not recorded yet: those of the last interval, and those that the node rejects for now. A crash loses them.", Sampled: true},
	{Name: "prepaid_lines", Type: Gauge, Help: "Lines of prepaid usage, of which there are at most accounting.max_prepaid_lines.", Sampled: true},
	{Name: "usage_rows", Type: Gauge, Help: "Rows of usage that are not sealed.", Sampled: true},
	{Name: "usage_streams", Type: Gauge, Help: "Dimensions of all tenants that ever had usage.", Sampled: true},
	{Name: "usage_seal_lag_seconds", Type: Gauge, Help: "Time since the seal of the oldest window that is due and not sealed; 0 if there is none.", Sampled: true},

	{Name: "exports_total", Type: Counter, Help: "Attempts to deliver an item to a sink: delivered (ok), had before (duplicate), failed and repeated later (retryable), rejected (permanent), or answered that the sink wants no items (stopped).",
		Labels: []Label{{"sink", nil}, {"outcome", ExportOutcomes}}},
	{Name: "export_lag_seconds", Type: Gauge, Help: "Time since the oldest item was due of those that are being delivered to a sink or are repeated; 0 if there is none.", Labels: []Label{{"sink", nil}}, Sampled: true},
	{Name: "export_pending", Type: Gauge, Help: "Items that a sink does not have yet. Absent until the node has read its streams after a start.", Labels: []Label{{"sink", nil}}, Sampled: true},
	{Name: "export_quarantined", Type: Gauge, Help: "Items that a sink has rejected, and that wait for an operator.", Labels: []Label{{"sink", nil}}, Sampled: true},
	{Name: "export_sink_up", Type: Gauge, Help: "1 if the last attempts to deliver to a sink did not fail, else 0. Absent until the node has read its streams after a start.", Labels: []Label{{"sink", nil}}, Sampled: true},

	{Name: "access_lines_total", Type: Counter, Help: "Access log lines: written, left out by sampling (left_out), or lost because the queue was full.",
		Labels: []Label{{"outcome", []string{"written", "left_out", "lost"}}}, Sampled: true},
	{Name: "audit_lines_total", Type: Counter, Help: "Audit lines written.", Sampled: true},
	{Name: "audit_lost_total", Type: Counter, Help: "Audit lines lost.", Sampled: true},
	{Name: "audit_omitted_total", Type: Counter, Help: "Audit lines of rejected requests that were left out, because their tenant had too many.", Sampled: true},
	{Name: "audit_errors_total", Type: Counter, Help: "Failed writes to the audit file. They are retried.", Sampled: true},
}

// Absences lists the metrics that the contract names and this node does not have.
var Absences = []Absence{
	{"bus_lagged_total", "the node has no bus; a change stream is read from the index"},
	{"facet_busy_total, shed_total", "admission_refused_total counts them by reason"},
	{"facet_deadline_timeouts_total", "io_timeouts_total counts them"},
	{"config_coalesced_total", "a reload requested while another one is pending is merged into it; the pending reload reads the newest file"},
	{"handshake_timeouts_total", "handshakes_total counts them"},
	{"accounting_exports_total", "exports_total counts them"},
	{"accounting_degraded", "nothing is shed: export_pending and export_quarantined report what waits"},
	{"accounting_journal_corrupt_total", "usage is in the journal: its metrics and verify report damage"},
	{"dto_violation_total", "rejected_total counts invalid bodies, with reason bad_request"},
}

// ExportOutcomes are the outcomes of an attempt to deliver an item.
var ExportOutcomes = []string{"ok", "duplicate", "retryable", "permanent", "stopped"}

func classes() (all []string) {
	for c := range types.NumClasses {
		all = append(all, c.String())
	}
	return all
}

func callers() (all []string) {
	for c := range event.NumCallers {
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

// whys returns the reasons for which admission can reject a request.
func whys() (all []string) {
	for w := event.Admitted + 1; w < event.NumRejectReasons; w++ {
		all = append(all, w.String())
	}
	return all
}

// stops returns the reasons why a request is sent to no endpoint.
func stops() (all []string) {
	all = append(all, "no_decompressor")
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
	all := [][]string{{"node", "max_conns"}, {"node", "max_conns_per_peer"}, {"node", "framing"}, {"node", "frame_flood"}, {"node", "rejected_flood"}}
	for _, code := range codes(BeforeWork) {
		all = append(all, []string{"wallet", code}, []string{"proxy", code}, []string{"storage", code})
	}
	return all
}

// Plane returns the value of the label plane for a facet: proxy for forwarded requests, storage for uploads and downloads of
// objects, wallet for all others.
func Plane(f types.Facet) string {
	if f == types.FacetProxy || f == types.FacetStorage {
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

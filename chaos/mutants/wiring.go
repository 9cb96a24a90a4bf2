package mutants

// wiring are bugs of the translation of the configuration to settings, and of metrics: a value
// goes to the wrong place, or is dropped.
func wiring() []Mutant {
	var all []Mutant
	for _, m := range settings() {
		m.Holds = "each key of the configuration changes its own settings"
		all = append(all, unlessTwo("one golden file has every key", m))
	}
	for _, m := range series() {
		m.Holds = "each series is moved by its own cause"
		all = append(all, unlessTwo("one table has every series", m))
	}
	return all
}

// unlessTwo returns m, with a reason if it has only one check.
func unlessTwo(why string, m Mutant) Mutant {
	if len(m.Kills) > 1 {
		return m
	}
	return alone(why, m)
}

func settings() []Mutant {
	const (
		golden = "./cmd/macronode/internal/settings TestSettingsOfEachKey$"
		ledger = "./cmd/macronode/internal/settings TestLimitsAreApplied$"
		queues = "./cmd/macronode/internal/cli TestRunningNodeMatchesRegistry$"
		quotas = "./cmd/macronode/internal/cli TestQuotasAreCounted$"
		server = "./adapters/httpserver TestServerUsesEachLimit$"
	)
	of := func(name, file, was, now string, kills ...string) Mutant {
		return one("settings: "+name, "", file, was, now, kills...)
	}
	return []Mutant{
		of("drain and abort swapped", "cmd/macronode/internal/settings/limits.go", "Drain: c.Node.Drain, Abort: c.Node.Abort", "Drain: c.Node.Abort, Abort: c.Node.Drain", golden),
		of("stall and sync time-outs swapped", "cmd/macronode/internal/settings/limits.go", "StallThreshold: c.Journal.Stall, SyncTimeout: c.Journal.Fail", "StallThreshold: c.Journal.Fail, SyncTimeout: c.Journal.Stall", golden),
		of("the commit time-out is the heartbeat", "cmd/macronode/internal/settings/limits.go", "CommitTimeout: c.Node.Patience,", "CommitTimeout: c.Journal.HeartbeatInterval,", golden),
		of("backlog and reserve swapped", "cmd/macronode/internal/settings/limits.go", "MaxUnsyncedBytes: uint64(c.Journal.Backlog), MinFreeBytes: uint64(c.Journal.Reserve)", "MaxUnsyncedBytes: uint64(c.Journal.Reserve), MinFreeBytes: uint64(c.Journal.Backlog)", golden),
		of("the start deadline is not passed on", "cmd/macronode/internal/settings/limits.go", "StartTimeout: c.Node.StartDeadline", "StartTimeout: 30 * time.Second", golden),
		of("a tenant's holds are limited as its accounts", "cmd/macronode/internal/settings/limits.go", "TenantHolds: l.TenantHolds", "TenantHolds: l.TenantAccounts", golden, ledger),
		of("issues are limited as debits", "cmd/macronode/internal/settings/limits.go", "MaxDailyIssue: l.IssueDay", "MaxDailyIssue: l.Day", golden, ledger),
		of("index cache and frames swapped", "cmd/macronode/internal/settings/limits.go", "Frames: c.Index.Frames, Cache: int64(c.Index.Cache)", "Frames: int(c.Index.Cache), Cache: int64(c.Index.Frames)", golden),
		of("weights of two classes swapped", "cmd/macronode/internal/settings/policy.go", "types.ClassInternal: uint64(q.Weights.Internal), types.ClassAuthed: uint64(q.Weights.Authed)", "types.ClassInternal: uint64(q.Weights.Authed), types.ClassAuthed: uint64(q.Weights.Internal)", golden),
		of("queue time-out and pacing delay swapped", "cmd/macronode/internal/settings/policy.go", "MaxWait: q.MaxWait, MaxPacingDelay: q.Pace", "MaxWait: q.Pace, MaxPacingDelay: q.MaxWait", golden),
		of("queues of two facets swapped", "cmd/macronode/internal/settings/policy.go", "types.FacetWallet: {p.Wallet, q.Wallet}, types.FacetQuery: {p.Query, q.Query}", "types.FacetWallet: {p.Wallet, q.Query}, types.FacetQuery: {p.Query, q.Wallet}", golden, queues),
		of("a class has the share of a flow", "cmd/macronode/internal/settings/policy.go", "of.queue*q.Class/100", "of.queue*q.Flow/100", golden),
		of("a quota in shadow refuses", "cmd/macronode/internal/settings/policy.go", "Shadow: q.Shadow", "Shadow: false", golden, quotas),
		of("the burst is the rate", "cmd/macronode/internal/settings/policy.go", "Burst: q.Burst.Units", "Burst: units", golden),
		of("counters for keys and tenants swapped", "cmd/macronode/internal/settings/policy.go", "Keys: c.APIKeys, Tenants: c.Wallet.Limits.Tenants", "Keys: c.Wallet.Limits.Tenants, Tenants: c.APIKeys", golden),
		of("attempts as by default", "cmd/macronode/internal/settings/routes.go", "r.MaxAttempts = uint8(u.Tries)", "_ = u.Tries", golden),
		of("fall and rise swapped", "cmd/macronode/internal/settings/routes.go", "uint8(u.Health.Fall), uint8(u.Health.Rise)", "uint8(u.Health.Rise), uint8(u.Health.Fall)", golden),
		of("the idle time of tunnels is not passed on", "cmd/macronode/internal/settings/routes.go", "of.TrustedProxies, of.TunnelIdleTimeout = c.HTTP.TrustedProxies, c.HTTP.TunnelIdle", "of.TrustedProxies = c.HTTP.TrustedProxies", golden),
		of("the wait for a decompressor is not passed on", "cmd/macronode/internal/settings/routes.go", "	of.GiveWayAfter = c.Permits.GiveWay\n", "", golden),
		of("a route without its limit of a caller", "cmd/macronode/internal/settings/routes.go", "PerFlow: c.Routes[i].FlowInflight", "PerFlow: 0", golden),
		of("a route without its limit", "cmd/macronode/internal/settings/routes.go", "Requests: c.Routes[i].MaxInflight", "Requests: 0", golden),
		of("no part is required", "cmd/macronode/internal/settings/routes.go", "Fallback: h.Missing, Required: h.Required", "Fallback: h.Missing", golden),
		of("interval and time-out of health checks swapped", "cmd/macronode/internal/settings/reload.go", "CheckInterval: u.Health.Interval, CheckTimeout: u.Health.Timeout", "CheckInterval: u.Health.Timeout, CheckTimeout: u.Health.Interval", golden),
		of("the API trusts no proxy", "cmd/macronode/internal/settings/reload.go", ", Trusted: c.HTTP.TrustedProxies}", "}", golden),
		of("the access log is not turned on by a reload", "cmd/macronode/internal/settings/reload.go", "LogLevel(c.Log), c.Log.Access", "LogLevel(c.Log), s.Access", golden),
		of("write and idle time-outs swapped", "cmd/macronode/internal/settings/start.go", "s.Write = h.WriteTimeout\n\ts.Idle = h.IdleTimeout", "s.Write = h.IdleTimeout\n\ts.Idle = h.WriteTimeout", golden),
		of("header and read time-outs swapped", "cmd/macronode/internal/settings/start.go", "s.Header = h.HeaderTimeout\n\ts.Read = h.ReadTimeout", "s.Header = h.ReadTimeout\n\ts.Read = h.HeaderTimeout", golden),
		of("the listener ends with the abort", "cmd/macronode/internal/settings/start.go", "max(0, c.Node.Drain-", "max(0, c.Node.Abort-", golden),
		of("the API waits as long as a body may take", "cmd/macronode/internal/settings/start.go", "Deadline: c.HTTP.RequestDeadline", "Deadline: c.HTTP.ReadTimeout", golden),
		of("no client must know a post-quantum key exchange", "cmd/macronode/internal/settings/start.go", "PostQuantum: t.Quantum == \"required\"", "PostQuantum: false", golden),
		of("the number of audit files is not passed on", "cmd/macronode/internal/settings/storage.go", "limits.Size, limits.Keep = int64(c.Audit.Size), c.Audit.Keep", "limits.Size = int64(c.Audit.Size)", golden),
		of("the server closes idle connections as slow writers", "adapters/httpserver/httpserver.go", "IdleTimeout:       c.Idle", "IdleTimeout:       c.Write", server),
	}
}

func series() []Mutant {
	const (
		shell    = "cmd/macronode/"
		counters = "adapters/metrics/"

		causes  = "./cmd/macronode/internal/server TestEverySeriesHasItsCause$"
		quotas  = "./cmd/macronode/internal/cli TestQuotasAreCounted$"
		each    = "./cmd/macronode/internal/cli TestEachEndpointIsCounted$"
		indexes = "./cmd/macronode/internal/server TestSeriesOfTheIndex$"
	)
	of := func(name, file, was, now string, kills ...string) Mutant {
		return one("metrics: "+name, "", file, was, now, kills...)
	}
	return []Mutant{
		of("failed attempts of an answered request", "cmd/macronode/internal/server/upstream_records.go", "t := &l.Attempts[n]; t.Failed() {", "t := &l.Attempts[n]; t.Failed() && l.Outcome() != \"ok\" {", causes),
		of("bytes sent and received swapped", "cmd/macronode/internal/server/upstream_records.go", "u.Moved(up, down)", "u.Moved(down, up)", causes),
		of("queue length of one class", "cmd/macronode/internal/server/gauges.go", "float64(s.inbox.status().Queued[f][c])", "float64(s.inbox.status().Queued[f][types.ClassAuthed])", causes),
		of("permits of one facet", "cmd/macronode/internal/server/gauges.go", "float64(s.inbox.status().Permits[f])", "float64(s.inbox.status().Permits[types.FacetWallet])", causes),
		of("lost audit lines count as errors", "cmd/macronode/internal/server/gauges.go", "float64(s.audit.Counts().Failed)", "float64(s.audit.Counts().Lost)", causes),
		of("killed services count as stopped", "cmd/macronode/internal/server/gauges.go", "s.services.Counts(c).Killed", "s.services.Counts(c).Stopped", causes),
		of("tables count as rebuilds", "cmd/macronode/internal/server/gauges.go", "float64(index.Stats().Rebuilt)", "float64(index.Stats().Tables)", indexes),
		of("connections over the limit count as smuggled requests", "cmd/macronode/internal/server/listeners.go", "Refused: m.Crowded, AmbiguousRequest: m.Smuggled", "Refused: m.Smuggled, AmbiguousRequest: m.Crowded", causes),
		of("connections of one listener", "cmd/macronode/internal/server/queue_gauges.go", "listenerGauges{&g.admin, &g.adminStreams}", "listenerGauges{&g.http, &g.adminStreams}", causes),
		of("frames of a batch count as its time", counters+"metrics.go", "m.frames.Observe(float64(frames))", "m.frames.Observe(took.Seconds())", causes),
		of("unhealthy endpoints count as ejected", counters+"upstreams.go", "is(\"upstream_endpoints\", float64(v.Ejected[event.Authenticated]), \"ejected\")", "is(\"upstream_endpoints\", float64(v.Unhealthy), \"ejected\")", causes),
		of("rejected retries count as retries", counters+"upstreams.go", "is(\"upstream_retries_total\", float64(v.Retries))", "is(\"upstream_retries_total\", float64(v.RetriesDenied))", causes),
		of("timeouts of reads and writes swapped", counters+"wallet.go", "if p == event.Timeout {", "if p != event.Timeout {", causes),
		of("rejections and shadows of quotas swapped", counters+"quotas.go", "v.WithLabelValues(name, \"refused\"), v.WithLabelValues(name, \"shadow\")", "v.WithLabelValues(name, \"shadow\"), v.WithLabelValues(name, \"refused\")", causes, quotas, each),
		of("rejections of one class", counters+"wallet.go", "m.counter(\"admission_refused_total\", c.String(), why.String())", "m.counter(\"admission_refused_total\", types.ClassAuthed.String(), why.String())", causes, each),
	}
}

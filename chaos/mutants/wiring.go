package mutants

// wiring are bugs in the translation of the configuration to settings, and of what happens to
// metrics: a value that arrives in another place, or nowhere.
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

// unlessTwo is m, with a reason if one check alone can see it.
func unlessTwo(why string, m Mutant) Mutant {
	if len(m.Kills) > 1 {
		return m
	}
	return alone(why, m)
}

func settings() []Mutant {
	const (
		shell     = "cmd/macronode/"
		limits    = shell + "limits.go"
		admission = shell + "admission.go"
		beyond    = shell + "beyond.go"
		start     = shell + "start_settings.go"
		reload    = shell + "reload_settings.go"

		golden = "./cmd/macronode TestSettingsOfEachKey$"
		ledger = "./cmd/macronode TestEveryLimitArrives$"
		queues = "./cmd/macronode TestTheRunningNodeIsTheRegistry$"
		quotas = "./cmd/macronode TestQuotasAreCounted$"
		server = "./adapters/httpserver TestServerUsesEachLimit$"
	)
	of := func(name, file, was, now string, kills ...string) Mutant {
		return one("settings: "+name, "", file, was, now, kills...)
	}
	return []Mutant{
		of("drain and abort swapped", limits, "Drain: c.Node.Drain, Abort: c.Node.Abort", "Drain: c.Node.Abort, Abort: c.Node.Drain", golden),
		of("stall and sync time-outs swapped", limits, "StallThreshold: c.Journal.Stall, SyncTimeout: c.Journal.Fail", "StallThreshold: c.Journal.Fail, SyncTimeout: c.Journal.Stall", golden),
		of("the commit time-out is the heartbeat", limits, "CommitTimeout: c.Node.Patience,", "CommitTimeout: c.Journal.Vouch,", golden),
		of("backlog and reserve swapped", limits, "MaxUnsyncedBytes: uint64(c.Journal.Backlog), MinFreeBytes: uint64(c.Journal.Reserve)", "MaxUnsyncedBytes: uint64(c.Journal.Reserve), MinFreeBytes: uint64(c.Journal.Backlog)", golden),
		of("the start deadline is not passed on", limits, "StartTimeout: c.Node.StartDeadline", "StartTimeout: 30 * time.Second", golden),
		of("a tenant's holds are limited as its accounts", limits, "TenantHolds: l.TenantHolds", "TenantHolds: l.TenantAccounts", golden, ledger),
		of("issues are limited as debits", limits, "MaxDailyIssue: l.IssueDay", "MaxDailyIssue: l.Day", golden, ledger),
		of("index cache and frames swapped", limits, "Frames: c.Index.Frames, Cache: int64(c.Index.Cache)", "Frames: int(c.Index.Cache), Cache: int64(c.Index.Frames)", golden),
		of("weights of two classes swapped", admission, "types.ClassInternal: uint64(q.Weights.Internal), types.ClassAuthed: uint64(q.Weights.Authed)", "types.ClassInternal: uint64(q.Weights.Authed), types.ClassAuthed: uint64(q.Weights.Internal)", golden),
		of("queue time-out and pacing delay swapped", admission, "MaxWait: q.MaxWait, MaxPacingDelay: q.Pace", "MaxWait: q.Pace, MaxPacingDelay: q.MaxWait", golden),
		of("queues of two facets swapped", admission, "types.FacetWallet: {p.Money, q.Money}, types.FacetQuery: {p.Lists, q.Lists}", "types.FacetWallet: {p.Money, q.Lists}, types.FacetQuery: {p.Lists, q.Money}", golden, queues),
		of("a class has the share of a flow", admission, "of.queue*q.Class/100", "of.queue*q.Flow/100", golden),
		of("a quota in shadow refuses", admission, "Shadow: q.Shadow", "Shadow: false", golden, quotas),
		of("the burst is the rate", admission, "Burst: q.Burst.Units", "Burst: units", golden),
		of("counters for keys and tenants swapped", admission, "Keys: c.APIKeys, Tenants: c.Wallet.Limits.Tenants", "Keys: c.Wallet.Limits.Tenants, Tenants: c.APIKeys", golden),
		of("attempts as by default", beyond, "r.MaxAttempts = uint8(u.Tries)", "_ = u.Tries", golden),
		of("fall and rise swapped", beyond, "uint8(u.Health.Fall), uint8(u.Health.Rise)", "uint8(u.Health.Rise), uint8(u.Health.Fall)", golden),
		of("the idle time of tunnels is not passed on", beyond, "of.Trusted, of.Idle = c.HTTP.TrustedProxies, c.HTTP.TunnelIdle", "of.Trusted = c.HTTP.TrustedProxies", golden),
		of("a route without its limit", beyond, "= c.Routes[i].MaxInflight", "= 0", golden),
		of("no part is required", beyond, "Missing: h.Missing, Required: h.Required", "Missing: h.Missing", golden),
		of("interval and time-out of health checks swapped", reload, "Every: u.Health.Interval, Wait: u.Health.Timeout", "Every: u.Health.Timeout, Wait: u.Health.Interval", golden),
		of("the API trusts no proxy", reload, ", Trusted: c.HTTP.TrustedProxies}", "}", golden),
		of("the access log is not turned on by a reload", reload, "levelOf(c.Log), c.Log.Access", "levelOf(c.Log), s.access", golden),
		of("write and idle time-outs swapped", start, "s.Write = h.WriteTimeout\n\ts.Idle = h.IdleTimeout", "s.Write = h.IdleTimeout\n\ts.Idle = h.WriteTimeout", golden),
		of("header and read time-outs swapped", start, "s.Header = h.HeaderTimeout\n\ts.Read = h.ReadTimeout", "s.Header = h.ReadTimeout\n\ts.Read = h.HeaderTimeout", golden),
		of("the listener ends with the abort", start, "max(0, c.Node.Drain-", "max(0, c.Node.Abort-", golden),
		of("the API waits as long as a body may take", start, "deadline: c.HTTP.RequestDeadline", "deadline: c.HTTP.ReadTimeout", golden),
		of("no client must know a post-quantum key exchange", start, "postQuantum: t.Quantum == \"required\"", "postQuantum: false", golden),
		of("the number of audit files is not passed on", shell+"beside.go", "limits.Size, limits.Keep = int64(c.Audit.Size), c.Audit.Keep", "limits.Size = int64(c.Audit.Size)", golden),
		of("the server closes idle connections as slow writers", "adapters/httpserver/httpserver.go", "IdleTimeout:       c.Idle", "IdleTimeout:       c.Write", server),
	}
}

func series() []Mutant {
	const (
		shell    = "cmd/macronode/"
		counters = "adapters/metrics/"

		causes  = "./cmd/macronode TestEverySeriesHasItsCause$"
		quotas  = "./cmd/macronode TestQuotasAreCounted$"
		each    = "./cmd/macronode TestEachEndpointIsCounted$"
		indexes = "./cmd/macronode TestSeriesOfTheIndex$"
	)
	of := func(name, file, was, now string, kills ...string) Mutant {
		return one("metrics: "+name, "", file, was, now, kills...)
	}
	return []Mutant{
		of("failed tries of a request that was answered", shell+"course.go", "t := &l.Tries[n]; t.Failed() {", "t := &l.Tries[n]; t.Failed() && l.Outcome() != \"ok\" {", causes),
		of("bytes up are bytes down", shell+"course.go", "u.Moved(up, down)", "u.Moved(down, up)", causes),
		of("one class waits", shell+"admission.go", "float64(l.ear.status().Queued[f][c])", "float64(l.ear.status().Queued[f][types.ClassAuthed])", causes),
		of("permits of one facet", shell+"admission.go", "float64(l.ear.status().Permits[f])", "float64(l.ear.status().Permits[types.FacetWallet])", causes),
		of("lost audit lines are errors", shell+"shown.go", "float64(l.audit.Counts().Failed)", "float64(l.audit.Counts().Lost)", causes),
		of("children that were told to end at once ended", shell+"shown.go", "l.children.Counts(c).Killed", "l.children.Counts(c).Stopped", causes),
		of("tables are rebuilds", shell+"shown.go", "float64(index.Stats().Rebuilt)", "float64(index.Stats().Tables)", indexes),
		of("too many connections are smuggled requests", shell+"serve.go", "Refused: l.metrics.Crowded, Smuggle: l.metrics.Smuggled", "Refused: l.metrics.Smuggled, Smuggle: l.metrics.Crowded", causes),
		of("connections of one listener", shell+"shown.go", "listenerGauges{&b.admin, &b.looks, ofAdmin}", "listenerGauges{&b.http, &b.looks, ofAdmin}", causes),
		of("frames of a batch are its time", counters+"metrics.go", "m.frames.Observe(float64(frames))", "m.frames.Observe(took.Seconds())", causes),
		of("sick endpoints are ejected", counters+"upstreams.go", "is(\"upstream_endpoints\", float64(v.Ejected), \"ejected\")", "is(\"upstream_endpoints\", float64(v.Unhealthy), \"ejected\")", causes),
		of("retries that were refused are retries", counters+"upstreams.go", "is(\"upstream_retries_total\", float64(v.Retries))", "is(\"upstream_retries_total\", float64(v.RetriesDenied))", causes),
		of("time-outs of reads and writes swapped", counters+"wallet.go", "if p == event.Timeout {", "if p != event.Timeout {", causes),
		of("refusals and shadows of quotas swapped", counters+"quotas.go", "v.WithLabelValues(name, \"refused\"), v.WithLabelValues(name, \"shadow\")", "v.WithLabelValues(name, \"shadow\"), v.WithLabelValues(name, \"refused\")", causes, quotas, each),
		of("one class is refused", counters+"wallet.go", "m.counter(\"admission_refused_total\", c.String(), why.String())", "m.counter(\"admission_refused_total\", types.ClassAuthed.String(), why.String())", causes, each),
	}
}

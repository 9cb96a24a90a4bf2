package server

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"macronode/adapters/loop"
	"macronode/adapters/proxy"
	"macronode/core/event"
)

// healthLogInterval is the least time between two lines in the log about the health of one endpoint.
const healthLogInterval = 10 * time.Second

// endpointHealth keeps the last health check of each endpoint and logs changes. The first change is logged at once. If an endpoint changes
// again within healthLogInterval, the next line has its last state and the number of changes.
type endpointHealth struct {
	applied    *currentConfig
	inbox      *eventInbox
	dispatcher *loop.Dispatcher
	log        *slog.Logger

	mu   sync.Mutex // of last
	last [proxy.MaxUpstreams][proxy.MaxEndpoints]endpointState
}

// endpointState is the health of one endpoint.
type endpointState struct {
	endpoint  string // URL; a reload may give the number to another endpoint
	last      proxy.CheckResult
	unhealthy bool
	loggedAt  time.Time
	changes   int // since loggedAt
}

// record keeps a check and whether the endpoint is unhealthy after it. It returns whether to log that, and the number of changes since
// the last line.
func (h *endpointHealth) record(now time.Time, in event.HealthChecked, met proxy.CheckResult, unhealthy bool) (changes int, tell bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := &h.last[in.Upstream][in.Endpoint]
	if e.endpoint != met.Endpoint {
		*e = endpointState{endpoint: met.Endpoint}
	}
	if e.last = met; e.unhealthy != unhealthy {
		e.unhealthy = unhealthy
		e.changes++
	}
	if e.changes == 0 || now.Sub(e.loggedAt) < healthLogInterval {
		return 0, false
	}
	changes, e.changes, e.loggedAt = e.changes, 0, now
	return changes, true
}

// unhealthy returns the last checks of the unhealthy endpoints of an upstream.
func (h *endpointHealth) unhealthy(upstream int) (all []proxy.CheckResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.last[upstream] {
		if e := &h.last[upstream][i]; e.unhealthy {
			all = append(all, e.last)
		}
	}
	return all
}

// describeUnhealthy returns the unhealthy endpoints of an upstream, each with the result of its last check.
func (h *endpointHealth) describeUnhealthy(upstream string) (all []string) {
	e := h.applied.Load()
	if e == nil {
		return nil
	}
	if n := slices.Index(e.Numbers.Upstreams.Names, upstream); n >= 0 {
		for _, met := range h.unhealthy(n) {
			if slices.Contains(e.Numbers.Endpoints[upstream].Names, met.Endpoint) { // it is still configured
				all = append(all, met.Endpoint+", "+checkResult(met))
			}
		}
	}
	return all
}

// checked is called after each health check, once the core has its result.
func (h *endpointHealth) checked(of event.HealthChecked, met proxy.CheckResult) {
	if names := h.applied.Load().Numbers.Upstreams.Names; h.inbox.attached() && int(of.Upstream) < len(names) {
		if stats, ok := h.dispatcher.Upstreams.Stats(of.Upstream); ok {
			h.logChange(time.Now(), of, met, names[of.Upstream], &stats)
		}
	}
}

// logChange keeps a check, and logs it if the endpoint has become healthy or unhealthy.
func (h *endpointHealth) logChange(now time.Time, of event.HealthChecked, met proxy.CheckResult, upstream string, stats *event.UpstreamStats) {
	unhealthy := stats.UnhealthyBits>>of.Endpoint&1 == 1
	changes, tell := h.record(now, of, met, unhealthy)
	if !tell {
		return
	}
	fields := []any{"upstream", upstream, "endpoint", met.Endpoint, "result", checkResult(met), "changes", changes, "healthy", stats.Healthy, "ejected", stats.Ejected[event.Authenticated], "unhealthy", stats.Unhealthy}
	if unhealthy {
		h.log.Warn("endpoint unhealthy: health checks fail, no requests are sent to it", fields...)
		return
	}
	h.log.Info("endpoint healthy: requests are sent to it", fields...)
}

// checkResult returns the status that a check got, or the reason for which it failed.
func checkResult(met proxy.CheckResult) string {
	if met.Status > 0 && (met.Reason == proxy.NoFailure || met.Reason == proxy.BadStatus) {
		return fmt.Sprintf("status %d", met.Status)
	}
	return string(met.Reason)
}

package main

import (
	"fmt"
	"sync"
	"time"

	"macronode/adapters/proxy"
	"macronode/core/event"
)

// flapping is how long nothing more is said of an endpoint whose health was just told.
const flapping = 10 * time.Second

// checks are what health checks met last, endpoint for endpoint. Each health that an endpoint
// comes to is said, the first at once; of one that changes again within flapping, what it is
// behind that, and how often it changed.
type checks struct {
	mu   sync.Mutex // of all below
	last [proxy.MaxUpstreams][proxy.MaxEndpoints]checked
}

// checked is one endpoint.
type checked struct {
	of      string // the endpoint; it may be another behind a change of the configuration
	met     proxy.Checkup
	sick    bool // as it was seen last
	at      time.Time
	changes int // since it was said
}

// saw notes a check, behind which the endpoint is sick or is not. It says whether that is to
// be told, and how often it has changed since it was.
func (c *checks) saw(now time.Time, in event.HealthChecked, met proxy.Checkup, sick bool) (changes int, tell bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.last[in.Upstream][in.Endpoint]
	if e.of != met.Endpoint {
		*e = checked{of: met.Endpoint}
	}
	if e.met = met; e.sick != sick {
		e.sick = sick
		e.changes++
	}
	if e.changes == 0 || now.Sub(e.at) < flapping {
		return 0, false
	}
	changes, e.changes, e.at = e.changes, 0, now
	return changes, true
}

// ill are the endpoints of an upstream that were last seen sick, and what was met there.
func (c *checks) ill(upstream int) (all []proxy.Checkup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.last[upstream] {
		if e := &c.last[upstream][i]; e.sick {
			all = append(all, e.met)
		}
	}
	return all
}

// watchChecks looks at an upstream behind a check of one of its endpoints, and tells the
// operator when checks call that sick, and when it is well again.
func (l *life) watchChecks(saw event.HealthChecked, met proxy.Checkup) {
	if names := l.edition.Load().numbers.upstreams.names; l.ear.hears() && int(saw.Upstream) < len(names) {
		if is, ok := l.desk.Asks.Look(saw.Upstream); ok {
			l.tellChecks(time.Now(), saw, met, names[saw.Upstream], &is)
		}
	}
}

func (l *life) tellChecks(now time.Time, saw event.HealthChecked, met proxy.Checkup, upstream string, is *event.UpstreamStats) {
	sick := is.UnhealthyBits>>saw.Endpoint&1 == 1
	changes, tell := l.checks.saw(now, saw, met, sick)
	if !tell {
		return
	}
	said := []any{"upstream", upstream, "endpoint", met.Endpoint, "result", metText(met), "changes", changes, "healthy", is.Healthy, "ejected", is.Ejected, "unhealthy", is.Unhealthy}
	if sick {
		l.log.Warn("endpoint unhealthy: health checks fail, no requests are sent to it", said...)
		return
	}
	l.log.Info("endpoint healthy: requests are sent to it", said...)
}

// metText is what a check met: how it failed, in a word of those for tries, or the status that
// answered.
func metText(met proxy.Checkup) string {
	if met.Status > 0 && (met.Symptom == proxy.Fine || met.Symptom == proxy.BadStatus) {
		return fmt.Sprintf("status %d", met.Status)
	}
	return string(met.Symptom)
}

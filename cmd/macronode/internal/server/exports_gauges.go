package server

import (
	"sync"
	"time"

	"macronode/adapters/adminapi"
)

// sinkGauges samples the state of the sinks, at most once in a while: a scrape reads it several times.
type sinkGauges struct {
	status func() adminapi.Exports

	mu sync.Mutex
	at time.Time
	is map[string]adminapi.Sink
}

// sampleInterval is the age of a state that is read again.
const sampleInterval = time.Second

// sink returns the state of a sink.
func (g *sinkGauges) sink(name string) adminapi.Sink {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.is == nil || now.Sub(g.at) > sampleInterval {
		g.at, g.is = now, map[string]adminapi.Sink{}
		for _, s := range g.status().Sinks {
			g.is[s.Name] = s
		}
	}
	return g.is[name]
}

// forget makes the next scrape read the state again.
func (g *sinkGauges) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.is = nil
}

// addGauges reports the state of each sink.
func (e *exports) addGauges() {
	for _, at := range e.sinks() {
		e.addGaugesOf(at.settings.Name)
	}
}

func (e *exports) addGaugesOf(name string) {
	g, to := &e.gauges, e.metrics
	to.Sample("export_lag_seconds", func() float64 { return g.sink(name).LagSeconds }, name)
	to.SampleKnown("export_pending", func() (float64, bool) {
		n := g.sink(name).Pending
		if n == nil {
			return 0, false
		}
		return float64(*n), true
	}, name)
	to.Sample("export_quarantined", func() float64 { return float64(g.sink(name).Quarantined) }, name)
	to.SampleKnown("export_sink_up", func() (float64, bool) {
		switch g.sink(name).State {
		case "starting", "": // an empty state: a reload has just removed the sink
			return 0, false
		case "ok", "waiting":
			return 1, true
		}
		return 0, true
	}, name)
}

package server

import (
	"sync"
	"sync/atomic"

	"macronode/adapters/adminapi"
	"macronode/adapters/metrics"
	"macronode/adapters/registry"
)

// queueGauges report how full each queue of the registry is, in /debug/queues and as a metric. A queue is reported once its part of the
// node exists.
type queueGauges struct {
	metrics *metrics.Metrics

	mu     sync.Mutex
	gauges map[string]gauge // by the names of the registry

	http, s3, admin                      atomic.Int64 // open connections
	httpStreams, s3Streams, adminStreams atomic.Int64 // HTTP/2 requests of the same listeners
}

// A gauge reports the depth of a queue, its limit, and how much its policy has dropped; nil: it drops nothing.
type gauge struct {
	depth   func() (depth, limit int)
	dropped func() uint64
}

// add reports a queue from now on.
func (g *queueGauges) add(name string, depth func() (depth, limit int)) { g.addLossy(name, depth, nil) }

// addLossy reports a queue that may drop entries.
func (g *queueGauges) addLossy(name string, depth func() (depth, limit int), dropped func() uint64) {
	g.mu.Lock()
	if g.gauges == nil {
		g.gauges = make(map[string]gauge)
	}
	g.gauges[name] = gauge{depth, dropped}
	g.mu.Unlock()
	g.metrics.Sample("queue_depth", func() float64 {
		n, _ := depth()
		return float64(n)
	}, name)
}

// get returns the gauge of a queue.
func (g *queueGauges) get(name string) (of gauge, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of, ok = g.gauges[name]
	return of, ok
}

// queues returns all queues, in the order of the registry.
func (g *queueGauges) queues() []adminapi.Queue {
	all := []adminapi.Queue{}
	for _, q := range registry.Queues {
		of, ok := g.get(q.Name)
		if !ok {
			continue
		}
		row := adminapi.Queue{Name: q.Name, Unit: q.Unit, Policy: string(q.Policy)}
		if row.Depth, row.Limit = of.depth(); of.dropped != nil {
			row.Dropped = of.dropped()
		}
		all = append(all, row)
	}
	return all
}

// listenerGauges count what is open at one listener.
type listenerGauges struct {
	connections, requests *atomic.Int64 // requests of HTTP/2
}

func (g *queueGauges) publicListener() listenerGauges {
	return listenerGauges{&g.http, &g.httpStreams}
}

func (g *queueGauges) s3Listener() listenerGauges {
	return listenerGauges{&g.s3, &g.s3Streams}
}

func (g *queueGauges) adminListener() listenerGauges {
	return listenerGauges{&g.admin, &g.adminStreams}
}

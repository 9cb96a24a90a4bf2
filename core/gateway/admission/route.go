package admission

import (
	"fmt"

	"macronode/core/event"
	"macronode/core/share"
	"macronode/core/table"
	"macronode/core/types"
)

// routes counts the requests of the routes that have a limit: of each one, and of each flow on it. A flow leaves room on a route for flows
// that come later, as a tenant does in a table (core/share).
type routes struct {
	all    []uint32 // of each route
	byFlow table.Pool[routeFlow, count]
}

// routeFlow is a flow on a route.
type routeFlow struct {
	route uint16
	flow  types.Flow
}

func (k routeFlow) HashInto(h types.Hash64) types.Hash64 {
	return k.flow.HashInto(h.Mix(uint64(k.route)))
}

type count uint32

func (n count) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(n)) }

func newRoutes(l *Limits, seed types.Hash64) routes {
	return routes{all: make([]uint32, len(l.Routes)), byFlow: table.NewPool[routeFlow, count](l.Places, seed)}
}

func routesBytes(l *Limits) int64 {
	return table.SliceBytes[uint32](len(l.Routes)) + table.SliceBytes[event.RouteLimits](len(l.Routes)) + table.PoolBytes[routeFlow, count](l.Places)
}

// limited reports whether a route has a limit.
func limited(limits []event.RouteLimits, route uint16) bool {
	return int(route) < len(limits) && limits[route].Requests > 0
}

// would returns why a request of a flow would be rejected. Requests of administrators leave no room.
func (r *routes) would(limits []event.RouteLimits, route uint16, flow types.Flow) error {
	if !limited(limits, route) {
		return nil
	}
	room := limits[route].Requests - int(r.all[route])
	if room <= 0 {
		return ErrRoute
	}
	if has := r.of(routeFlow{route, flow}); has > 0 && flow.Class != types.ClassInternal && share.Left(limits[route].PerFlow, has, room) <= 0 {
		return ErrRouteFlow
	}
	return nil
}

// of returns the number of requests of a flow on a route.
func (r *routes) of(k routeFlow) int {
	if at, ok := r.byFlow.Find(k); ok {
		_, n := r.byFlow.Row(at)
		return int(n)
	}
	return 0
}

// add counts a request, remove counts it no more.
func (r *routes) add(limits []event.RouteLimits, route uint16, flow types.Flow) {
	if !limited(limits, route) {
		return
	}
	r.all[route]++
	k := routeFlow{route, flow}
	if at, ok := r.byFlow.Find(k); ok {
		_, n := r.byFlow.Row(at)
		r.byFlow.Set(at, n+1)
		return
	}
	r.byFlow.Put(k, 1)
}

func (r *routes) remove(limits []event.RouteLimits, route uint16, flow types.Flow) {
	if !limited(limits, route) {
		return
	}
	r.all[route]--
	at, ok := r.byFlow.Find(routeFlow{route, flow})
	types.Assert(ok, "admission: a request that its route does not count")
	if _, n := r.byFlow.Row(at); n > 1 {
		r.byFlow.Set(at, n-1)
		return
	}
	r.byFlow.Drop(at)
}

// reset forgets all requests, and has a count for each of some routes.
func (r *routes) reset(routes int) {
	if len(r.all) < routes {
		r.all = make([]uint32, routes)
	}
	clear(r.all)
	for at := range uint32(r.byFlow.Capacity()) {
		if _, _, taken := r.byFlow.At(at); taken {
			r.byFlow.Drop(at)
		}
	}
}

func (r *routes) hashInto(h types.Hash64) types.Hash64 {
	for _, n := range r.all {
		h = h.Mix(uint64(n))
	}
	return h.Mix(uint64(r.byFlow.Hash()))
}

func (r *routes) copyTo(dst *routes) {
	dst.all = append(dst.all[:0], r.all...)
	r.byFlow.CopyTo(&dst.byFlow)
}

// check compares the counts with those of rows.
func (r *routes) check(limits []event.RouteLimits, rows []row) error {
	if err := r.byFlow.Check(); err != nil {
		return err
	}
	all, flows := make([]uint32, len(r.all)), map[routeFlow]int{}
	for i := range rows {
		if g := &rows[i]; g.state != free && limited(limits, g.route) {
			all[g.route]++
			flows[routeFlow{g.route, g.flow}]++
		}
	}
	for i, n := range all {
		if n != r.all[i] {
			return fmt.Errorf("A4: route %d has %d, counted %d", i, n, r.all[i])
		}
	}
	if len(flows) != r.byFlow.Len() {
		return fmt.Errorf("A4: %d flows are on routes, counted %d", len(flows), r.byFlow.Len())
	}
	for i := range rows {
		k := routeFlow{rows[i].route, rows[i].flow}
		if n := flows[k]; n > 0 && n != r.of(k) {
			return fmt.Errorf("A4: %v has %d on route %d, counted %d", k.flow, n, k.route, r.of(k))
		}
	}
	return nil
}

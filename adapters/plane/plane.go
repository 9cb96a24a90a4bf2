// Package plane describes a plane to everything around core, in one value. A program lists the descriptions of its
// planes; state, memory bound, configuration, registry, metrics, index and HTTP API are built from the list.
//
//	Description ─┬─► Spec ─────────► core/state: commands, records, recovery, snapshots
//	             ├─► Section ──────► adapters/config: keys, checks, JSON Schema
//	             ├─► Memory ───────► macronode explain memory, the limit of the Go runtime
//	             ├─► View ─────────► adapters/index: rows for lists
//	             ├─► Routes ───────► adapters/httpapi: operations, /openapi.json; adapters/metrics: their series
//	             └─► Metrics, Gauges, Limits ─► adapters/registry, adapters/metrics
package plane

import (
	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/index"
	"macronode/adapters/registry"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// A Description is one plane. Only ID and Memory are required, and one of Spec and Bytes.
type Description struct {
	ID     types.Plane
	Spec   func(*config.Config) plane.Spec // nil: core/state has the plane as a part of its own
	Bytes  func(*config.Config) int64      // memory of the state; nil: as Spec says
	Memory string                          // what the memory is for, and by which keys it grows

	Section *config.Section // keys of the configuration; nil: they are in the tree of package config
	Limits  []registry.Limit
	Metrics []registry.Metric // beside those of package registry
	Gauges  []Gauge

	View     func(r *record.Record, at types.Time, put func(key, value []byte)) // as in index.View; nil: there is none
	Routes   []httpapi.PlaneRoute
	Document []byte // as in httpapi.PlaneRoutes
}

// A Gauge is one series of a sampled metric, whose value is in the durable state of the plane.
type Gauge struct {
	Name   string // of the metric
	Labels []string
	Value  func(p plane.Plane, at types.Time) float64 // it neither changes nor keeps p
}

// All are the planes of a program.
type All []Description

// Specs returns the planes that core/state makes.
func (all All) Specs(c *config.Config) (specs []plane.Spec) {
	for i := range all {
		if all[i].Spec != nil {
			specs = append(specs, all[i].Spec(c))
		}
	}
	return specs
}

// StateBytes returns the memory of the state of d.
func (d *Description) StateBytes(c *config.Config) int64 {
	if d.Bytes != nil {
		return d.Bytes(c)
	}
	return d.Spec(c).Bytes
}

// Sections returns the sections that planes add to the configuration.
func (all All) Sections() (sections []config.Section) {
	for i := range all {
		if s := all[i].Section; s != nil {
			sections = append(sections, *s)
		}
	}
	return sections
}

// Entries returns what planes declare beside package registry.
func (all All) Entries() (entries []registry.Entries) {
	for i := range all {
		e := registry.Entries{Metrics: all[i].Metrics, Limits: all[i].Limits}
		for _, r := range all[i].Routes {
			e.Endpoints = append(e.Endpoints, []string{r.Name, r.Method})
		}
		entries = append(entries, e)
	}
	return entries
}

// Views returns the views of planes that package index does not know.
func (all All) Views() (views []index.View) {
	for i := range all {
		if all[i].View != nil {
			views = append(views, index.View{Plane: all[i].ID, Rows: all[i].View})
		}
	}
	return views
}

// Routes returns the operations of planes that package httpapi does not know.
func (all All) Routes() (routes []httpapi.PlaneRoutes) {
	for i := range all {
		if d := &all[i]; len(d.Routes) > 0 {
			routes = append(routes, httpapi.PlaneRoutes{Plane: d.ID, Routes: d.Routes, Document: d.Document})
		}
	}
	return routes
}

// Sample registers the gauges of all planes. read passes a plane of the durable state.
func (all All) Sample(register func(name string, value func() float64, labels ...string), read func(types.Plane, func(plane.Plane, types.Time)) types.LSN) {
	for i := range all {
		id := all[i].ID
		for _, g := range all[i].Gauges {
			register(g.Name, func() (value float64) {
				read(id, func(p plane.Plane, at types.Time) { value = g.Value(p, at) })
				return value
			}, g.Labels...)
		}
	}
}

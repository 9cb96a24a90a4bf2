// Package counternode describes the plane of package counter: its configuration, operations, view and metric.
package counternode

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/plane"
	"macronode/adapters/registry"
	"macronode/core/event"
	core "macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/examples/counter"
)

//go:embed openapi.json
var document []byte

// settings are the keys of the configuration.
type settings struct {
	Counters int `key:"counters" default:"1000" min:"1" max:"1000000" change:"restart" doc:"Maximum counters of all tenants."`
	Tenant   int `key:"tenant_counters" default:"=counter.counters" min:"1" max:"1000000" change:"restart" doc:"Maximum counters of one tenant."`
}

// Check returns why the settings are invalid together.
func (s *settings) Check() error {
	if s.Tenant > s.Counters {
		return errors.New("tenant_counters must be at most counter.counters")
	}
	return nil
}

var section = config.Section{Key: "counter", Doc: "Named counters.", New: func() any { return new(settings) }}

// Description returns the description of the plane.
func Description() plane.Description {
	return plane.Description{
		ID: types.PlaneExample, Memory: "counters (counter)", Section: &section, Spec: spec,
		Limits: []registry.Limit{
			{Key: "counter.counters", What: "counters; an add to one more is rejected", By: []string{"examples/counter.Plane.hasRoom"}, Test: "examples/counter.TestCountersSurviveCrashes"},
			{Key: "counter.tenant_counters", What: "counters of one tenant; an add to one more is rejected", By: []string{"examples/counter.Plane.Decide"}, Test: "examples/counter.TestCountersSurviveCrashes"},
		},
		Metrics: []registry.Metric{{Name: "counters", Type: registry.Gauge, Help: "Counters of all tenants.", Sampled: true}},
		Gauges:  []plane.Gauge{{Name: "counters", Value: func(p core.Plane, _ types.Time) float64 { return float64(p.(*counter.Plane).Len()) }}},
		View:    view,
		Routes: []httpapi.PlaneRoute{
			{Name: "add_counter", Method: http.MethodPost, Path: "/v1/counters/:name", Serve: add},
			{Name: "counters", Method: http.MethodGet, Path: "/v1/counters", ReadsIndex: true, Serve: list},
		},
		Document: document,
	}
}

func spec(c *config.Config) core.Spec {
	s := c.Section(&section).(*settings)
	return counter.Spec(counter.Limits{Counters: s.Counters, TenantCounters: s.Tenant, Tenants: c.Wallet.Limits.Tenants})
}

// view has a row for each counter: its name, and its value.
func view(r *record.Record, _ types.Time, put func(key, value []byte)) {
	if name, value, ok := counter.ReadAdded(r); ok {
		put(name, binary.BigEndian.AppendUint64(nil, value))
	}
}

// add serves POST /v1/counters/:name.
func add(c *httpapi.PlaneCall) error {
	var body struct {
		Delta string `json:"delta"`
	}
	header, err := c.Command(event.ScopeIssue, &body)
	if err != nil {
		return err
	}
	name, err := c.PathParam()
	if err != nil {
		return err
	}
	in := &counter.Add{Header: header, Name: types.Name{Text: []byte(name)}}
	if in.Delta, err = strconv.ParseUint(body.Delta, 10, 64); err != nil {
		return httpapi.Invalid(errors.New("delta: must be a string of digits, at most 2^64-1"))
	}
	if err := in.Validate(); err != nil {
		return httpapi.Invalid(err)
	}
	in.Seal()
	return c.Execute(in, func(p event.Problem) string {
		switch p {
		case event.QuotaExceeded:
			return "The tenant has as many counters as counter.tenant_counters permits."
		case event.CapacityExceeded:
			return "The node has as many counters as counter.counters permits."
		default:
			return ""
		}
	})
}

// list serves GET /v1/counters.
func list(c *httpapi.PlaneCall) error {
	page, err := c.Page()
	if err != nil {
		return err
	}
	type row struct {
		Name  string `json:"name"`
		Value uint64 `json:"value,string"`
	}
	var answer struct {
		Counters []row  `json:"counters"`
		Used     int    `json:"used"`
		Quota    int    `json:"quota"`
		Next     string `json:"next_cursor,omitempty"`
	}
	answer.Next, err = c.Rows(page, func(name, value []byte) bool {
		if len(value) != 8 {
			return false
		}
		answer.Counters = append(answer.Counters, row{string(name), binary.BigEndian.Uint64(value)})
		return true
	})
	if err != nil {
		return err
	}
	c.Read(func(p core.Plane, _ types.Time) { answer.Used, answer.Quota = p.(*counter.Plane).Quota(c.Tenant()) })
	text, err := json.Marshal(&answer)
	if err != nil {
		return err
	}
	return c.Send(text)
}

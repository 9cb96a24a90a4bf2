package plane_test

import (
	"strings"
	"testing"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/adapters/plane"
	"macronode/adapters/registry"
	core "macronode/core/plane"
	"macronode/core/types"
)

type keys struct {
	Rows int    `key:"rows"`
	Name string `key:"name"`
}

// whole returns a description that lacks nothing.
func whole() plane.Description {
	return plane.Description{ID: types.PlaneExample, Memory: "rows (rows)", Bytes: func(*config.Config) int64 { return 1 },
		Section:  &config.Section{Key: "notes", New: func() any { return new(keys) }},
		Limits:   []registry.Limit{{Key: "notes.rows"}},
		Metrics:  []registry.Metric{{Name: "notes", Type: registry.Gauge, Help: "Notes.", Sampled: true}},
		Gauges:   []plane.Gauge{{Name: "notes"}, {Name: "usage_rows"}},
		Routes:   []httpapi.PlaneRoute{{Name: "note", Method: "GET", Path: "/v1/notes/:name"}},
		Document: []byte(`{"paths": {"/v1/notes/{name}": {"get": {"operationId": "note"}}}}`)}
}

// TestCheckNamesWhatIsMissing removes one part at a time.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	if d := whole(); d.Check() != nil {
		t.Fatal(d.Check())
	}
	for want, change := range map[string]func(*plane.Description){
		"no ID":           func(d *plane.Description) { d.ID = 0 },
		"no name":         func(d *plane.Description) { d.Memory = "" },
		"Spec or Bytes":   func(d *plane.Description) { d.Bytes = nil },
		"either Spec":     func(d *plane.Description) { d.Spec = func(*config.Config) (s core.Spec) { return s } },
		"the limits []":   func(d *plane.Description) { d.Limits = nil },
		"the numbers []":  func(d *plane.Description) { d.Section = nil },
		"no gauge for":    func(d *plane.Description) { d.Gauges = d.Gauges[1:] },
		"no sampled":      func(d *plane.Description) { d.Metrics = nil },
		"is not sampled":  func(d *plane.Description) { d.Metrics[0].Sampled = false },
		"describes []":    func(d *plane.Description) { d.Document = nil },
		`serves []`:       func(d *plane.Description) { d.Routes = nil },
		`serves ["note P`: func(d *plane.Description) { d.Routes[0].Method = "PUT" },
		"JSON array":      func(d *plane.Description) { d.Document = []byte("[]") },
	} {
		d := whole()
		change(&d)
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named: %v", want, err)
		}
	}
}

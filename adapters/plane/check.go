package plane

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"macronode/adapters/registry"
)

// Check returns what a description lacks: for tests.
//
//   - It has an ID, a name of its memory, and either Spec or Bytes.
//   - Each number of its section is one of its limits, and the reverse.
//   - Each of its metrics has gauges for all series, and each gauge is of one of its metrics or of package registry.
//   - Its document has exactly its routes.
func (d *Description) Check() error {
	var wrong []error
	note := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf("plane %v: "+format, append([]any{d.ID}, args...)...))
		}
	}
	note(d.ID == 0 || d.Memory == "", "has no ID, or no name of its memory")
	note((d.Spec == nil) == (d.Bytes == nil), "must have either Spec or Bytes")
	keys, limits := d.numbers(), []string{}
	for _, l := range d.Limits {
		limits = append(limits, l.Key)
	}
	note(!sameSet(keys, limits), "has the numbers %q and the limits %q", keys, limits)
	for _, m := range d.Metrics {
		for _, labels := range m.All() {
			note(!slices.ContainsFunc(d.Gauges, func(g Gauge) bool { return g.Name == m.Name && slices.Equal(g.Labels, labels) }), "has no gauge for %s%q", m.Name, labels)
		}
		note(!m.Sampled || m.Help == "", "the metric %s is not sampled, or has no help", m.Name)
	}
	all := append(slices.Clone(registry.Metrics), d.Metrics...)
	for _, g := range d.Gauges {
		note(!slices.ContainsFunc(all, func(m registry.Metric) bool { return g.Name == m.Name && m.Sampled }), "the gauge %s is of no sampled metric", g.Name)
	}
	served, described := d.operations()
	note(!sameSet(served, described), "serves %q and describes %q", served, described)
	return errors.Join(wrong...)
}

// numbers returns the keys of the section that are neither a text nor a boolean.
func (d *Description) numbers() (keys []string) {
	if d.Section == nil {
		return nil
	}
	for f := range reflect.TypeOf(d.Section.New()).Elem().Fields() {
		if name, ok := f.Tag.Lookup("key"); ok && f.Type.Kind() != reflect.String && f.Type.Kind() != reflect.Bool {
			keys = append(keys, d.Section.Key+"."+name)
		}
	}
	return keys
}

// operations returns the operations that d serves, and those of its document: name, method and path.
func (d *Description) operations() (served, described []string) {
	for _, r := range d.Routes {
		parts := strings.Split(r.Path, "/")
		for i, part := range parts {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				parts[i] = "{" + name + "}"
			}
		}
		served = append(served, strings.Join([]string{r.Name, r.Method, strings.Join(parts, "/")}, " "))
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(d.Document, &document); len(d.Document) > 0 && err != nil {
		described = append(described, err.Error())
	}
	for path, operations := range document.Paths {
		for method, of := range operations {
			described = append(described, of.ID+" "+strings.ToUpper(method)+" "+path)
		}
	}
	return served, described
}

func sameSet(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

package accounting_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"macronode/core/accounting"
)

// TestSeries: labels have one text whatever their order and case, and what is no series names the field.
func TestSeries(t *testing.T) {
	a, err := accounting.NewSeries("Requests", []accounting.Label{{Name: "method", Value: "GET"}, {Name: "service", Value: "shop"}})
	if err != nil || string(a.Dimension) != "requests" || string(a.Labels) != "service=shop,method=get" {
		t.Fatalf("%s %s %v", a.Dimension, a.Labels, err)
	}
	b, _ := accounting.NewSeries("requests", []accounting.Label{{Name: "service", Value: "shop"}, {Name: "method", Value: "get"}})
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v is not %+v", a, b)
	}
	if got := accounting.ParseLabels(a.Labels); !reflect.DeepEqual(got, []accounting.Label{{Name: "service", Value: "shop"}, {Name: "method", Value: "get"}}) {
		t.Errorf("the text has the labels %v", got)
	}
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		dimension, field string
		labels           []accounting.Label
	}{
		"unknown dimension": {"bytes", "dimension", nil},
		"empty custom name": {"custom:", "dimension", nil},
		"long custom name":  {"custom:" + long, "dimension", nil},
		"blank":             {"custom:a b", "dimension", nil},
		"Kelvin sign":       {"custom:to\u212aen", "dimension", nil},
		"dotted I":          {"requests", "labels.route", []accounting.Label{{Name: "route", Value: "\u0130d"}}},
		"unknown label":     {"requests", "labels", []accounting.Label{{Name: "host", Value: "a"}}},
		"empty value":       {"requests", "labels.route", []accounting.Label{{Name: "route", Value: ""}}},
		"comma":             {"requests", "labels.route", []accounting.Label{{Name: "route", Value: "a,b"}}},
		"long value":        {"requests", "labels.route", []accounting.Label{{Name: "route", Value: long + "x"}}},
		"a label twice":     {"requests", "labels.route", []accounting.Label{{Name: "route", Value: "a"}, {Name: "route", Value: "a"}}},
		"long labels":       {"requests", "labels", []accounting.Label{{Name: "route", Value: long}, {Name: "service", Value: long}, {Name: "region", Value: long}}},
	} {
		_, err := accounting.NewSeries(c.dimension, c.labels)
		var field *accounting.FieldError
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := accounting.NewSeries("custom:"+long[:57], nil); err != nil {
		t.Error(err)
	}
}

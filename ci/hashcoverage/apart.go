package hashcoverage

import (
	"fmt"
	"reflect"
	"strings"
)

// apartMost is the largest number of fields that Apart returns.
const apartMost = 4

// Apart returns the first fields in which two values of plain data differ: if their hashes
// differ, those that a copy missed. It returns "" if there are none.
func Apart[T any](a, b *T) string {
	var d differ
	d.into(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), "")
	return strings.Join(d.lines, ", ")
}

type differ struct{ lines []string }

func (d *differ) into(a, b reflect.Value, path string) {
	if len(d.lines) == apartMost {
		return
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			d.into(a.Field(i), b.Field(i), joined(path, a.Type().Field(i)))
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			d.lines = append(d.lines, fmt.Sprintf("%s has %d elements and %d", named(path), a.Len(), b.Len()))
			return
		}
		for i := range a.Len() {
			d.into(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			d.lines = append(d.lines, fmt.Sprintf("%s is %s and %s", named(path), x, y))
		}
	}
}

// joined returns the path of a field; the fields of an embedded struct belong to the outer one.
func joined(path string, f reflect.StructField) string {
	if f.Anonymous {
		return path
	}
	return strings.TrimPrefix(path+"."+f.Name, ".")
}
